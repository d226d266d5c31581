package daemon

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/node"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

func TestIdleEnds(t *testing.T) {
	now := time.Now()
	old := now.Add(-DefaultLinger)
	for name, c := range map[string]struct {
		idle Idle
		want bool
	}{
		"left long ago":             {Idle{Since: old}, true},
		"left just now":             {Idle{Since: now.Add(-DefaultLinger + time.Second)}, false},
		"a client":                  {Idle{Since: old, Clients: 1}, false},
		"a run at work":             {Idle{Since: old, Working: 1}, false},
		"a timer within the hour":   {Idle{Since: old, NextWake: now.Add(WakeWithin)}, false},
		"a timer after it":          {Idle{Since: old, NextWake: now.Add(WakeWithin + time.Second)}, true},
		"a timer that is late":      {Idle{Since: old, NextWake: now.Add(-time.Minute)}, false},
		"a timer, and it left soon": {Idle{Since: now, NextWake: now.Add(2 * WakeWithin)}, false},
	} {
		if got := c.idle.Ends(now, DefaultLinger); got != c.want {
			t.Errorf("%s: ends %v", name, got)
		}
	}
}

func TestCheck(t *testing.T) {
	for says, h := range map[string]node.Holder{
		"":                 {PID: 7, API: node.APILevel, Build: "another"},
		"older version":    {PID: 7, Command: "harness run"},
		"use that version": {PID: 7, API: node.APILevel + 1},
	} {
		err := check("/data", h)
		if (err == nil) != (says == "") || err != nil && (!strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "\n")) {
			t.Errorf("%v: %v", h, err)
		}
	}
}

func TestFirstJoinOnce(t *testing.T) {
	dir, h := t.TempDir(), node.Holder{PID: 7, Build: "one"}
	if FirstJoin(dir, "one", h) || !FirstJoin(dir, "two", h) || FirstJoin(dir, "two", h) || !FirstJoin(dir, "three", h) {
		t.Error("another build is said once")
	}
}

func TestLogIsBounded(t *testing.T) {
	dir := t.TempDir()
	log, err := openLog(LogFile(dir), 100)
	if err != nil {
		t.Fatal(err)
	}
	for range 50 {
		if _, err := log.Write([]byte("thirty bytes are in this line\n")); err != nil {
			t.Fatal(err)
		}
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != maxLogs {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, path := range LogFiles(dir) {
		info, err := os.Stat(path)
		if err != nil || info.Size() > 100 || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", path, info, err)
		}
	}
}

func TestEnvironments(t *testing.T) {
	dir := t.TempDir()
	e := newEnvironments(dir)
	run := &harnessv1.LocalRun{Namespace: "default", RunId: "r"}
	for _, path := range []string{"PATH=/a", "PATH=/b"} { // the newest counts
		if err := e.Put(&harnessv1.RunEnvironment{Run: run, Provider: map[string]string{"KEY": "secret"}, Commands: []string{path, "LANG=C"}}); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(dir, environmentsDir, "default", "r")
	raw, err := os.ReadFile(file)
	info, _ := os.Stat(file)
	if err != nil || strings.Contains(string(raw), "secret") || info.Mode().Perm() != 0o600 {
		t.Errorf("the file has %q, mode %v, %v", raw, info.Mode(), err)
	}
	next := newEnvironments(dir) // of another process
	if got := next.Commands("default/r"); !slices.Equal(got, []string{"PATH=/b", "LANG=C"}) || next.Provider("default/r") != nil || e.Provider("default/r")["KEY"] != "secret" {
		t.Errorf("another process has %v, %v", got, next.Provider("default/r"))
	}
	if err := e.Put(&harnessv1.RunEnvironment{Run: &harnessv1.LocalRun{Namespace: "..", RunId: "r"}}); err == nil {
		t.Error("a run outside of the folder is accepted")
	}
	e.Delete("default/r")
	if _, err := os.Stat(file); !os.IsNotExist(err) || e.Commands("default/r") != nil {
		t.Errorf("after the end of the run: %v", err)
	}
}

func TestChildHasNoKeys(t *testing.T) {
	got := Environ([]string{"OPENAI_API_KEY=k", "PATH=/bin", "LC_ALL=C", "SECRET=x", "HARNESS_DATA=/d"})
	if !slices.Equal(got, []string{"PATH=/bin", "LC_ALL=C"}) {
		t.Errorf("the process gets %v", got)
	}
}
