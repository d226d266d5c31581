package daemon

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/node"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

// environments are those of the runs, as their clients gave them. It is safe for concurrent
// use.
type environments struct {
	dir string // of the files

	mu       sync.Mutex
	provider map[string]map[string]string // by NAMESPACE/RUN
	commands map[string][]string          // from the files that were read
}

// newEnvironments returns those of a data directory.
func newEnvironments(data string) *environments {
	return &environments{dir: filepath.Join(data, environmentsDir), provider: map[string]map[string]string{}, commands: map[string][]string{}}
}

// forNode returns them as a node reads them.
func (e *environments) forNode() *node.Environments {
	return &node.Environments{Provider: e.Provider, Commands: e.Commands, Deleted: e.Delete}
}

// Put replaces the environment of a run.
func (e *environments) Put(env *harnessv1.RunEnvironment) error {
	namespace, id := env.GetRun().GetNamespace(), env.GetRun().GetRunId()
	if !runlog.Name.MatchString(namespace) || !runlog.Name.MatchString(id) {
		return errors.New("environment.run: must be a namespace and a run id")
	}
	run := namespace + "/" + id
	e.mu.Lock()
	defer e.mu.Unlock()
	e.provider[run] = maps.Clone(env.GetProvider())
	if e.provider[run] == nil {
		e.provider[run] = map[string]string{}
	}
	if slices.Equal(e.commands[run], env.GetCommands()) {
		return nil
	}
	path := e.path(run)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("environment of commands: %w", err)
	}
	if err := writeFile(path, []byte(strings.Join(env.GetCommands(), "\x00"))); err != nil {
		return fmt.Errorf("environment of commands: %w", err)
	}
	e.commands[run] = slices.Clone(env.GetCommands())
	return nil
}

// writeFile replaces a file of mode 0600.
func writeFile(path string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".new-") // 0600
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// Provider returns the variables of model providers of a run; nil if no client of this
// process has given any.
func (e *environments) Provider(run string) map[string]string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return maps.Clone(e.provider[run])
}

// Commands returns the environment of the commands of a run, nil if none is known.
func (e *environments) Commands(run string) []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	if have, ok := e.commands[run]; ok {
		return slices.Clone(have)
	}
	raw, err := os.ReadFile(e.path(run))
	if err != nil {
		return nil
	}
	e.commands[run] = strings.Split(string(raw), "\x00")
	return slices.Clone(e.commands[run])
}

// Delete forgets a run and deletes its file.
func (e *environments) Delete(run string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.provider, run)
	delete(e.commands, run)
	_ = os.Remove(e.path(run)) // it may have none
}

// All returns the environments in memory, for a successor.
func (e *environments) All() []*harnessv1.RunEnvironment {
	e.mu.Lock()
	defer e.mu.Unlock()
	var all []*harnessv1.RunEnvironment
	for run, provider := range e.provider {
		namespace, id, _ := strings.Cut(run, "/")
		all = append(all, &harnessv1.RunEnvironment{
			Run: &harnessv1.LocalRun{Namespace: namespace, RunId: id}, Provider: maps.Clone(provider), Commands: slices.Clone(e.commands[run]),
		})
	}
	return all
}

func (e *environments) path(run string) string { return filepath.Join(e.dir, filepath.FromSlash(run)) }
