package quality

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

const (
	jobTimeout     = 20 * time.Second
	jobTries       = 2
	maxGoal        = 8000 // code points, of jobs before the work
	maxVerifyGoal  = 500  // code points
	maxVerifyWork  = 8000 // code points
	maxListed      = 50   // sources that a prompt names
	maxSourceTitle = 300  // bytes
	nonceDigits    = 16
	keyDigits      = 32
	promptDigits   = 16
)

// PromptDigest returns the digest of a text of a prompt: 16 lower-case hexadecimal digits.
func PromptDigest(text string) string { return content.Digest([]byte(text))[:promptDigits] }

// ClassifyJob asks how complex work is. ParseComplexity reads the answer.
func ClassifyJob(goal string, sources []*harnessv1.Source) *harnessv1.JobRequest {
	return job(PurposeClassify, PromptClassifier, formatClassify, schemaClassify, 500,
		part{"GOAL", first(goal, maxGoal)}, part{"SOURCES", sourceList(sources)})
}

// IntentJob asks for the kind of work. ParseIntent reads the answer.
func IntentJob(goal string, own []*harnessv1.WorkKind, sources int) *harnessv1.JobRequest {
	var kinds []string
	for _, name := range Names(own) {
		kinds = append(kinds, name+": "+content.OneLine(KindOf(name, own, sources).GetDescription()))
	}
	return job(PurposeIntent, PromptIntent, formatIntent, schemaIntent, 200,
		part{"GOAL", first(goal, maxGoal)}, part{"KINDS", strings.Join(kinds, "\n")}, part{"SOURCES", fmt.Sprint(sources)})
}

// PlanJob asks for two or three plans. ParsePlans reads the answer.
func PlanJob(goal string, k Kind, c *harnessv1.QualityComplexity, sources []*harnessv1.Source) *harnessv1.JobRequest {
	return job(PurposePlan, PromptPlan, formatPlan, schemaPlan, 2500,
		part{"GOAL", first(goal, maxGoal)}, part{"KIND", k.GetName() + ": " + content.OneLine(k.GetDescription())},
		part{"COMPLEXITY", fmt.Sprintf("%s, %d parts. %s", c.GetLevel(), c.GetSubtaskCount(), c.GetReason())}, part{"SOURCES", sourceList(sources)})
}

// VerifyJob asks for a verdict on work. The model gets the first 500 code points of the goal,
// the first 8,000 of the output and the summary of artifacts. Perspective is accuracy,
// completeness, usefulness or one of the kind of the work; "" is all. Calibration is text about earlier verdicts that
// users did not share; it may be empty. ParseVerdict reads the answer.
func VerifyJob(goal, output, artifacts, perspective, calibration string) *harnessv1.JobRequest {
	parts := []part{{"GOAL", first(goal, maxVerifyGoal)}, {"OUTPUT", first(output, maxVerifyWork)}, {"ARTIFACTS", artifacts}}
	if calibration != "" {
		parts = append(parts, part{"CALIBRATION", calibration})
	}
	return job(PurposeVerify, verifierPrompt(perspective), formatVerify, schemaVerify, 1500, parts...)
}

// verifierPrompt returns the id of the prompt of a verifier.
func verifierPrompt(perspective string) string {
	if perspective == "" {
		return PromptVerifier
	}
	return verifierOf + perspective
}

// textOf returns the built-in text with an id; for a custom perspective that of the verifier for
// everything.
func textOf(id string) string {
	if text, known := prompts[id]; known || !strings.HasPrefix(id, verifierOf) {
		return text
	}
	return prompts[PromptVerifier]
}

// WithPrompt replaces the built-in text with an id in the system prompt of a request. The
// instructions on the form of the answer stay.
func WithPrompt(r *harnessv1.JobRequest, id, text string) {
	if rest, ok := strings.CutPrefix(r.GetSystem(), textOf(id)); ok && textOf(id) != "" {
		r.System = text + rest
	}
}

// Configure sets the model of a request and its time limit.
func Configure(r *harnessv1.JobRequest, c *harnessv1.QualityConfig) {
	r.Model = c.GetModel()
	if t := c.GetTimeout(); t != nil {
		r.Timeout = durationpb.New(t.AsDuration())
	}
}

// part is text of a prompt that is data for the model.
type part struct{ name, text string }

// job returns a request without key and model.
func job(purpose, prompt, format, schema string, tokens uint32, parts ...part) *harnessv1.JobRequest {
	body, nonce := fence(parts)
	return &harnessv1.JobRequest{
		Purpose: purpose, System: textOf(prompt) + "\n\n" + fmt.Sprintf(delimiters, nonce, nonce) + "\n" + format, Prompt: body, Schema: schema,
		Timeout: durationpb.New(jobTimeout), MaxTries: jobTries, MaxOutputTokens: tokens, PromptUsed: &harnessv1.Prompt{Id: prompt, Digest: PromptDigest(textOf(prompt))},
	}
}

// fence puts each part between lines with a nonce that is the hash of all parts. Text that
// contains the nonce loses it, so that no part can close its lines.
func fence(parts []part) (body, nonce string) {
	sum := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(sum, "%s %d %s\n", p.name, len(p.text), p.text)
	}
	nonce = hex.EncodeToString(sum.Sum(nil))[:nonceDigits]
	return fenced(parts, nonce), nonce
}

// fenced is fence with a nonce.
func fenced(parts []part, nonce string) string {
	var b strings.Builder
	for _, p := range parts {
		fmt.Fprintf(&b, "<<<%s %s\n%s\n%s %s>>>\n", p.name, nonce, strings.ReplaceAll(p.text, nonce, "…"), p.name, nonce)
	}
	return b.String()
}

// sourceList names sources, one a line.
func sourceList(sources []*harnessv1.Source) string {
	if len(sources) == 0 {
		return "none"
	}
	lines := []string{fmt.Sprintf("%d in all", len(sources))}
	for _, s := range sources[:min(len(sources), maxListed)] {
		title := s.GetTitle()
		for _, other := range []string{s.GetPath(), s.GetUri()} {
			if title == "" {
				title = other
			}
		}
		lines = append(lines, strings.TrimSpace(s.GetId()+" "+content.Line(title, maxSourceTitle)))
	}
	return strings.Join(lines, "\n")
}

// JobKey returns the key of a job: 32 lower-case hexadecimal digits of the hash of the first
// sequence of the run, segment, attempt, purpose and the request without its key.
func JobKey(first uint64, segment, attempt uint32, purpose string, r *harnessv1.JobRequest) string {
	data, err := json.Marshal([]any{
		first, segment, attempt, purpose, r.GetPurpose(), r.GetModel(), r.GetSystem(), r.GetPrompt(), r.GetSchema(),
		r.GetTimeout().GetSeconds(), r.GetTimeout().GetNanos(), r.GetMaxTries(), r.GetMaxOutputTokens(),
	})
	if err != nil {
		panic(err) // texts and numbers always encode
	}
	return content.Digest(data)[:keyDigits]
}
