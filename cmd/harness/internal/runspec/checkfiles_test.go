package runspec

import (
	"strings"
	"testing"
)

func TestNeededFiles(t *testing.T) {
	t.Parallel()
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
