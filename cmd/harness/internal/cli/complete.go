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
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/exit"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/render"
)

// helpCmd prints the help of the program or of a verb, as --help does.
type helpCmd struct {
	Verb []string `arg:"" optional:"" help:"The verb, such as run or agent check. Default: the list of verbs."`
}

func (c *helpCmd) run(_ context.Context, a *app) (int, error) {
	node := a.parser.Model.Node
	for i, name := range c.Verb {
		next := childOf(node, name)
		if next == nil {
			return exit.Error, fmt.Errorf("VERB: unknown verb %q: harness help lists them", strings.Join(c.Verb[:i+1], " "))
		}
		node = next
	}
	_, err := a.parser.Parse(append(c.Verb, "--help")) // prints it and ends the program
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

func (c *completionCmd) run(_ context.Context, a *app) (int, error) {
	_, err := io.WriteString(a.out, completion.Script(c.Shell))
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

func (c *completeCmd) run(ctx context.Context, a *app) (int, error) {
	if len(c.Words) > 0 && c.Words[0] == "--" {
		c.Words = c.Words[1:]
	}
	answer := completion.Complete(a.parser.Model, c.Words)
	if answer.Kind == completion.Runs {
		answer.Words = runWords(ctx, a, answer.Flags)
	}
	_, err := io.WriteString(a.out, answer.Text())
	return exit.Done, err
}

// runWords returns the ids of the newest runs. There are none if they cannot be listed: a
// completion prints no errors.
func runWords(ctx context.Context, a *app, flags map[string]string) []completion.Word {
	ctx, cancel := context.WithTimeout(ctx, completionTime)
	defer cancel()
	a.log = slog.New(slog.DiscardHandler)
	value := func(name string) string {
		if v, given := flags[name]; given {
			a.given[name] = true
			return v
		}
		return a.env(envName(name))
	}
	t := target{
		Server: value("server"), TokenFile: value("token-file"), TLSCA: value("tls-ca"), Data: value("data"), Namespace: value("namespace"),
	}
	if t.Namespace == "" {
		t.Namespace = "default"
	}
	if t.check(a) != nil {
		return nil
	}
	t.startNone()
	session, err := t.connect(ctx, a, backend.Read)
	if err != nil {
		return nil
	}
	defer disconnect(ctx, a, session)
	var words []completion.Word
	for run, err := range t.listed(ctx, session, nil, false, completedRuns) {
		if err != nil || len(words) == completedRuns {
			break
		}
		words = append(words, completion.Word{Text: run.GetRunId(), Help: strings.ToLower(render.StatusName(run.GetStatus())) + ": " + render.Short(run.GetGoal(), 60)})
	}
	return words
}
