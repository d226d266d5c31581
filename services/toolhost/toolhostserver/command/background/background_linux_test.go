package background

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/sandbox"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/command"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/guard"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/ledger"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/places"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/trust"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/workspace"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// room is the room with all that it needs, on a ledger.
type room struct {
	*Commands
	t      *testing.T
	ledger *ledger.Ledger
	dir    string
	// former counts the calls of KillFormer.
	former int
}

// openRoom opens a room on the ledger in a folder.
func openRoom(t *testing.T, dir string) *room {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	l, err := ledger.Open(dir, false, time.Hour, log)
	if err != nil {
		t.Fatal(err)
	}
	r := &room{t: t, ledger: l, dir: t.TempDir()}
	repositories := guard.New(guard.Config{Dir: dir, Hidden: dir, Logger: log})
	t.Cleanup(repositories.Close)
	r.Commands = New(Config{
		Dir: dir, Entries: ledger.NewEntries(l, 1<<20, log), Logger: log,
		Commands: command.New(command.Config{Dir: filepath.Join(dir, "sandbox"), Data: dir, Mark: func() string { return "test" }, Logger: log}),
		Guard:    repositories, Places: places.New(trust.Open(dir), log), Open: workspace.Open,
		KillFormer: func() error { r.former++; return nil },
	})
	return r
}

// shut closes the room and its ledger.
func (r *room) shut() {
	r.t.Helper()
	r.Close()
	r.Wait()
	if err := r.ledger.Close(); err != nil {
		r.t.Error(err)
	}
}

// start starts a command of run "run" without a sandbox.
func (r *room) start(id, line string, limit time.Duration) Launch {
	r.t.Helper()
	launch, err := r.Start(context.Background(), Call{
		Key: ledger.CallKey("run", id), Run: "run", ID: id, Workspace: r.dir, Confinement: &harnessv1.Confinement{Level: sandbox.Off},
	}, line, limit)
	if err != nil {
		r.t.Fatal(err)
	}
	return launch
}

func (r *room) read(id string, wait time.Duration) Output {
	r.t.Helper()
	out, err := r.Read(context.Background(), "run", Query{ID: id, Limit: 1 << 10, Wait: wait})
	if err != nil {
		r.t.Fatal(err)
	}
	return out
}

// TestEndsAreStored: what ended by itself, was stopped, or died with its host.
func TestEndsAreStored(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := openRoom(t, dir)
	if launch := r.start("a", "echo out; exit 3", 0); launch.Command.GetId() != "bg1" || launch.Command.GetLedgerId() != r.ledger.ID {
		t.Errorf("got %+v", launch)
	}
	r.start("b", "sleep 3600", 0)
	r.start("c", "sleep 3600", 0)
	for r.read("bg1", time.Minute).End == "" {
		r.read("bg1", time.Minute)
	}
	if out := r.read("bg1", 0); out.Text != "out\n" || out.End != "exit code 3" || out.Next != 4 {
		t.Errorf("got %+v", out)
	}
	if end, known, err := r.Stop(context.Background(), "run", "bg2"); end != "killed" || known != nil || err != nil {
		t.Errorf("got %q, %v, %v", end, known, err)
	}
	if out := r.read("none", 0); !out.Unknown || strings.Join(out.Known, " ") != "bg1 bg2 bg3" {
		t.Errorf("got %+v", out)
	}
	if lines := r.Lines(); len(lines) != 1 || lines[0] != (Line{Run: "run", Text: "sleep 3600"}) {
		t.Errorf("got %+v", lines)
	}
	r.shut()
	if _, err := r.Start(context.Background(), Call{Run: "run"}, "true", 0); err == nil {
		t.Error("a command started in a room that is closed")
	}

	next := openRoom(t, dir)
	defer next.shut()
	states, err := next.Kill(context.Background(), "run", false)
	if err != nil {
		t.Fatal(err)
	}
	var ends []string
	for _, s := range states {
		ends = append(ends, s.GetEnd())
	}
	const want = "exit code 3|killed|its end is not known: the tool host died, and everything that it had started is dead"
	if got := strings.Join(ends, "|"); got != want || next.former != 1 {
		t.Errorf("got %q, and %d kills of processes of former hosts", got, next.former)
	}
	if out := next.read("bg1", 0); out.Text != "out\n" {
		t.Errorf("the output is lost: %+v", out)
	}
}

// TestACommandThatDoesNotBegin is not known, and has no output.
func TestACommandThatDoesNotBegin(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := openRoom(t, dir)
	defer r.shut()
	r.dir = filepath.Join(dir, "missing")
	if launch := r.start("a", "true", 0); launch.Command != nil || launch.Exit.Error != "no such file or folder" {
		t.Errorf("got %+v", launch)
	}
	if out := r.read("bg1", 0); !out.Unknown || out.Known != nil {
		t.Errorf("got %+v", out)
	}
	r.Commands.running.Wait()
	if files, _ := filepath.Glob(filepath.Join(dir, "output/*/*")); files != nil {
		t.Errorf("%v are left", files)
	}
}

// TestACommandAtItsLimit is killed, and its end has the limit.
func TestACommandAtItsLimit(t *testing.T) {
	t.Parallel()
	r := openRoom(t, t.TempDir())
	defer r.shut()
	r.start("a", "sleep 3600", 50*time.Millisecond)
	if out := r.read("bg1", time.Minute); out.End != "killed: it had not ended after 50ms" {
		t.Errorf("got %+v", out)
	}
}

// TestOutputsOfRunsThatAreNotInTheLedgerAreRemoved when a room opens.
func TestOutputsOfRunsThatAreNotInTheLedgerAreRemoved(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := openRoom(t, dir)
	r.start("a", "true", 0)
	r.shut()
	lost := outputs(filepath.Join(dir, "output")).path("another", "bg1")
	if err := errors.Join(os.MkdirAll(filepath.Dir(lost), 0o700), os.WriteFile(lost, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	openRoom(t, dir).shut()
	if files, _ := filepath.Glob(filepath.Join(dir, "output/*/*")); len(files) != 1 || files[0] == lost {
		t.Errorf("%v are left", files)
	}
}

// TestOutputNeverStops the command, whatever becomes of its file, and lines are whole.
func TestOutputNeverStops(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "run", "bg1")
	o, err := openOutput(path)
	if err != nil {
		t.Fatal(err)
	}
	_, _, grown := o.state()
	if n, err := o.Write([]byte("one\ntwo\n")); n != 8 || err != nil {
		t.Errorf("got %d, %v", n, err)
	}
	<-grown
	if text, next, left, err := readOutput(path, 0, 6); text != "one\n" || next != 4 || left != 4 || err != nil {
		t.Errorf("got %q, %d, %d, %v", text, next, left, err)
	}
	if err := o.close(); err != nil {
		t.Fatal(err)
	}
	if n, err := o.Write([]byte("more")); n != 4 || err != nil {
		t.Errorf("got %d, %v", n, err)
	}
	if size, dropped, _ := o.state(); size != 8 || dropped != 4 || !strings.HasSuffix(o.tailText(), "more") {
		t.Errorf("got %d, %d, %q", size, dropped, o.tailText())
	}
	if text, next, left, err := readOutput(path+".none", 3, 6); text != "" || next != 3 || left != 0 || err != nil {
		t.Errorf("a missing file: %q, %d, %d, %v", text, next, left, err)
	}
}

// TestProgressIsReadAsItsLastFrame: a read continues after frames that are drawn over, and the offset
// counts all bytes of the output.
func TestProgressIsReadAsItsLastFrame(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "run", "bg1")
	o, err := openOutput(path)
	if err != nil {
		t.Fatal(err)
	}
	const limit = 100
	frames, lines := strings.Repeat("\rframe", 5000), strings.Repeat("a line\n", 50)
	for _, part := range []string{"begin\n", frames, "\rlast!!\n", lines} {
		_, _ = o.Write([]byte(part))
	}
	if err := o.close(); err != nil {
		t.Fatal(err)
	}
	got, reads := "", 0
	for offset, left := int64(0), int64(1); left > 0; reads++ {
		var text string
		before := offset
		if text, offset, left, err = readOutput(path, offset, limit); err != nil || offset <= before || len(text) > limit {
			t.Fatalf("a read at %d: %q, next %d, %v", before, text, offset, err)
		}
		got += text
	}
	if strings.Count(got, "frame") > reads || !strings.Contains(got, "last!!\n") || !strings.HasSuffix(got, lines) || reads > 12 {
		t.Errorf("%d reads: %q", reads, got)
	}
	if tail := o.tailText(); !strings.Contains(tail, "begin\nlast!!\na line\n") {
		t.Errorf("the tail is %q", tail)
	}
}
