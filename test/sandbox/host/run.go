//go:build linux

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/sandbox"
	"github.com/harnessmesh/harnessmesh/services/toolhost/confinement"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/command/process"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/supervisor"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/tools"
	"github.com/harnessmesh/harnessmesh/test/sandbox/job"
	"github.com/harnessmesh/harnessmesh/test/sandbox/wayout"
)

// attempt is a job while it is done.
type attempt struct {
	*host
	job    job.Job
	level  harnessv1.SandboxLevel
	target wayout.Target
	ways   []wayout.Way
	result job.Result
}

// run does a job: the ways without network by one command, those with network by another,
// and some by one each.
func (h *host) run(j job.Job) (job.Result, error) {
	h.jobs++
	result := job.Result{Ways: map[string]job.Outcome{}}
	level, err := sandbox.Parse(j.Level)
	if err != nil {
		return result, err
	}
	if j.Line != "" {
		return h.line(j, level)
	}
	stop, err := h.startVictim()
	if err != nil {
		return result, err
	}
	defer stop()
	for i, ways := range commands(j) {
		a := &attempt{host: h, job: j, level: level, target: h.target, ways: ways, result: result}
		a.target.Workspace = filepath.Join(h.base, fmt.Sprintf("workspace-%d-%d", h.jobs, i))
		a.target.Mark = fmt.Sprintf("harness-%d-%d-%d", os.Getpid(), h.jobs, i)
		if err := a.try(); err != nil {
			return result, err
		}
		if err := os.RemoveAll(a.target.Workspace); err != nil {
			return result, err
		}
	}
	return result, nil
}

// line runs the command line of a job, in a new workspace.
func (h *host) line(j job.Job, level harnessv1.SandboxLevel) (job.Result, error) {
	a := &attempt{host: h, job: j, level: level, target: h.target, ways: []wayout.Way{{}}}
	a.target.Workspace, a.target.Mark = filepath.Join(h.base, fmt.Sprintf("workspace-%d", h.jobs)), fmt.Sprintf("harness-%d-%d", os.Getpid(), h.jobs)
	if err := os.MkdirAll(a.target.Workspace, 0o755); err != nil {
		return a.result, err
	}
	defer func() { _ = os.RemoveAll(a.target.Workspace) }()
	if err := os.Link(filepath.Join(a.base, "attack"), filepath.Join(a.target.Workspace, "attack")); err != nil {
		return a.result, err
	}
	output, err := a.command(j.Line)
	a.result.Output = output
	return a.result, err
}

// commands returns the ways of a job, by command.
func commands(j job.Job) [][]wayout.Way {
	var plain, network []wayout.Way
	var all [][]wayout.Way
	for _, w := range wayout.All() {
		switch {
		case len(j.Ways) > 0 && !slices.Contains(j.Ways, w.Name):
		case w.Alone && j.Quick:
		case w.Alone:
			all = append(all, []wayout.Way{w})
		case w.Network:
			network = append(network, w)
		default:
			plain = append(plain, w)
		}
	}
	for _, ways := range [][]wayout.Way{plain, network} {
		if len(ways) > 0 {
			all = append(all, ways)
		}
	}
	return all
}

// try tries the ways of one command.
func (a *attempt) try() error {
	if err := os.MkdirAll(a.target.Workspace, 0o755); err != nil {
		return err
	}
	if err := os.Link(filepath.Join(a.base, "attack"), filepath.Join(a.target.Workspace, "attack")); err != nil {
		return err
	}
	a.prepare()
	if len(a.ways) == 0 {
		return nil
	}
	text, err := json.Marshal(a.target)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(a.target.Workspace, "target"), text, 0o644); err != nil {
		return err
	}
	line := "./attack try target"
	for _, w := range a.ways {
		line += " '" + strings.ReplaceAll(w.Name, "'", `'\''`) + "'"
	}
	output, err := a.command(line)
	if a.ways[0].Alone && err != nil {
		a.result.Ways[a.ways[0].Name] = job.Outcome{Error: err.Error()}
		return nil
	}
	if err != nil {
		return err
	}
	return a.observe(output)
}

// prepare makes what the ways are after, and leaves out those that cannot be tried.
func (a *attempt) prepare() {
	var ready []wayout.Way
	for _, w := range a.ways {
		t := a.target.For(w)
		err := t.Make()
		if err == nil && w.Prepare != nil {
			err = w.Prepare(t)
		}
		if err != nil {
			a.result.Ways[w.Name] = job.Outcome{NotTried: err.Error()}
			continue
		}
		ready = append(ready, w)
	}
	a.ways = ready
}

// command runs a command line at the level of the job and returns its output.
func (a *attempt) command(line string) (string, error) {
	if a.job.Service {
		return a.byService(line)
	}
	m := a.machine
	m.ABI = a.job.ABI
	own := filepath.Join(a.target.Data, "sandbox", fmt.Sprint(a.jobs))
	request := confinement.Request{
		Workspace: a.target.Workspace, Home: filepath.Join(own, "home"), Temporary: filepath.Join(own, "tmp"), Overlays: filepath.Join(own, "caches"),
		Hidden: a.target.Data, Config: a.config(a.ways[0]),
	}
	if a.job.WriteAbove {
		request.Config.Write = append(request.Config.Write, a.base)
	}
	made := confinement.Build(m, a.level, request)
	if err := makeFolders(request, made.Plan); err != nil {
		return "", err
	}
	a.edit(&made)
	if a.job.Processes > 0 {
		made.Plan.Bounds.Tasks = int(a.job.Processes)
	}
	ctx := context.Background()
	if a.job.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, a.job.Timeout)
		defer cancel()
	}
	var output bytes.Buffer
	exit, err := process.Run(ctx, process.Command{
		Line: line, Dir: a.target.Workspace, Environ: made.Environ, Plan: made.Plan, Mark: a.target.Mark, Output: head{&output},
	})
	if a.result.Code = exit.Code; a.job.Line != "" && err == nil && exit.Error == "" {
		if a.result.Ended = exit.Exceeded; exit.Stopped {
			a.result.Ended = "stopped"
		}
		return output.String(), nil
	}
	if err == nil && (exit.Error != "" || exit.Exceeded != "" || exit.Code != 0) {
		err = fmt.Errorf("the command ended with %+v: %s", exit, output.String())
	}
	return output.String(), err
}

// makeFolders makes the folders of a command, as a tool host does.
func makeFolders(r confinement.Request, p *process.Plan) error {
	err := errors.Join(os.MkdirAll(r.Home, 0o700), os.MkdirAll(r.Temporary, 0o700))
	if p == nil {
		return err
	}
	p.Overlays = slices.DeleteFunc(p.Overlays, func(o supervisor.Overlay) bool {
		err = errors.Join(err, os.MkdirAll(o.Upper, 0o700), os.MkdirAll(o.Work, 0o700), os.MkdirAll(o.Merged, 0o700))
		info, missing := os.Stat(o.Lower)
		return missing != nil || !info.IsDir()
	})
	return err
}

// byService runs a command line by the tool host.
func (a *attempt) byService(line string) (string, error) {
	arguments, err := json.Marshal(map[string]any{"command": line})
	if err != nil {
		return "", err
	}
	response, err := a.server.ExecuteTool(context.Background(), &harnessv1.ExecuteToolRequest{
		Namespace: "n", RunId: "r", CallId: a.target.Mark, FirstSequence: 1, Tool: tools.RunCommand, Arguments: string(arguments), Workspace: a.target.Workspace,
		Confinement: &harnessv1.Confinement{Level: a.level, Config: a.config(a.ways[0])},
	})
	if err != nil {
		return "", err
	}
	if response.GetIsError() || response.GetSandboxLevel() != a.level {
		return "", fmt.Errorf("at %s: %s", response.GetSandboxLevel(), response.GetResult())
	}
	return response.GetResult(), nil
}

// edit changes a confinement as the job wants it.
func (a *attempt) edit(c *confinement.Confinement) {
	if a.job.Inherit {
		c.Environ = append(os.Environ(), c.Environ...)
	}
	if len(a.job.LeaveOut) > 0 {
		c.Environ = append(c.Environ, "HARNESS_GUARDS_LEFT_OUT="+strings.Join(a.job.LeaveOut, ","))
	}
	p := c.Plan
	if p == nil {
		return
	}
	p.Read, p.Write, p.Device = append(p.Read, a.expandAll(a.job.Read)...), append(p.Write, a.expandAll(a.job.Write)...), append(p.Device, a.job.Device...)
	if a.job.Unbounded {
		p.Bounds = nil
	}
	if len(p.Bwrap) == 0 {
		return
	}
	for _, drop := range a.job.Drop {
		p.Bwrap = dropArguments(p.Bwrap, strings.Fields(a.expand(drop)))
	}
	p.Bwrap = append(p.Bwrap, strings.Fields(a.expand(strings.Join(a.job.Insert, " ")))...)
}

// expand replaces the names of folders in an edit.
func (a *attempt) expand(text string) string {
	own := filepath.Join(a.target.Data, "sandbox", fmt.Sprint(a.jobs))
	return strings.NewReplacer("$DATA", a.target.Data, "$HOME", a.target.Home, "$OWN", own).Replace(text)
}

func (a *attempt) expandAll(all []string) []string {
	out := make([]string, len(all))
	for i, text := range all {
		out[i] = a.expand(text)
	}
	return out
}

// dropArguments removes each occurrence of arguments.
func dropArguments(argv, drop []string) []string {
	var kept []string
	for i := 0; i < len(argv); {
		if i+len(drop) <= len(argv) && slices.Equal(argv[i:i+len(drop)], drop) {
			i += len(drop)
			continue
		}
		kept = append(kept, argv[i])
		i++
	}
	return kept
}

// observe reads the output of the program, and looks at its effects.
func (a *attempt) observe(output string) error {
	errs := map[string]string{}
	lines := bufio.NewScanner(strings.NewReader(output))
	for lines.Scan() {
		var line struct{ Name, Error string }
		if json.Unmarshal(lines.Bytes(), &line) == nil && line.Name != "" {
			errs[line.Name] = line.Error
		}
	}
	a.target.Received, a.target.Signals = a.messages(), a.pending()
	for _, w := range a.ways {
		text, found := errs[w.Name]
		if !found {
			return fmt.Errorf("%s was not tried: %s", w.Name, output)
		}
		open := text == ""
		if w.Seen != nil {
			seen := w.Seen(a.target.For(w))
			switch {
			case open && !seen:
				open, text = false, "no effect"
			case !open && seen:
				return fmt.Errorf("%s got %s, and had its effect", w.Name, text)
			}
		}
		if w.Clean != nil {
			w.Clean(a.target.For(w))
		}
		a.result.Ways[w.Name] = job.Outcome{Open: open, Error: text}
	}
	return nil
}

// maxOutput bounds the part of an output that is kept.
const maxOutput = 1 << 20

// head keeps the beginning of an output.
type head struct{ to *bytes.Buffer }

func (b head) Write(p []byte) (int, error) {
	if b.to.Len() < maxOutput {
		return b.to.Write(p)
	}
	return len(p), nil
}
