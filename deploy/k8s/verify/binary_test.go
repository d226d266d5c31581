package verify

import (
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
)

// program is the binary of the image, built as the Dockerfile says, from what it
// copies into its stage.
type program struct {
	path string
	// flags are those of a verb, without dashes.
	flags map[string][]string
	// text is the file itself: names of variables that it reads are in it.
	text string
}

var built = sync.OnceValues(func() (*program, error) {
	recipe, err := readRecipe("../../../Dockerfile")
	if err != nil {
		return nil, err
	}
	context := filepath.Join(builds, "src")
	if err := recipe.copyContext("../../..", context); err != nil {
		return nil, err
	}
	p := &program{path: filepath.Join(builds, "harness"), flags: map[string][]string{}}
	command := exec.Command("sh", "-c", strings.ReplaceAll(recipe.build, recipe.output, p.path))
	command.Dir = context
	command.Env = append(os.Environ(), "VERSION=verify", "GOWORK=off")
	if out, err := command.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", recipe.build, err, out)
	}
	text, err := os.ReadFile(p.path)
	if err != nil {
		return nil, err
	}
	p.text = string(text)
	for _, verb := range []string{"serve", "provision"} {
		out, err := exec.Command(p.path, verb, "--help").Output()
		if err != nil {
			return nil, fmt.Errorf("harness %s --help: %w", verb, err)
		}
		for _, match := range flagName.FindAllStringSubmatch(string(out), -1) {
			p.flags[verb] = append(p.flags[verb], match[1])
		}
	}
	return p, nil
})

var flagName = regexp.MustCompile(`(?m)^ +(?:-\w, )?--([a-z-]+)`)

func binary(t *testing.T) *program {
	t.Helper()
	p, err := built()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// builds is where the binary goes; TestMain makes and removes it.
var builds string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "harness-k8s-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	builds = dir
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

func TestTheProgramOfTheImageIsStatic(t *testing.T) {
	file, err := elf.Open(binary(t).path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for _, section := range file.Progs {
		if section.Type == elf.PT_INTERP {
			t.Error("it needs a dynamic linker, which the image does not have")
		}
	}
	out, err := exec.Command(binary(t).path, "version").Output()
	if err != nil || !strings.Contains(string(out), "verify") {
		t.Errorf("harness version: %q, %v; want the version that was given to the build", out, err)
	}
}
