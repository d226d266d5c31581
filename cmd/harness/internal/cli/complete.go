package cli

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/backend"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/completion"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/console"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/exit"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/render"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/target"
)

// helpCmd prints the help of the program or of a verb, as --help does.
type helpCmd struct {
	Verb []string `arg:"" optional:"" help:"The verb, such as run or agent check. Default: the list of verbs."`
}

func (c *helpCmd) Run(_ context.Context, a *console.Console) (int, error) {
	node := a.Parser.Model.Node
	for i, name := range c.Verb {
		next := childOf(node, name)
		if next == nil {
			return exit.Error, fmt.Errorf("VERB: unknown verb %q: harness help lists them", strings.Join(c.Verb[:i+1], " "))
		}
		node = next
	}
	_, err := a.Parser.Parse(append(c.Verb, "--help")) // prints it and ends the program
	return exit.Error, err
}

// childOf returns the verb of a name below another; nil if there is none.
func childOf(n *kong.Node, name string) *kong.Node {
	for _, child := range n.Children {
		if child.Name == name && !child.Hidden {
			return child
		}
	}
	return nil
}

// completionCmd prints the script with which a shell completes command lines.
type completionCmd struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"The shell: bash, zsh or fish."`
}

func (c *completionCmd) Run(_ context.Context, a *console.Console) (int, error) {
	_, err := io.WriteString(a.Out, completion.Script(c.Shell))
	return exit.Done, err
}

// completeCmd answers the scripts of completionCmd.
type completeCmd struct {
	Words []string `arg:"" optional:"" passthrough:"" help:"The words after the program's name, up to the one under the cursor."`
}

const (
	// completionTime bounds how long a shell waits for ids of runs.
	completionTime = 3 * time.Second
	// completedRuns bounds the ids that a shell lists, the newest first.
	completedRuns = 100
)

func (c *completeCmd) Run(ctx context.Context, a *console.Console) (int, error) {
	if len(c.Words) > 0 && c.Words[0] == "--" {
		c.Words = c.Words[1:]
	}
	answer := completion.Complete(a.Parser.Model, c.Words)
	if answer.Kind == completion.Runs {
		answer.Words = runWords(ctx, a, answer.Flags)
	}
	_, err := io.WriteString(a.Out, answer.Text())
	return exit.Done, err
}

// runWords returns the ids of the newest runs. There are none if they cannot be listed: a
// completion prints no errors.
func runWords(ctx context.Context, a *console.Console, flags map[string]string) []completion.Word {
	ctx, cancel := context.WithTimeout(ctx, completionTime)
	defer cancel()
	a.Log = slog.New(slog.DiscardHandler)
	value := func(name string) string {
		if v, given := flags[name]; given {
			a.Given[name] = true
			return v
		}
		return a.Env(console.EnvName(name))
	}
	t := target.Target{
		Server: value("server"), TokenFile: value("token-file"), TLSCA: value("tls-ca"), Data: value("data"), Namespace: value("namespace"),
	}
	if t.Namespace == "" {
		t.Namespace = "default"
	}
	if t.Check(a) != nil {
		return nil
	}
	t.StartNone()
	session, err := t.Connect(ctx, a, backend.Read)
	if err != nil {
		return nil
	}
	defer target.Disconnect(ctx, a, session)
	var words []completion.Word
	for run, err := range t.Listed(ctx, session, nil, false, completedRuns) {
		if err != nil || len(words) == completedRuns {
			break
		}
		words = append(words, completion.Word{Text: run.GetRunId(), Help: strings.ToLower(render.StatusName(run.GetStatus())) + ": " + render.Short(run.GetGoal(), 60)})
	}
	return words
}

func (helpCmd) Help() string {
	return "Example:\n\n  harness help agent check"
}

func (completionCmd) Help() string {
	return "Examples:\n\n  source <(harness completion bash)\n  source <(harness completion zsh)\n  harness completion fish | source"
}
