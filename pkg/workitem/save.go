package workitem

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/event"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/workitem/narration"
)

// SaveArtifact is the name of the tool that stores artifacts with a kind.
const SaveArtifact = "save_artifact"

// Limits of artifacts with a kind.
const (
	// MaxArtifacts bounds them in a run.
	MaxArtifacts   = 200
	maxCitations   = 50
	maxQuote       = 1000
	maxData        = 16 << 10
	maxKindOfTitle = 200
)

var kindFormat = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z][a-z0-9_]{0,31}$`) })

// IsKind reports whether a text can be the kind of an artifact: a lower-case letter, then at
// most 31 of a-z, 0-9 and _.
func IsKind(text string) bool { return kindFormat().MatchString(text) }

// HasQuote reports whether an artifact has a citation with words of its source.
func HasQuote(a *harnessv1.Artifact) bool {
	return slices.ContainsFunc(a.GetCitations(), func(c *harnessv1.Citation) bool { return strings.TrimSpace(c.GetQuote()) != "" })
}

// saveArguments are the arguments of SaveArtifact. They have passed the schema.
type saveArguments struct {
	ID        string          `json:"id"`
	Kind      string          `json:"kind"`
	Title     string          `json:"title"`
	Content   string          `json:"content"`
	Data      json.RawMessage `json:"data"`
	Citations []struct {
		Source string `json:"source"`
		Quote  string `json:"quote"`
	} `json:"citations"`
}

// Save runs the tool SaveArtifact: it stores an artifact, or replaces the one with its id.
func Save(l *harnessv1.WorkItemLedger, arguments string) Outcome {
	if l == nil {
		return refuse(errors.New("this run stores no artifacts: continue without them"))
	}
	a := saveArguments{}
	if err := json.Unmarshal([]byte(arguments), &a); err != nil {
		return refuse(fmt.Errorf("the arguments are not as the tool takes them: %w", err))
	}
	out, hint, err := a.artifact()
	if err != nil {
		return refuse(err)
	}
	at := slices.IndexFunc(l.GetArtifacts(), func(b *harnessv1.Artifact) bool { return b.GetId() == out.GetId() })
	switch {
	case out.GetId() == "":
		out.Id = nextArtifact(l)
		fallthrough
	case at < 0:
		if len(l.GetArtifacts()) >= MaxArtifacts {
			return refuse(fmt.Errorf("this run has %d artifacts, and may have %d: replace one of them by its id", len(l.GetArtifacts()), MaxArtifacts))
		}
	}
	UpsertArtifacts(l, []*harnessv1.Artifact{out})
	result, _ := json.Marshal(map[string]any{"id": out.GetId(), "kind": out.GetKind(), "artifacts": len(l.GetArtifacts()), "hint": hint}) // cannot fail
	return Outcome{
		Result: string(result), Saved: []*harnessv1.Artifact{proto.CloneOf(out)},
		Events: []*harnessv1.Event{event.DeliverablesUpdated(out.GetId(), out.GetTitle(), deliverable)},
	}
}

// artifact returns the artifact to store. hint names the corrections of its arguments.
func (a *saveArguments) artifact() (out *harnessv1.Artifact, hint string, err error) {
	text := a.Content
	switch {
	case strings.TrimSpace(text) == "":
		return nil, "", errors.New("the content is empty: give the whole artifact as content")
	case len(text) > maxArtifact:
		return nil, "", fmt.Errorf("the content has %d bytes; an artifact has at most %d: write it to a file, and store where it is", len(text), maxArtifact)
	case len(a.Data) > maxData:
		return nil, "", fmt.Errorf("data has %d bytes, and may have %d", len(a.Data), maxData)
	case len(a.Citations) > maxCitations:
		return nil, "", fmt.Errorf("there are %d citations, and may be %d", len(a.Citations), maxCitations)
	}
	level, stripped, why := narration.Check(text)
	switch level {
	case narration.Heavy:
		return nil, "", fmt.Errorf("not stored: %s. An artifact is the product alone. Call %s again with the content without these words", why, SaveArtifact)
	case narration.Light:
		text, hint = stripped, "Stored without words about it: "+why+"."
	default: // clean
	}
	out = &harnessv1.Artifact{
		Id: a.ID, Kind: a.Kind, Title: content.Line(a.Title, maxKindOfTitle), Content: content.Inline(text),
		Chars: uint32(utf8.RuneCountInString(text)), //nolint:gosec // at most maxArtifact
	}
	for _, c := range a.Citations {
		out.Citations = append(out.Citations, &harnessv1.Citation{Source: content.Line(c.Source, 64), Quote: content.Cut(c.Quote, maxQuote)})
	}
	if data := strings.TrimSpace(string(a.Data)); data != "" && data != "null" {
		out.Data = content.Inline(data)
	}
	return out, hint, nil
}

// nextArtifact returns the next made-up id: the first free one after the last.
func nextArtifact(l *harnessv1.WorkItemLedger) string {
	for n := l.GetLastArtifact() + 1; ; n++ {
		id := artifactID(n)
		if !slices.ContainsFunc(l.GetArtifacts(), func(a *harnessv1.Artifact) bool { return a.GetId() == id }) {
			return id
		}
	}
}

func artifactID(n uint32) string { return fmt.Sprintf("a%d", n) }

// putArtifact stores an artifact in a ledger.
func putArtifact(l *harnessv1.WorkItemLedger, a *harnessv1.Artifact) {
	if at := slices.IndexFunc(l.GetArtifacts(), func(b *harnessv1.Artifact) bool { return b.GetId() == a.GetId() }); at >= 0 {
		l.Artifacts[at] = a
		return
	}
	if number := l.GetLastArtifact() + 1; a.GetId() == nextArtifact(l) {
		for a.GetId() != artifactID(number) {
			number++
		}
		l.LastArtifact = number
	}
	l.Artifacts = append(l.Artifacts, a)
}

// UpsertArtifacts stores artifacts that Save has returned.
func UpsertArtifacts(l *harnessv1.WorkItemLedger, artifacts []*harnessv1.Artifact) {
	if l == nil || len(artifacts) == 0 {
		return
	}
	for _, a := range artifacts {
		putArtifact(l, a)
	}
	l.Stored = nil
}

// savedDeliverables returns the artifacts with a kind as deliverables.
func savedDeliverables(l *harnessv1.WorkItemLedger) []*harnessv1.Deliverable {
	var made []*harnessv1.Deliverable
	for _, a := range l.GetArtifacts() {
		made = append(made, &harnessv1.Deliverable{ItemId: a.GetId(), Title: a.GetTitle(), Content: a.GetContent(), Kind: a.GetKind()})
	}
	return made
}
