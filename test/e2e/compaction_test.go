package e2e

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/harnessmesh/harnessmesh/test/kit/modeltest"
)

// smallWindow is a window, in tokens, that the instructions and tools fill by half.
const smallWindow = 10_000

// The book that the runs read: a chapter has a secret that no note repeats.
const (
	chapters      = 40
	secretChapter = 2
	secret        = "KEY-7431"
)

// reader is a model that reads a chapter a turn and takes notes, until enough returns true.
// Then it reads back the chapter with the secret and completes with what it has read. It
// also makes the summaries.
type reader struct {
	notes     int // sentences that it writes about each chapter
	enough    func(view string) bool
	summarize func(n int, req *modeltest.Request) modeltest.Reply

	mu              sync.Mutex
	turns, jobs     int
	readsBack, done bool
	last            string // request for a turn
}

// record begins the message that shows a summary.
const record = "[harness] Record of messages"

// note is a sentence that the reader writes about each chapter, several times.
const note = "The weather is fair and the ship makes way under full sail. "

func (r *reader) reply(req *modeltest.Request) modeltest.Reply {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(req.Tools) == 0 {
		r.jobs++
		return r.summarize(r.jobs, req)
	}
	r.turns++
	var all strings.Builder
	for _, m := range req.Messages {
		all.WriteString(m.Content + "\n")
	}
	r.last = all.String()
	ref := "m2-m20" // of everything at first
	if named := secretRef.FindStringSubmatch(r.last); named != nil {
		ref = named[1]
	}
	switch {
	case r.done:
		return modeltest.Reply{Text: "It is done."}
	case r.readsBack:
		r.done = true
		return modeltest.Reply{Calls: []modeltest.Call{call("", "work_complete", fmt.Sprintf(`{"summary":%q}`, "The key is "+key.FindString(r.last)))}}
	case r.turns <= chapters && !r.enough(r.last):
		return modeltest.Reply{Text: fmt.Sprintf("Chapter %d. %s", r.turns, strings.Repeat(note, r.notes)), Calls: []modeltest.Call{
			call("", "read_file", fmt.Sprintf(`{"path":"chapter-%02d.txt"}`, r.turns))}}
	}
	r.readsBack = true
	return modeltest.Reply{Calls: []modeltest.Call{call("", "read_artifact", fmt.Sprintf(`{"ref":%q,"pattern":"KEY"}`, ref))}}
}

var (
	secretRef = regexp.MustCompile(`has the key of the vault\. \((m\d+)\)`)
	key       = regexp.MustCompile(`KEY-\d+`)
	numbered  = regexp.MustCompile(`#(\d+) result of read_file:\n[^#]*KEY-`)
)

// goodSummary returns a summary that names the chapter with the secret by its message.
func goodSummary(_ int, req *modeltest.Request) modeltest.Reply {
	return modeltest.Reply{Text: summaryOf(req.Messages[len(req.Messages)-1].Content)}
}

// summaryOf returns the summary of a part of the conversation.
func summaryOf(text string) string {
	facts := ""
	if m := numbered.FindStringSubmatch(text); m != nil {
		facts = fmt.Sprintf(`{"text":"Chapter %d has the key of the vault.","messages":[%s]}`, secretChapter, m[1])
	}
	return `{"facts":[` + facts + `],"decisions":["Read all chapters in order."],"current_task":"Find the key."}`
}

// shownRecord returns the record in a view, up to a length.
func shownRecord(view string) string {
	_, after, _ := strings.Cut(view, record)
	return record + after[:min(len(after), 2000)]
}

// voyage is a run of a reader in a small window.
type voyage struct {
	*reader
	server *modeltest.Server
	env    []string
	home   *home
	args   []string // of harness run
}

// newVoyage starts the server of the reader and writes the book. context is the field of the
// agent file, in braces.
func newVoyage(t *testing.T, r *reader, context string) *voyage {
	t.Helper()
	server := modeltest.NewServerFunc(t, r.reply)
	server.Window = smallWindow
	dir, workspace := t.TempDir(), t.TempDir()
	for n := range chapters {
		text := strings.Repeat(fmt.Sprintf("This is line of chapter %d, about the long voyage.\n", n+1), 40)
		if n+1 == secretChapter {
			text += "The key of the vault is " + secret + ".\n"
		}
		write(t, workspace, fmt.Sprintf("chapter-%02d.txt", n+1), text)
	}
	models := write(t, dir, "models.yaml", fmt.Sprintf("models: [{ref: openai:gpt-4o, window: %d}]", smallWindow))
	agent := write(t, dir, "agent.yaml", "model: openai:gpt-4o\ncontext: "+context+"\n")
	v := &voyage{reader: r, server: server, home: newHome(t), env: environment("OPENAI_BASE_URL="+server.BaseURL(), "HARNESS_CATALOGUE="+models)}
	v.args = []string{"run", "--run-id", "r", "--workspace", workspace, "--agent", agent}
	return v
}

// sail performs the run, which must end accepted, and returns what it prints. Each request
// fits the window and is valid.
func (v *voyage) sail(t *testing.T, output string) string {
	t.Helper()
	code, stdout, stderr := v.home.start(v.env, append(v.args, "--output", output, "Find the key of the vault.")...).wait()
	if code != 0 {
		t.Fatalf("exit %d\n%s", code, stderr)
	}
	for i, r := range v.server.Requests() {
		if r.Refused != "" {
			t.Errorf("request %d was refused: %s", i, r.Refused)
		}
	}
	if !strings.Contains(stdout+stderr, "The key is "+secret) {
		t.Errorf("the run has not found the key:\n%s", tail(stdout))
	}
	return stdout + stderr
}

// line is a line of a run's output.
type line struct {
	Type    string
	Version int
	Data    struct {
		Strategies []string
		Error      string
		Background bool
		Job        string
		Tool       string
		Result     string
	}
}

// lines returns the lines of a run's output of one type.
func lines(t *testing.T, stdout, kind string) (all []line) {
	t.Helper()
	for text := range strings.Lines(stdout) {
		var l line
		if err := json.Unmarshal([]byte(text), &l); err == nil && l.Type == kind {
			all = append(all, l)
		}
	}
	return all
}

// TestARunLongerThanItsWindow clears results, summarises, reads back what it needs, and
// shows what the model saw.
func TestARunLongerThanItsWindow(t *testing.T) {
	t.Parallel()
	r := &reader{notes: 18, summarize: goodSummary, enough: func(view string) bool { return secretRef.MatchString(view) }}
	v := newVoyage(t, r, "{}")
	stdout := v.sail(t, "jsonl")
	used := map[string]bool{}
	for _, pass := range lines(t, stdout, "compaction.completed") {
		for _, name := range pass.Data.Strategies {
			used[name] = true
		}
		if pass.Data.Error != "" {
			t.Errorf("a pass reports %q", pass.Data.Error)
		}
	}
	if !used["clear"] || !used["summarize"] {
		t.Errorf("the passes used %v", used)
	}
	if n := len(lines(t, stdout, "stall.detected")) + len(lines(t, stdout, "doom_loop.detected")); n != 0 {
		t.Errorf("%d times the run was taken for one without progress", n)
	}
	if !strings.Contains(r.last, record) || strings.Count(r.last, secret) != 1 {
		t.Errorf("the key is to be in what was read back alone:\n%s", shownRecord(r.last))
	}

	responses := lines(t, stdout, "model.response")
	code, shown, stderr := v.home.start(v.env, "show", "r", "--context", "--version", fmt.Sprint(responses[len(responses)-1].Version), "--output", "json").wait()
	if code != 0 {
		t.Fatalf("show: exit %d\n%s", code, stderr)
	}
	context := object(t, shown)
	actions := map[string]bool{}
	for _, item := range context["items"].([]any) {
		if action, ok := item.(map[string]any)["action"].(string); ok {
			actions[action] = true
		}
	}
	if context["digest_matches"] != true || context["max_input_tokens"] != float64(smallWindow) || !actions["SUMMARIZE"] {
		t.Errorf("the context shows %v, and matches: %v", actions, context["digest_matches"])
	}
	code, shown, _ = v.home.start(v.env, "show", "r", "--context").wait()
	if code != 0 || !strings.Contains(shown, "summary of m") || !strings.Contains(shown, "read_artifact") {
		t.Errorf("show: exit %d\n%s", code, shown)
	}
}
