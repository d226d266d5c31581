package verify

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/buildkit/frontend/dockerfile/parser"
	"github.com/moby/patternmatcher"
	"github.com/moby/patternmatcher/ignorefile"
)

// pinned matches an image with a tag, for people, and the digest that counts.
var pinned = regexp.MustCompile(`^[^@:]+:[^@:]+@sha256:[0-9a-f]{64}$`)

// recipe is a Dockerfile, read by the parser of BuildKit. There is no engine where
// these tests run: what they show is that it parses and that its build command works
// on what it copies. No test builds the image.
type recipe struct {
	stages []instructions.Stage
	// copied are the paths of the first stage, build its command, and output the
	// file that the command makes.
	copied        []string
	build, output string
}

func readRecipe(path string) (*recipe, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	parsed, err := parser.Parse(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	r := &recipe{output: "/out/harness"}
	if r.stages, _, err = instructions.Parse(parsed.AST, nil); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	for _, c := range r.stages[0].Commands {
		switch c := c.(type) {
		case *instructions.CopyCommand:
			r.copied = append(r.copied, c.SourcePaths...)
		case *instructions.RunCommand:
			if line := strings.Join(c.CmdLine, " "); strings.Contains(line, "go build") {
				r.build = line
			}
		}
	}
	if r.build == "" || !strings.Contains(r.build, r.output) {
		return nil, fmt.Errorf("%s: no go build of %s in the first stage", path, r.output)
	}
	return r, nil
}

// copyContext copies what the stage copies, less what .dockerignore keeps away.
func (r *recipe) copyContext(root, to string) error {
	file, err := os.Open(filepath.Join(root, ".dockerignore"))
	if err != nil {
		return err
	}
	defer file.Close()
	patterns, err := ignorefile.ReadAll(file)
	if err != nil {
		return err
	}
	ignored, err := patternmatcher.New(patterns)
	if err != nil {
		return err
	}
	for _, path := range r.copied {
		err := filepath.WalkDir(filepath.Join(root, path), func(at string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			name, err := filepath.Rel(root, at)
			if err != nil {
				return err
			}
			if out, err := ignored.MatchesOrParentMatches(name); err != nil || out {
				return err
			}
			data, err := os.ReadFile(at)
			if err != nil {
				return err
			}
			target := filepath.Join(to, name)
			return errors.Join(os.MkdirAll(filepath.Dir(target), 0o750), os.WriteFile(target, data, 0o600))
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *recipe) stage(name string) *instructions.Stage {
	for i := range r.stages {
		if r.stages[i].Name == name {
			return &r.stages[i]
		}
	}
	return nil
}

func TestImagesRunAsTheUserOfTheManifestsFromTheSameProgram(t *testing.T) {
	r, err := readRecipe("../../../Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	manifests, err := decode(rendered(t, "prod"))
	if err != nil {
		t.Fatal(err)
	}
	for stage, workload := range map[string]string{"harness": "gateway", "toolhost": "toolhost"} {
		s := r.stage(stage)
		if s == nil {
			t.Fatalf("no stage %s", stage)
		}
		var user, entry, copied string
		for _, c := range s.Commands {
			switch c := c.(type) {
			case *instructions.UserCommand:
				user = c.User
			case *instructions.EntrypointCommand:
				entry = strings.Join(c.CmdLine, " ")
			case *instructions.CopyCommand:
				if c.From == "build" && c.SourcePaths[0] == r.output {
					copied = c.DestPath
				}
			}
		}
		security := manifests.workload(workload).pod.Spec.SecurityContext
		if want := fmt.Sprintf("%d:%d", *security.RunAsUser, *security.RunAsGroup); user != want {
			t.Errorf("stage %s runs as %q, its pods as %s", stage, user, want)
		}
		if copied == "" || entry != copied {
			t.Errorf("stage %s starts %q, and has the program at %q", stage, entry, copied)
		}
	}
	if last := r.stages[len(r.stages)-1]; last.Name != "harness" || last.BaseName != "scratch" {
		t.Errorf("without --target the image is that of stage %s from %s", last.Name, last.BaseName)
	}
	for _, s := range r.stages {
		if _, tag, _ := strings.Cut(s.BaseName, ":"); s.BaseName != "scratch" && (tag == "" || tag == "latest") {
			t.Errorf("stage %s is from %s, which is not pinned", s.Name, s.BaseName)
		}
		if s.BaseName != "scratch" && !pinned.MatchString(s.BaseName) {
			t.Errorf("stage %s is from %s, which names no digest", s.Name, s.BaseName)
		}
	}
}
