package toolhostserver

import (
	"fmt"
	"testing"
)

func BenchmarkInspectWorkspace(b *testing.B) {
	h := newHost(b, Config{})
	for i := range 200 {
		h.write(fmt.Sprintf("d%d/f%d", i%10, i), "x\n")
	}
	runGit(b, h.dir, "init", "-q")
	runGit(b, h.dir, "add", ".")
	runGit(b, h.dir, "commit", "-q", "-m", "m")
	for b.Loop() {
		h.inspect()
	}
}

func BenchmarkCheckCommand(b *testing.B) {
	h := newHost(b, Config{})
	n := 0
	for b.Loop() {
		n++
		h.check(checkRequest(h.dir, fmt.Sprint(n), "true"))
	}
}
