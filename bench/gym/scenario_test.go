package gym

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// Kinds of models.
const (
	listens  = "listens"  // fails until it gets a specific message
	stubborn = "stubborn" // fails whatever it gets
	healthy  = "healthy"  // does not fail
	limit    = "limit"    // what the harness does not see
)

// Verdicts of the harness.
const (
	accepted    = "DONE agent_done accepted"
	notAccepted = "DONE agent_done"
	outOfTurns  = "DONE max_turns"
	doomLoop    = "STALLED doom_loop"
	stalledRun  = "STALLED stalled"
)

// scenario is a model at a task.
type scenario struct {
	// name is short, for the test; it is the same for the kinds of a failing model.
	name string
	// what describes the model, for the table.
	what string
	kind string
	goal string
	// files are in the workspace before the work begins.
	files map[string]string
	model model
	// spec changes the spec of the run.
	spec []func(*harnessv1.RunSpec)
	// really checks the workspace and reports whether the task is done. It knows nothing of
	// contracts and of what was said.
	really func(w *world) bool
	// verdict is the right one, and by what the harness must have done on the way;
	// empty for healthy models.
	verdict, by string
	// bareTells is true if a bare loop also sends the message that the model reacts to.
	bareTells bool
	// instead is what to do about a limit.
	instead string
	// answer is what the user says in the bare loop; attend is the user of the harness
	// once the run waits.
	answer string
	attend func(ctx context.Context, r *meshRun)
}

// failing makes the scenarios of a failing model: one that listens, and one that is
// stubborn. The model is made with whether it listens.
func failing(s scenario, m func(listening bool) model, listensTo string, verdict, by string) []*scenario {
	a, b := s, s
	a.kind, a.model, a.verdict, a.by = listens, m(true), accepted, listensTo
	b.kind, b.model, b.verdict, b.by = stubborn, m(false), verdict, by
	return []*scenario{&a, &b}
}

// world is what a run leaves behind.
type world struct {
	dir string
	// artifacts by work item.
	artifacts map[string]string
	// summary of the work, as the model gave it.
	summary string
}

// newWorld makes a folder with files.
func newWorld(t *testing.T, files map[string]string) *world {
	t.Helper()
	w := &world{dir: t.TempDir(), artifacts: map[string]string{}}
	for path, content := range files {
		if err := os.WriteFile(filepath.Join(w.dir, path), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

// file is the content of a file; empty when it is not there.
func (w *world) file(path string) string {
	text, _ := os.ReadFile(filepath.Join(w.dir, path))
	return string(text)
}

// has reports whether all of the files exist and are not empty.
func (w *world) has(paths ...string) bool {
	for _, p := range paths {
		if strings.TrimSpace(w.file(p)) == "" {
			return false
		}
	}
	return true
}

// matches reports whether a file contains text of a form.
func (w *world) matches(path, form string) bool {
	return regexp.MustCompile(form).MatchString(w.file(path))
}

func contract(outputs ...*harnessv1.RequiredOutput) func(*harnessv1.RunSpec) {
	return func(spec *harnessv1.RunSpec) {
		spec.Contract = &harnessv1.TaskContract{Goal: content.Text(spec.GetGoal()), RequiredOutputs: outputs}
	}
}

// thereIs is an output: a file.
func thereIs(path string) *harnessv1.RequiredOutput {
	return &harnessv1.RequiredOutput{Id: path, Description: path + " is there", Predicate: &harnessv1.Predicate{
		Type: harnessv1.PredicateType_PREDICATE_TYPE_FILE_EXISTS, Path: path,
	}}
}

// holdsText is an output: text in a place.
func holdsText(id, in, pattern string) *harnessv1.RequiredOutput {
	return &harnessv1.RequiredOutput{Id: id, Description: "The text is there", Predicate: &harnessv1.Predicate{
		Type: harnessv1.PredicateType_PREDICATE_TYPE_CONTAINS_TEXT, In: in, Pattern: pattern,
	}}
}

// succeeds is an output: a command that exits with 0.
func succeeds(id, command string) *harnessv1.RequiredOutput {
	return &harnessv1.RequiredOutput{Id: id, Description: "The command succeeds: " + command, Predicate: &harnessv1.Predicate{
		Type: harnessv1.PredicateType_PREDICATE_TYPE_COMMAND_SUCCEEDS, Command: command,
	}}
}

// withItems switches work items on; the run begins with those of the titles.
func withItems(titles ...string) func(*harnessv1.RunSpec) {
	return func(spec *harnessv1.RunSpec) {
		spec.Config.WorkItems = &harnessv1.WorkItemConfig{Enabled: proto.Bool(true)}
		for _, title := range titles {
			spec.Agent.WorkItemTemplates = append(spec.Agent.WorkItemTemplates, &harnessv1.WorkItemTemplate{Title: title})
		}
	}
}

// inMode starts the run in a mode of work.
func inMode(name string) func(*harnessv1.RunSpec) {
	return func(spec *harnessv1.RunSpec) { spec.Agent.Mode = name }
}
