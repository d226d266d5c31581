package contract

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// maxFileText bounds the text of a file that is checked, in bytes.
const maxFileText = 1 << 20

// Sources is what checks read. An error of a source makes the checked output unknown,
// unless the context has ended.
type Sources interface {
	// Turn returns the turn that the check follows.
	Turn() uint32
	// Response returns the agent's last text; empty if there is none yet.
	Response(ctx context.Context) (string, error)
	// Messages returns the conversation. Its contents may be blobs.
	Messages(ctx context.Context) ([]*harnessv1.Message, error)
	// Text returns the text of a content, inline or a blob.
	Text(ctx context.Context, content *harnessv1.Content) (string, error)
	// Artifact returns the text of the artifact of a work item or, if no work item with the id
	// has one, of the saved artifact with the id.
	Artifact(ctx context.Context, id string) (text string, found bool, err error)
	// Saved returns the saved artifacts. Their contents may be blobs.
	Saved() []*harnessv1.Artifact
	// File describes a file below the workspace, with up to textBytes of its text.
	File(ctx context.Context, path string, textBytes uint32) (*harnessv1.CheckFileResponse, error)
	// Command runs a command with sh -c in the workspace.
	Command(ctx context.Context, outputID, command string, timeout time.Duration) (*harnessv1.CheckCommandResponse, error)
	// Remote calls the CheckService at HOST:PORT.
	Remote(ctx context.Context, target string, output *harnessv1.RequiredOutput, timeout time.Duration) (*harnessv1.RequirementCoverage, error)
	// State returns the variables of expr.State.
	State(ctx context.Context) (map[string]any, error)
}

// Check returns the coverage of one output. If a source fails the output is unknown,
// with the error as its reason. The error is that of the context, or reports that there
// is no such output.
func (c *Contract) Check(ctx context.Context, id string, src Sources) (*harnessv1.RequirementCoverage, error) {
	o := c.byID[id]
	if o == nil {
		return nil, fmt.Errorf("the contract has no output %q", clip(id, 80))
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	coverage, err := o.check(ctx, src)
	if err != nil {
		if ended := ctx.Err(); ended != nil {
			return nil, ended
		}
		coverage = unknown("the check gave no answer: %s", err)
	}
	coverage.RequirementId = id
	for _, e := range coverage.GetEvidence() {
		e.TurnNumber = src.Turn()
	}
	limit(coverage)
	return coverage, nil
}

func (o *output) check(ctx context.Context, src Sources) (*harnessv1.RequirementCoverage, error) {
	p := o.predicate()
	switch p.GetType() {
	case fileExists:
		return checkFile(ctx, src, p.GetPath())
	case containsText:
		if o.in.kind == inTranscript {
			return o.checkTranscript(ctx, src)
		}
		return o.checkText(ctx, src)
	case toolSuccess:
		return o.checkCall(ctx, src)
	case command:
		return o.checkCommand(ctx, src)
	case schemaValid:
		return o.checkDocument(ctx, src)
	case custom:
		if o.program != nil {
			return o.checkState(ctx, src)
		}
		return o.checkRemote(ctx, src)
	case artifactCount:
		return o.checkSaved(src), nil
	default: // always_true: nothing verifies it
	}
	coverage := met("model_judgement", "", "nothing is verified: this is the model's own word")
	coverage.Confidence = claimed
	return coverage, nil
}

func checkFile(ctx context.Context, src Sources, path string) (*harnessv1.RequirementCoverage, error) {
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

// document is a text with its digest.
type document struct {
	text, digest string
	// truncated is true if only the beginning of a file was read.
	truncated bool
}

// read returns the text of a place, or an unmet coverage if it does not exist.
func read(ctx context.Context, src Sources, in place) (document, *harnessv1.RequirementCoverage, error) {
	switch in.kind {
	case inArtifact:
		text, found, err := src.Artifact(ctx, in.name)
		if err != nil {
			return document{}, nil, err
		}
		if !found {
			return document{}, unmet("there is no artifact %s yet, neither saved nor of a work item", in.name), nil
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
	default: // a response, below
	}
	text, err := src.Response(ctx)
	if err != nil {
		return document{}, nil, err
	}
	return document{text: text, digest: digest(text)}, nil, nil
}

func (o *output) checkText(ctx context.Context, src Sources) (*harnessv1.RequirementCoverage, error) {
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

func (o *output) checkDocument(ctx context.Context, src Sources) (*harnessv1.RequirementCoverage, error) {
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

func (o *output) checkState(ctx context.Context, src Sources) (*harnessv1.RequirementCoverage, error) {
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

// shownPattern returns the pattern as the model sees it.
func (o *output) shownPattern() string {
	return "/" + clip(o.predicate().GetPattern(), 100) + "/"
}

func met(kind, digest, text string) *harnessv1.RequirementCoverage {
	return &harnessv1.RequirementCoverage{
		Status: harnessv1.RequirementStatus_REQUIREMENT_STATUS_MET, Confidence: certain,
		Evidence: []*harnessv1.Evidence{{Kind: kind, Digest: digest, Text: text}},
	}
}

// unmet returns the coverage of an output that a check did not find.
func unmet(format string, args ...any) *harnessv1.RequirementCoverage {
	return &harnessv1.RequirementCoverage{
		Status:     harnessv1.RequirementStatus_REQUIREMENT_STATUS_UNMET,
		Confidence: certain, Why: fmt.Sprintf(format, args...),
	}
}

// unknown returns the coverage of an output whose check gave no answer.
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
