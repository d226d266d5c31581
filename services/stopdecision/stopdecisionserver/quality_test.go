package stopdecisionserver_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/quality"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/services/stopdecision"
)

// qualityState is the state of a run whose first attempt is judged from message 3 on. No verifier can be
// called.
func (b *bed) qualityState() *harnessv1.Snapshot {
	s := b.state()
	s.Config = runstate.Resolve(&harnessv1.LoopConfig{Quality: &harnessv1.QualityConfig{Enabled: proto.Bool(true), Model: "openai:small"}}, 0)
	s.Segment, s.GoalPreview = 1, "the goal"
	s.Quality = &harnessv1.QualityState{
		Kind: quality.Chat, Level: quality.Simple, Multiplier: 100, Attempt: 1, Iteration: 1, AttemptFirstMessage: 3, StartTime: timestamppb.Now(),
	}
	return s
}

// message is one of the conversation.
func message(id uint64, role harnessv1.Role, c *harnessv1.Content) *harnessv1.Message {
	return &harnessv1.Message{Id: id, Role: role, Content: c}
}

const (
	assistant = harnessv1.Role_ROLE_ASSISTANT
	user      = harnessv1.Role_ROLE_USER
	tool      = harnessv1.Role_ROLE_TOOL
)

// decide has a worker judge the attempt, and returns the step that it committed.
func (b *bed) decide(s *harnessv1.Snapshot, messages ...*harnessv1.Message) *harnessv1.Step {
	b.Helper()
	s.MessageCount = uint64(len(messages))
	if err := runstate.Pack(s, func(data []byte) (*harnessv1.BlobRef, error) { return b.Log.PutBlob(b.Context(), b.Run, data) }); err != nil {
		b.Fatal(err)
	}
	b.Put(step(s), messages...)
	b.Start(b.server.Run)
	got := b.NextStep()
	if got.GetResult().GetStatus() == harnessv1.RunStatus_RUN_STATUS_FAILED {
		b.Fatalf("the run failed: %v", got)
	}
	return got
}

// TestOutputOfAnAttempt: the agent's texts since the attempt began, and the summary and the
// artifacts if these have fewer than 200 code points.
func TestOutputOfAnAttempt(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		texts []string
		want  string
	}{
		"nothing said":     {nil, "The summary.\n\nFirst artifact.\n\nAs [1] has it."},
		"only white space": {[]string{" \n"}, "The summary.\n\nFirst artifact.\n\nAs [1] has it."},
		"short":            {[]string{"One.", "Two."}, "One.\n\nTwo.\n\nThe summary.\n\nFirst artifact.\n\nAs [1] has it."},
		"199 code points":  {[]string{strings.Repeat("é", 199)}, strings.Repeat("é", 199) + "\n\nThe summary.\n\nFirst artifact.\n\nAs [1] has it."},
		"200 code points":  {[]string{strings.Repeat("é", 200)}, strings.Repeat("é", 200)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t, nil)
			s := b.qualityState()
			s.Answer, s.Summary = content.Inline("The answer."), b.Blob("The summary.")
			s.WorkItemLedger = &harnessv1.WorkItemLedger{Artifacts: []*harnessv1.Artifact{
				{Id: "a1", Kind: "document", Content: b.Blob("First artifact.")}, {Id: "a2", Kind: "document", Content: content.Inline("As [1] has it.")},
			}}
			messages := []*harnessv1.Message{
				message(1, user, content.Inline("A goal according to the user.")), message(2, assistant, content.Inline("Of an earlier attempt.")),
				message(3, tool, content.Inline("According to a tool.")), message(4, user, content.Inline("[harness] advice")),
			}
			for _, text := range c.texts {
				messages = append(messages, message(uint64(len(messages)+1), assistant, b.Blob(text)))
			}
			seen := observed(b.decide(s, messages...), stopdecision.KeyOutput).GetOutput()
			if seen.GetText() != c.want || seen.GetChars() != uint64(utf8.RuneCountInString(c.want)) || seen.GetGoal() != "the goal" || !seen.GetMarked() {
				t.Errorf("%d characters, marked %t, goal %q:\n%s", seen.GetChars(), seen.GetMarked(), seen.GetGoal(), seen.GetText())
			}
		})
	}
}

// TestLongOutputs: the verifier reads the first 8,000 code points, and length, markers and form
// are those of the whole. An answer of 5 MB fits into the record as well.
func TestLongOutputs(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"8,000":     strings.Repeat("é", 8000),
		"8,001":     strings.Repeat("🙂", 8001),
		"5 MB":      strings.Repeat("Prices rose by 4 %. ", 5<<20/20) + "\n\n# Sources\n\n- https://example.com",
		"two texts": strings.Repeat("é", 5000) + "\n\n" + strings.Repeat("ö", 5000) + " [12]",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t, nil)
			s := b.qualityState()
			goal := strings.Repeat("goal ", 5000)
			s.Goal, s.Answer = b.Blob(goal), b.Blob(text)
			messages := []*harnessv1.Message{message(1, user, content.Inline("Go.")), message(2, assistant, content.Inline("Before."))}
			parts := []string{text}
			if name == "two texts" {
				parts = strings.Split(text, "\n\n")
			}
			for _, part := range parts {
				messages = append(messages, message(uint64(len(messages)+1), assistant, b.Blob(part)))
			}
			seen := observed(b.decide(s, messages...), stopdecision.KeyOutput).GetOutput()
			all := []rune(text)
			if want := string(all[:min(len(all), 8000)]); seen.GetText() != want || seen.GetChars() != uint64(len(all)) {
				t.Errorf("%d code points of %d are read, want %d of %d", utf8.RuneCountInString(seen.GetText()), seen.GetChars(), min(len(all), 8000), len(all))
			}
			if seen.GetMarked() != quality.HasMarker(text) || !proto.Equal(seen.GetDocument(), quality.Figures(text)) {
				t.Errorf("marked %t, figures %v", seen.GetMarked(), seen.GetDocument())
			}
			if !strings.HasPrefix(goal, seen.GetGoal()) || len(seen.GetGoal()) < 15<<10 || len(seen.GetGoal()) > 16<<10 {
				t.Errorf("the goal has %d bytes", len(seen.GetGoal()))
			}
			if !proto.Equal(seen.GetAnswer(), quality.AnswerFigures(text)) {
				t.Errorf("the answer has %v", seen.GetAnswer())
			}
		})
	}
}

// cites returns an artifact that quotes sources: a source and its quote, and so on.
func cites(id string, pairs ...string) *harnessv1.Artifact {
	a := &harnessv1.Artifact{Id: id, Kind: "insight", Content: content.Inline("x")}
	for i := 0; i < len(pairs); i += 2 {
		a.Citations = append(a.Citations, &harnessv1.Citation{Source: pairs[i], Quote: pairs[i+1]})
	}
	return a
}

// write writes a file of the workspace.
func (b *bed) write(name, text string) {
	b.Helper()
	if err := os.WriteFile(filepath.Join(b.workspace, name), []byte(text), 0o600); err != nil {
		b.Fatal(err)
	}
}

// TestQuotesAreLookedUp in files of the workspace alone. A source that cannot be read, or that the
// task does not have, says nothing about a quote.
func TestQuotesAreLookedUp(t *testing.T) {
	t.Parallel()
	b := newBed(t, nil)
	outside := filepath.Join(t.TempDir(), "outside.md")
	if err := os.WriteFile(outside, []byte("Words outside."), 0o600); err != nil {
		t.Fatal(err)
	}
	b.write("notes.md", "In May prices rose\n\t  by 4 %\r\nof last year. ÄRGER, and nothing else.")
	b.write("long.md", "Words at the start."+strings.Repeat(" filler", 1<<20/7)+" words at the end")
	b.write("empty.md", "")
	for link, to := range map[string]string{"link.md": outside, "inside.md": "notes.md", "dead.md": "nowhere"} {
		if err := os.Symlink(to, filepath.Join(b.workspace, link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(b.workspace, "folder"), 0o700); err != nil {
		t.Fatal(err)
	}
	s := b.qualityState()
	s.Task = &harnessv1.Task{Sources: []*harnessv1.Source{
		{Id: "notes", Path: "notes.md"}, {Id: "link", Path: "link.md"}, {Id: "inside", Path: "inside.md"}, {Id: "dead", Path: "dead.md"},
		{Id: "missing", Path: "missing.md"}, {Id: "long", Path: "long.md"}, {Id: "empty", Path: "empty.md"}, {Id: "folder", Path: "folder"},
		{Id: "above", Path: "../" + filepath.Base(filepath.Dir(outside)) + "/outside.md"}, {Id: "web", Uri: "https://example.com"},
		{Id: "uncited", Path: "notes.md"}, {Id: "blank", Path: "notes.md"},
	}}
	s.WorkItemLedger = &harnessv1.WorkItemLedger{Artifacts: []*harnessv1.Artifact{
		cites("break", "notes", "prices rose by 4 % of last year"),
		cites("case", "notes", "PRICES Rose", "notes", "ärger"),
		cites("spaces", "notes", "  prices \n\n rose "),
		cites("invented", "notes", "prices fell", "notes", "pricesrose"),
		cites("some", "notes", "in may", "notes", "in june", "inside", "and nothing else"),
		cites("unknown", "nowhere", "prices rose"),
		cites("unreadable", "link", "words outside", "dead", "x", "missing", "x", "folder", "x", "above", "words outside", "web", "x"),
		cites("long", "long", "words at the start", "long", "words at the end"),
		cites("empty", "empty", "x"),
		cites("blank", "blank", " \n", "blank", ""),
	}}
	seen := observed(b.decide(s, message(1, user, content.Inline("Go."))), stopdecision.KeyQuotes).GetQuotes()
	if want := []string{"notes", "inside", "long", "empty"}; !slices.Equal(seen.GetRead(), want) {
		t.Errorf("read are %v, want %v", seen.GetRead(), want)
	}
	var got []string
	for _, q := range seen.GetQuotes() {
		word := "missing"
		if q.GetFound() {
			word = "found"
		}
		got = append(got, fmt.Sprintf("%s %q: %d %s", q.GetArtifact(), q.GetSource(), q.GetCount(), word))
	}
	want := []string{
		`break "notes": 1 found`, `case "notes": 2 found`, `spaces "notes": 1 found`, `invented "notes": 2 missing`,
		`some "": 2 found`, `some "notes": 1 missing`, `long "long": 1 found`, `long "long": 1 missing`, `empty "empty": 1 missing`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestManySourcesAndQuotes: 200 sources that 200 artifacts quote 10,000 times, all with the longest
// ids, fit into a record, so that judging never fails a run.
func TestManySourcesAndQuotes(t *testing.T) {
	t.Parallel()
	b := newBed(t, nil)
	s := b.qualityState()
	s.Task, s.WorkItemLedger = &harnessv1.Task{}, &harnessv1.WorkItemLedger{}
	source := func(n int) string { return fmt.Sprintf("s%063d", n%200) }
	var read []string
	for n := range 200 {
		b.write(fmt.Sprintf("%d.md", n), fmt.Sprintf("These are the words of source %d.", n))
		s.Task.Sources = append(s.Task.Sources, &harnessv1.Source{Id: source(n), Path: fmt.Sprintf("%d.md", n)})
		read = append(read, source(n))
	}
	for n := range 200 {
		var pairs []string
		for c := range 50 {
			at := n + c
			if c%5 == 4 {
				at++ // of another source
			}
			pairs = append(pairs, source(n+c), fmt.Sprintf("words OF  source %d.", at%200))
		}
		s.WorkItemLedger.Artifacts = append(s.WorkItemLedger.Artifacts, cites(fmt.Sprintf("a%031d", n), pairs...))
	}
	got := b.decide(s, message(1, user, content.Inline("Go.")))
	seen := observed(got, stopdecision.KeyQuotes).GetQuotes()
	if !slices.Equal(seen.GetRead(), read) || len(seen.GetQuotes()) != 400 {
		t.Fatalf("%d sources are read, %d entries", len(seen.GetRead()), len(seen.GetQuotes()))
	}
	for i, q := range seen.GetQuotes() {
		if want := uint32(40 - 30*(i%2)); q.GetCount() != want || q.GetFound() != (i%2 == 0) || q.GetArtifact() != fmt.Sprintf("a%031d", i/2) {
			t.Fatalf("entry %d is %v, want the count %d", i, q, want)
		}
	}
	if size := proto.Size(got); size > 128<<10 {
		t.Errorf("the step has %d bytes", size)
	}
}
