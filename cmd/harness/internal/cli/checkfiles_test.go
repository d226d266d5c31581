package cli

import (
	"path/filepath"
	"strings"
	"testing"
)

func TestNeededFiles(t *testing.T) {
	for command, want := range map[string]string{
		"make test": "Makefile makefile GNUmakefile", "npm test": "package.json", "./check.sh now": "./check.sh", "sh check.sh && echo yes": "check.sh",
		"python3 tools/check.py": "tools/check.py", "/bin/true": "/bin/true", "make -C sub test": "", "test -s notes.txt": "", "cd sub && make test": "",
		"$CHECK": "", "sh -c 'exit 1'": "", "": "", "; make": "",
	} {
		if got := strings.Join(neededFiles(command), " "); got != want {
			t.Errorf("%q needs %q, want %q", command, got, want)
		}
	}
}

// TestChecksWithoutTheirFile: agent check warns about a command that its folder has no file
// for, and not once the file is there.
func TestChecksWithoutTheirFile(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "contract.yaml"), "goal: g\nrequired_outputs:\n  - {id: tests, description: d, predicate: {type: COMMAND_SUCCEEDS, command: sh check.sh}}\n")
	agent := write(t, filepath.Join(dir, "agent.yaml"), "name: a\ncontract: contract.yaml\n")
	got := call(t, nil, "", "agent", "check", agent)
	if got.code != 0 || !strings.Contains(got.err, "WARNING") || !strings.Contains(got.err, "output tests") || !strings.Contains(got.err, "check.sh") {
		t.Errorf("%+v", got)
	}
	write(t, filepath.Join(dir, "check.sh"), "exit 0\n")
	if got := call(t, nil, "", "agent", "check", agent); got.code != 0 || got.err != "" {
		t.Errorf("with the file: %+v", got)
	}
}
