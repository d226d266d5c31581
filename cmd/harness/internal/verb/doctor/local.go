package doctor

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/backend"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/console"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/daemon"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/exit"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/node"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/render"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/runspec"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/servers"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model/catalogue"
	"github.com/harnessmesh/harnessmesh/pkg/model/provider"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

// examination is the report of the doctor on a machine without a mesh. It has no key and no
// part of one.
type examination struct {
	Version string `json:"version"`
	Schema  uint32 `json:"schema"`
	Go      string `json:"go"`
	// Keys are the providers of whose variables one is set.
	Keys []keyRow `json:"keys"`
	// Model is what harness run uses without --model; empty if there is none.
	Model   string     `json:"model"`
	Data    dataRow    `json:"data"`
	Sandbox sandboxRow `json:"sandbox"`
	// Problems keep harness run from working, or soon will.
	Problems []string `json:"problems"`
}

// keyRow is a provider that the environment configures.
type keyRow struct {
	Provider string `json:"provider"`
	// Variables are those that are set.
	Variables []string `json:"variables"`
	// Problem is why its models cannot be used; empty if they can.
	Problem string `json:"problem,omitempty"`
}

// dataRow is the data directory.
type dataRow struct {
	Dir    string `json:"dir"`
	Exists bool   `json:"exists"`
	InUse  bool   `json:"in_use"`
	// Bytes are stored in it; FreeBytes are free where it is, 0 if that is unknown.
	Bytes     uint64 `json:"bytes"`
	FreeBytes uint64 `json:"free_bytes"`
}

const (
	// leastFree is the free space below which a run may fail, in bytes.
	leastFree = 1 << 30
	// busTime bounds the search for a NATS server at the default address.
	busTime = 300 * time.Millisecond
)

// here reports whether the machine is examined instead of a mesh: no flag names a bus, and
// none listens at the default address.
func (c *Cmd) here(a *console.Console) bool {
	for _, flag := range []string{"nats", "nats-creds", "nats-wait"} {
		if a.Given[flag] || a.Inherited[flag] {
			return false
		}
	}
	bus, err := url.Parse(c.NATS)
	if err != nil {
		return false
	}
	conn, err := net.DialTimeout("tcp", bus.Host, busTime)
	if err != nil {
		return true
	}
	_ = conn.Close()
	return false
}

// examine examines this machine for runs without a mesh.
func (c *Cmd) examine(ctx context.Context, a *console.Console) (int, error) {
	models, err := a.Models()
	if err != nil {
		return exit.Error, err
	}
	e := examination{Version: a.Version, Schema: runlog.Schema, Go: runtime.Version(), Keys: keyRows(models, a.Env), Problems: []string{}, Sandbox: examineSandbox(ctx)}
	for _, row := range e.Keys {
		if row.Problem != "" {
			e.Problems = append(e.Problems, row.Problem)
		}
	}
	if e.Model, err = usedModel(ctx, models, a.Env); err != nil {
		e.Problems = append(e.Problems, err.Error())
	}
	var problem error
	if e.Data, problem = c.examineData(ctx, a); problem != nil {
		e.Problems = append(e.Problems, problem.Error())
	}
	if free := e.Data.FreeBytes; free > 0 && free < leastFree {
		e.Problems = append(e.Problems, fmt.Sprintf("%s are free for %s: a run may need more than %s; delete runs with `harness delete --older-than 30d`, or use another --data",
			bytesText(free), e.Data.Dir, bytesText(leastFree)))
	}
	servers, err := c.examineServers(ctx, a, e.Data.Dir)
	if err != nil {
		return exit.Error, err
	}
	e.Problems = append(e.Problems, servers...)
	if err := c.showExamination(a, e); err != nil {
		return exit.Error, err
	}
	if len(e.Problems) > 0 {
		return exit.Error, nil
	}
	return exit.Done, nil
}

// examineServers connects to the servers over HTTP of the files, and returns a problem for each that is not ready.
func (c *Cmd) examineServers(ctx context.Context, a *console.Console, data string) (problems []string, err error) {
	if c.Agent == "" && len(c.MCP) == 0 {
		return nil, nil
	}
	flags := servers.RemoteServers(c.Agent, c.MCP, servers.TokensOf(data))
	_, described, err := flags.Describe(ctx, a, true)
	for _, d := range described {
		if d.GetState() != harnessv1.McpServerState_MCP_SERVER_STATE_READY {
			problems = append(problems, fmt.Sprintf("server %s: %s", d.GetServer(), cmp.Or(d.GetMessage(), "it did not respond")))
		}
	}
	return problems, err
}

// keyRows returns the providers of the catalogue of which the environment has a variable.
func keyRows(models *catalogue.Catalogue, env func(string) string) []keyRow {
	rows := []keyRow{}
	for _, p := range models.Providers() {
		row := keyRow{Provider: p.Name}
		for _, name := range []string{p.KeyVariable, p.AddressVariable} {
			if name != "" && env(name) != "" {
				row.Variables = append(row.Variables, name)
			}
		}
		if len(row.Variables) == 0 {
			continue
		}
		if _, _, err := provider.OpenWith(models, p.Name+":any", env); err != nil {
			row.Problem = err.Error()
		}
		rows = append(rows, row)
	}
	return rows
}

// usedModel returns the model that harness run uses without --model. Where none is named, the
// provider lists its models, which it does only for a key that it accepts.
func usedModel(ctx context.Context, models *catalogue.Catalogue, env func(string) string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, runspec.ChooseTime)
	defer cancel()
	ref, _, err := provider.Resolve(ctx, models, env(console.EnvName("model")), env)
	if errors.Is(err, provider.ErrNoModel) {
		return "", err
	}
	if err == nil {
		_, _, err = provider.OpenWith(models, ref, env)
	}
	if err != nil {
		return ref, fmt.Errorf("model: %w", err)
	}
	return ref, nil
}

// examineData examines the data directory. It does not create it.
func (c *Cmd) examineData(ctx context.Context, a *console.Console) (row dataRow, problem error) {
	row.Dir = c.Data
	if row.Dir == "" {
		dir, err := backend.DefaultData(a.Env)
		if err != nil {
			return row, err
		}
		row.Dir = dir
	}
	info, err := os.Stat(row.Dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		row.FreeBytes, _ = daemon.FreeBytes(existing(row.Dir))
		return row, nil // the first run makes it
	case err != nil:
		return row, fmt.Errorf("data directory: %w", err)
	case !info.IsDir():
		return row, fmt.Errorf("data directory %s is a file: use another --data", row.Dir)
	}
	row.Exists, row.Bytes = true, storedBytes(row.Dir)
	row.FreeBytes, _ = daemon.FreeBytes(row.Dir)
	conn, held, err := node.Attach(ctx, row.Dir)
	if row.InUse = held; held {
		_ = conn.Close()
		return row, nil
	}
	if err != nil {
		return row, err
	}
	probe, err := os.CreateTemp(row.Dir, ".doctor-")
	if err != nil {
		return row, fmt.Errorf("data directory %s cannot be written: its runs can be listed, shown and watched only", row.Dir)
	}
	return row, cmp.Or(probe.Close(), os.Remove(probe.Name()))
}

// existing returns the nearest folder around a path that exists.
func existing(path string) string {
	for at := path; ; at = filepath.Dir(at) {
		if _, err := os.Stat(at); err == nil || at == filepath.Dir(at) {
			return at
		}
	}
}

// storedBytes returns the size of the files below a folder, as far as they can be read.
func storedBytes(dir string) (total uint64) {
	_ = filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return nil
		}
		if info, err := entry.Info(); err == nil {
			total += uint64(max(info.Size(), 0))
		}
		return nil
	})
	return total
}

// bytesText returns a size for people.
func bytesText(n uint64) string {
	if n < 1<<30 {
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
}

func (c *Cmd) showExamination(a *console.Console, e examination) error {
	if c.Output == "json" {
		raw, err := json.Marshal(e)
		if err != nil {
			return err
		}
		return console.Emit(a.Out, raw)
	}
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	line := func(name, format string, args ...any) {
		_, _ = fmt.Fprintf(w, "%s\t%s\n", name, fmt.Sprintf(format, args...))
	}
	line("version", "harness %s, schema %d, %s", e.Version, e.Schema, e.Go)
	for _, row := range e.Keys {
		state := "set"
		if row.Problem != "" {
			state = "not usable"
		}
		line("key", "%s: %s %s", row.Provider, strings.Join(row.Variables, ", "), state)
	}
	if len(e.Keys) == 0 {
		line("key", "none is set")
	}
	line("model", "%s", cmp.Or(e.Model, "none"))
	line("data", "%s: %s", e.Data.Dir, e.Data.text())
	line("disk", "%s", said(e.Data.FreeBytes, "%s free", bytesText(e.Data.FreeBytes)))
	line("sandbox", "%s", e.Sandbox.text())
	for _, problem := range e.Problems {
		line("problem:", "%s", console.OneLine(problem))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprint(a.Out, render.Clean(text.String()))
	return err
}

// text describes the data directory.
func (r dataRow) text() string {
	switch {
	case !r.Exists:
		return "not there yet; the first run makes it"
	case r.InUse:
		return bytesText(r.Bytes) + ", in use by a process that answers"
	}
	return bytesText(r.Bytes) + ", not in use"
}
