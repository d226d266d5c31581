// Package starter contains example agent files.
package starter

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

//go:embed files
var content embed.FS

// Names returns the names of the examples; the first is the default.
func Names() []string { return []string{"coding", "research", "data"} }

// Write writes the files of an example into a directory, which it creates if missing,
// and returns their paths, the agent file first. If an agent file or a contract exists,
// nothing is written. A script of the workspace that exists is kept, and not returned.
func Write(example, dir string) ([]string, error) {
	if !slices.Contains(Names(), example) {
		return nil, fmt.Errorf("%q: expected one of %s", example, strings.Join(Names(), ", "))
	}
	entries, err := fs.ReadDir(content, "files/"+example)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	var paths, names []string
	for _, entry := range entries { // sorted: agent.yaml, contract.yaml, test.sh
		path := filepath.Join(dir, entry.Name())
		if _, err := os.Lstat(path); err == nil && filepath.Ext(path) == ".sh" {
			continue
		} else if err == nil {
			return nil, fmt.Errorf("%s already exists and is not overwritten: name another directory", path)
		} else if !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		paths, names = append(paths, path), append(names, entry.Name())
	}
	for i, name := range names {
		if err := write("files/"+example+"/"+name, paths[i]); err != nil {
			return nil, err
		}
	}
	return paths, nil
}

// write writes a file that does not exist.
func write(from, to string) error {
	data, err := content.ReadFile(from)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}
