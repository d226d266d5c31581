package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// source calls each for the files of a tree that are read, by their path from its root.
type source func(each func(file string, content []byte) error) error

// skipped are the files that are generated, that are texts for models, or that
// contain the words of the table.
var skipped = regexp.MustCompile(`(^|/)(testdata|node_modules)/` +
	`|^pkg/gen/|^clients/python/src/harnessmesh/gen/|^clients/typescript/src/gen/` +
	`|^schemas/|^docs/openapi/.*\.(json|yaml)$|^test/transcripts/|package(-lock)?\.json$` +
	`|^tools/language/`)

// checkout reads the files of a working tree that git knows or would add.
func checkout(dir string) source {
	return func(each func(string, []byte) error) error {
		out, err := exec.Command("git", "-C", dir, "ls-files", "-z", "--cached", "--others", "--exclude-standard").Output()
		if err != nil {
			return fmt.Errorf("list the files of %s: %w", dir, err)
		}
		for file := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
			if skipped.MatchString(file) {
				continue
			}
			content, err := os.ReadFile(filepath.Join(dir, file))
			if errors.Is(err, fs.ErrNotExist) {
				continue // deleted, and not yet from the index
			}
			if err != nil {
				return err
			}
			if err := each(file, content); err != nil {
				return err
			}
		}
		return nil
	}
}

// commit reads the files of a commit.
func commit(root, rev string) source {
	return func(each func(string, []byte) error) error {
		cmd := exec.Command("git", "-C", root, "archive", "--format=tar", rev)
		var stderr strings.Builder
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil {
			return fmt.Errorf("read commit %s: %w: %s", rev, err, strings.TrimSpace(stderr.String()))
		}
		for r := tar.NewReader(bytes.NewReader(out)); ; {
			header, err := r.Next()
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return err
			}
			if header.Typeflag != tar.TypeReg || skipped.MatchString(header.Name) {
				continue
			}
			content, err := io.ReadAll(r)
			if err != nil {
				return err
			}
			if err := each(header.Name, content); err != nil {
				return err
			}
		}
	}
}
