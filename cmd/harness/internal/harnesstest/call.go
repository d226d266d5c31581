package harnesstest

import (
	"bytes"
	"flag"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/cli"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/console"
	"github.com/harnessmesh/harnessmesh/test/kit/storetest"
)

// Write writes a file of a test and returns its path.
func Write(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// Update makes tests write the golden files.
var Update = flag.Bool("update", false, "write the golden files again")

// Main lets the test binary be the program, for tests that need a process.
func Main(m *testing.M) {
	storetest.InMemory()
	if os.Getenv("HARNESS_TEST_AS_PROGRAM") != "" {
		os.Exit(cli.Main("dev"))
	}
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		_ = flag.Set("test.parallel", strconv.Itoa(max(parallel, runtime.GOMAXPROCS(0))))
	}
	os.Exit(m.Run())
}

// parallel is the least number of tests that run at the same time: they wait for processes and
// terminals most of their time.
const parallel = 6

// Outcome is what a run of the program left behind.
type Outcome struct {
	Code     int
	Out, Err string
}

// Call runs the program in this process.
func Call(t *testing.T, env map[string]string, stdin string, args ...string) Outcome {
	t.Helper()
	var out, errs bytes.Buffer
	if env == nil {
		env = map[string]string{}
	}
	if env["HOME"] == "" {
		env["HOME"] = t.TempDir()
	}
	if env["LANG"] == "" {
		env["LANG"] = "C.UTF-8"
	}
	code := cli.Run(args, console.Process{In: strings.NewReader(stdin), Out: &out, Err: &errs, Signals: make(chan os.Signal), Version: "dev"}, func(k string) string { return env[k] })
	return Outcome{code, out.String(), errs.String()}
}

// Golden compares a text with a file of testdata, and writes it with -update.
func Golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *Update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs\n got:\n%s\nwant:\n%s", path, got, want)
	}
}

// WithoutBus fails the test if a NATS server listens at the default address, which would be
// examined instead.
func WithoutBus(t *testing.T) {
	t.Helper()
	if conn, err := net.Dial("tcp", "127.0.0.1:4222"); err == nil {
		_ = conn.Close()
		t.Fatal("a server listens at 127.0.0.1:4222")
	}
}
