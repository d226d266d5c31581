package contract

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// Bytes of a file's text that are looked at.
const maxFileText = 1 << 20

// Sources is what checks look at. An error of a source makes the output that
// was looked at unknown, unless the context has ended.
type Sources interface {
	// Turn is the turn after which is looked.
	Turn() uint32
	// Response is the agent's last text; empty when there is none yet.
	Response(ctx context.Context) (string, error)
	// Messages is the conversation. Its contents may be blobs.
	Messages(ctx context.Context) ([]*harnessv1.Message, error)
	// Text is the text of a content, whether inline or a blob.
	Text(ctx context.Context, content *harnessv1.Content) (string, error)
	// Artifact is the text of a work item's artifact.
	Artifact(ctx context.Context, itemID string) (text string, found bool, err error)
	// File describes a file below the workspace, with up to textBytes of its text.
	File(ctx context.Context, path string, textBytes uint32) (*harnessv1.CheckFileResponse, error)
	// Command runs a command with sh -c in the workspace.
	Command(ctx context.Context, outputID, command string, timeout time.Duration) (*harnessv1.CheckCommandResponse, error)
	// Remote asks a CheckService at HOST:PORT.
	Remote(ctx context.Context, target string, output *harnessv1.RequiredOutput, timeout time.Duration) (*harnessv1.RequirementCoverage, error)
	// State is the variables of expr.State.
	State(ctx context.Context) (map[string]any, error)
}

// Check looks at one output and says how it stands. A source that fails makes
// it unknown, with why. The error is the context's when that has ended, and
// says so when there is no such output.
func (c *Contract) Check(ctx context.Context, id string, src Sources) (*harnessv1.RequirementCoverage, error) {
	o := c.byID[id]
	if o == nil {
		return nil, fmt.Errorf("the contract has no output %q", clip(id, 80))
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	seen, err := o.look(ctx, src)
	if err != nil {
		if ended := ctx.Err(); ended != nil {
			return nil, ended
		}
		seen = unknown("the check gave no answer: %s", err)
	}
	seen.RequirementId = id
	for _, e := range seen.GetEvidence() {
		e.TurnNumber = src.Turn()
	}
	bound(seen)
	return seen, nil
}

func (o *output) look(ctx context.Context, src Sources) (*harnessv1.RequirementCoverage, error) {
	p := o.predicate()
	switch p.GetType() {
	case fileExists:
		return lookForFile(ctx, src, p.GetPath())
	case containsText:
		if o.in.kind == inTranscript {
			return o.lookInTranscript(ctx, src)
		}
		return o.lookForText(ctx, src)
	case toolSuccess:
		return o.lookForCall(ctx, src)
	case command:
		return o.lookAtCommand(ctx, src)
	case schemaValid:
		return o.lookAtDocument(ctx, src)
	case custom:
		if o.program != nil {
			return o.lookAtState(ctx, src)
		}
		return o.askService(ctx, src)
	}
	seen := met("model_judgement", "", "nothing is verified: this is the model's own word")
	seen.Confidence = itsWord
	return seen, nil
}

func lookForFile(ctx context.Context, src Sources, path string) (*harnessv1.RequirementCoverage, error) {
	file, err := src.File(ctx, path, 0)
	if err != nil {
		return nil, err
	}
	if !file.GetExists() {
		return unmet("%s", missingFile(path, file)), nil
	}
	return met("file", file.GetDigest(), fmt.Sprintf("%s, %d bytes", path, file.GetSize())), nil
}

func missingFile(path string, file *harnessv1.CheckFileResponse) string {
	if file.GetWhy() != "" {
		return clip(path, 80) + ": " + file.GetWhy()
	}
	return "there is no file " + clip(path, 120)
}

// document is a text that is somewhere, with its digest.
type document struct {
	text, digest string
	// Only the beginning of a file was read.
	truncated bool
}

// read returns the text of a place; where it is not there, how that stands.
func read(ctx context.Context, src Sources, in place) (document, *harnessv1.RequirementCoverage, error) {
	switch in.kind {
	case inArtifact:
		text, found, err := src.Artifact(ctx, in.name)
		if err != nil {
			return document{}, nil, err
		}
		if !found {
			return document{}, unmet("work item %s has no artifact yet", in.name), nil
		}
		return document{text: text, digest: digest(text)}, nil, nil
	case inFile:
		file, err := src.File(ctx, in.name, maxFileText)
		if err != nil {
			return document{}, nil, err
		}
		if !file.GetExists() {
			return document{}, unmet("%s", missingFile(in.name, file)), nil
		}
		return document{file.GetText(), file.GetDigest(), file.GetTruncated()}, nil, nil
	}
	text, err := src.Response(ctx)
	if err != nil {
		return document{}, nil, err
	}
	return document{text: text, digest: digest(text)}, nil, nil
}

func (o *output) lookForText(ctx context.Context, src Sources) (*harnessv1.RequirementCoverage, error) {
	doc, missing, err := read(ctx, src, o.in)
	if err != nil || missing != nil {
		return missing, err
	}
	if at := o.pattern.FindStringIndex(doc.text); at != nil {
		return met("text", doc.digest, around(doc.text, at)), nil
	}
	if doc.truncated {
		return unknown("%s has more than %d bytes, and nothing in the first of them matches %s", o.in, maxFileText, o.shownPattern()), nil
	}
	return unmet("nothing in %s matches %s", o.in, o.shownPattern()), nil
}

func (o *output) lookAtDocument(ctx context.Context, src Sources) (*harnessv1.RequirementCoverage, error) {
	doc, missing, err := read(ctx, src, o.in)
	if err != nil || missing != nil {
		return missing, err
	}
	if doc.truncated {
		return unknown("%s has more than %d bytes: it is too large to be checked", o.in, maxFileText), nil
	}
	if wrong := validateDocument(o.schema, doc.text); wrong != "" {
		return unmet("%s: %s", o.in, wrong), nil
	}
	return met("document", doc.digest, o.in.String()+" is valid under the schema"), nil
}

func (o *output) lookAtState(ctx context.Context, src Sources) (*harnessv1.RequirementCoverage, error) {
	state, err := src.State(ctx)
	if err != nil {
		return nil, err
	}
	cel := clip(o.predicate().GetCel(), 120)
	holds, err := o.program.Holds(state)
	switch {
	case err != nil:
		return nil, err
	case !holds:
		return unmet("it does not hold that %s", cel), nil
	}
	return met("expression", "", cel), nil
}

// shownPattern is the pattern as it is shown to the model.
func (o *output) shownPattern() string {
	return "/" + clip(o.predicate().GetPattern(), 100) + "/"
}

func met(kind, digest, text string) *harnessv1.RequirementCoverage {
	return &harnessv1.RequirementCoverage{
		Status: harnessv1.RequirementStatus_REQUIREMENT_STATUS_MET, Confidence: certain,
		Evidence: []*harnessv1.Evidence{{Kind: kind, Digest: digest, Text: text}},
	}
}

// unmet is an output of which a machine saw that it is not there.
func unmet(format string, args ...any) *harnessv1.RequirementCoverage {
	return &harnessv1.RequirementCoverage{
		Status:     harnessv1.RequirementStatus_REQUIREMENT_STATUS_UNMET,
		Confidence: certain, Why: fmt.Sprintf(format, args...),
	}
}

// unknown is an output of which nobody knows.
func unknown(format string, args ...any) *harnessv1.RequirementCoverage {
	return &harnessv1.RequirementCoverage{
		Status:  harnessv1.RequirementStatus_REQUIREMENT_STATUS_UNMET,
		Unknown: true, Why: fmt.Sprintf(format, args...),
	}
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}
