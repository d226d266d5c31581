package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/console"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/demo"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/exit"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/runspec"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/target"
)

// DemoCmd runs a scripted agent on a small broken program.
type DemoCmd struct {
	Output string `enum:"text,json,jsonl" default:"text" help:"As in run."`
	Render string `enum:"auto,markdown,plain" default:"auto" help:"As in run."`
	Keep   bool   `help:"Keep the fixed program and the data of the run. Default: they are deleted at the end."`
}

// demoPrefix is the prefix of the folders of demos, which are temporary.
const demoPrefix = "harness-demo-"

// demoAge is the age of a folder that an interrupted demo has left, after which it is deleted.
const demoAge = 24 * time.Hour

// removeOldDemos deletes the folders that interrupted demos of this user have left.
func removeOldDemos(now time.Time) {
	old, _ := filepath.Glob(filepath.Join(os.TempDir(), demoPrefix+"*"))
	for _, dir := range old {
		if info, err := os.Lstat(dir); err == nil && info.IsDir() && now.Sub(info.ModTime()) > demoAge {
			_ = os.RemoveAll(dir) // one of another user stays
		}
	}
}

func (c *DemoCmd) Run(ctx context.Context, a *console.Console) (int, error) {
	if _, err := exec.LookPath("go"); err != nil {
		return exit.Error, errors.New("no go command on PATH, which the demo needs to run the tests of a small Go program: install Go, or try `harness run` with a model")
	}
	removeOldDemos(time.Now())
	root, err := os.MkdirTemp("", demoPrefix)
	if err != nil {
		return exit.Error, fmt.Errorf("demo: %w", err)
	}
	place, err := demo.Write(root)
	if err != nil {
		return exit.Error, err
	}
	tell := func(format string, args ...any) {
		if c.Output == "text" {
			fmt.Fprintf(a.Err, format+"\n", args...)
		}
	}
	tell("A shop's till adds up wrongly, and its test fails. An agent gets the task to fix it.")
	tell("The model is scripted, so no key is needed; everything else is real: the loop, its log,")
	tell("the tools, the test runs. This is the same as")
	tell("  harness run --workspace %s --model script:%s \\", target.Quote(place.Workspace), target.Quote(place.Script))
	tell("    --data %s --allow run_command %s", target.Quote(place.Data), target.Quote(demo.Goal))
	tell("")
	a.Given["data"] = true // the commands that are suggested need it
	run := &Cmd{
		Flags:  runspec.Flags{Model: "script:" + place.Script, Workspace: place.Workspace, Allow: []string{"run_command"}},
		Target: target.Target{Data: place.Data, Namespace: "default"},
		Output: c.Output,
		Render: c.Render,
		Goal:   []string{demo.Goal},
	}
	code, err := run.Run(ctx, a)
	if err != nil || code != exit.Done {
		return code, err // a run that is parked can be resumed
	}
	tell("")
	if c.Keep {
		tell("The fixed program is in %s. List the run with", target.Quote(place.Workspace))
		tell("  harness list --data %s", target.Quote(place.Data))
	} else {
		if err := os.RemoveAll(root); err != nil {
			return exit.Error, fmt.Errorf("demo: %w", err)
		}
		tell("The program and the run are deleted; harness demo --keep keeps them.")
	}
	tell("With your model, in your directory:")
	tell("  export OPENAI_API_KEY=...    # or ANTHROPIC_API_KEY, or OPENAI_BASE_URL=http://127.0.0.1:11434/v1 for a compatible server")
	tell("  harness run --model openai:gpt-5 'Find out why the tests fail and fix the program.'")
	return code, nil
}

func (DemoCmd) Help() string {
	return "Example:\n\n  harness demo"
}
