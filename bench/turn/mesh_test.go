package turn

import (
	"bufio"
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runlog/jetstream"
	"github.com/harnessmesh/harnessmesh/test/kit/program"
)

var benched = runlog.Run{Namespace: "default", ID: "bench"}

// build makes the binary that is measured.
func build(b *testing.B) string {
	b.Helper()
	return program.Path(b)
}

// runMesh runs the scenario through the binary and returns what its process
// and the device did meanwhile.
func runMesh(ctx context.Context, b *testing.B, harness, data, mode string, env []string) effort {
	b.Helper()
	dir, script := workspace(b)
	serve := exec.CommandContext(ctx, harness, "serve", "--data", data, "--sync", mode, "--listen", "127.0.0.1:0", "--scripts", os.TempDir())
	serve.Env = append(append(os.Environ(), "HARNESS_LOG_LEVEL=error"), env...)
	stderr, err := serve.StderrPipe()
	must(b, err)
	must(b, serve.Start())
	defer func() { _ = serve.Process.Kill() }()
	address := ""
	lines := bufio.NewScanner(stderr)
	for address == "" && lines.Scan() {
		if rest, ok := strings.CutPrefix(lines.Text(), "ready role=gateway addr="); ok {
			address = rest
		}
	}
	if address == "" {
		b.Fatal("harness serve ended before its gateway was ready")
	}
	rest := make(chan struct{})
	go func() { // the pipe must not fill up
		defer close(rest)
		for lines.Scan() {
		}
	}()
	before := effortOf(b, serve.Process.Pid, data)
	run := exec.CommandContext(ctx, harness, "run", "--server", address, "--run-id", benched.ID,
		"--model", "script:"+script, "--agent", patient(b), "--workspace", dir, "--max-turns", "5000", "--max-tool-calls", "5000",
		"--output", "json", "read every file")
	var out, errs bytes.Buffer
	run.Stdout, run.Stderr = &out, &errs
	if err := run.Run(); err != nil {
		b.Fatalf("harness run: %v\n%s%s", err, out.String(), errs.String())
	}
	spent := effortOf(b, serve.Process.Pid, data).minus(before)
	must(b, serve.Process.Signal(syscall.SIGTERM))
	<-rest
	if err := serve.Wait(); err != nil {
		b.Fatalf("harness serve: %v", err)
	}
	return spent
}

// readLog reads a run's log out of the data directory.
func readLog(ctx context.Context, b *testing.B, data string, run runlog.Run) []runlog.Entry {
	b.Helper()
	server, err := jetstream.StartEmbedded(jetstream.EmbeddedConfig{Dir: filepath.Join(data, "nats")})
	must(b, err)
	defer server.Stop()
	log, err := server.Open(ctx, jetstream.Config{}, jetstream.Layout{})
	must(b, err)
	defer log.Close()
	view, err := log.View(ctx, run, 0)
	must(b, err)
	entries, err := runlog.Back(ctx, log, view.Newest, 0)
	must(b, err)
	return entries
}

// patient is an agent file for an agent that may read the same files again.
func patient(b *testing.B) string {
	path := filepath.Join(b.TempDir(), "agent.yaml")
	must(b, os.WriteFile(path, []byte("stall: {enabled: false}\n"), 0o600))
	return path
}
