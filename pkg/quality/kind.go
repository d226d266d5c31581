package quality

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/workitem"
)

// Perspectives of verifiers.
const (
	Accuracy     = "accuracy"
	Completeness = "completeness"
	Usefulness   = "usefulness"
)

// Scores of work.
const (
	RQS   = "rqs"    // of insights
	RecQS = "rec_qs" // of recommendations
	DocQS = "doc_qs" // of documents
)

// Defaults of kinds.
const (
	defaultAttempts = 3
	defaultGood     = 0.65
	defaultLow      = 0.50
)

const (
	maxAttempts       = 10
	maxInsights       = 10 // that are required for sources
	maxKindDesc       = 300
	maxKindChars      = 100_000
	maxKindPreamble   = 2000
	maxKindPrompt     = 4096
	maxPerspectives   = 3
	maxKindCount      = 200 // artifacts of a run
	maxKindArtifacts  = 20
	charsOfSynthesis  = 100
	charsOfDocuments  = 200
	charsOfChat       = 50
	attemptsOfChat    = 2
	goodSynthesis     = 0.70
	goodChat, lowChat = 0.60, 0.40
)

var (
	kindName     = regexp.MustCompile(`^[a-z][a-z0-9_]{0,31}$`)
	builtInKinds = []string{Chat, Synthesis, Recommendation, Drafting, FullPipeline}
	perspectives = []string{Accuracy, Completeness, Usefulness}
	scoreTypes   = []string{RQS, RecQS, DocQS}
	artifacts    = []string{Insight, RecommendationOf, Document}
)

// Kind is a kind of work with its defaults.
type Kind struct {
	*harnessv1.WorkKind
	BuiltIn bool

	attempts uint32 // as the agent set them; 0: unset
}

// KindOf returns a kind by its name, built in or one of own. Another name gives Chat.
// Sources are those of the task: each requires an insight of a synthesis, up to 10.
func KindOf(name string, own []*harnessv1.WorkKind, sources int) Kind {
	for _, k := range own {
		if k.GetName() == name && !slices.Contains(builtInKinds, name) {
			return ownKind(k)
		}
	}
	return Kind{WorkKind: builtIn(name, count(max(1, min(sources, maxInsights)))), BuiltIn: true}
}

// builtIn is the table of built-in kinds.
func builtIn(name string, insights uint32) *harnessv1.WorkKind {
	counts := func(insights, recommendations, documents uint32) []*harnessv1.ArtifactCount {
		return []*harnessv1.ArtifactCount{
			{Kind: Insight, Count: insights}, {Kind: RecommendationOf, Count: recommendations}, {Kind: Document, Count: documents},
		}
	}
	k := &harnessv1.WorkKind{
		Name: name, RequireArtifacts: true, ArtifactKinds: artifacts,
		MaxAttempts: proto.Uint32(defaultAttempts), GoodEnoughScore: defaultGood, LowQualityThreshold: defaultLow,
	}
	switch name {
	case Synthesis:
		k.Description = "Finds what a set of sources has in common and where they differ, as insights with quotes."
		k.Counts, k.RequireCitations, k.MinOutputChars = counts(insights, 0, 0), true, charsOfSynthesis
		k.GoodEnoughScore, k.Perspectives, k.Score = goodSynthesis, perspectives, RQS
	case Recommendation:
		k.Description = "Recommends what to do, with reasons and next steps."
		k.Counts, k.MinOutputChars = counts(0, 1, 0), charsOfSynthesis
		k.Perspectives, k.Score = perspectives, RecQS
	case Drafting:
		k.Description = "Writes a document, such as a report, a specification or a letter."
		k.Counts, k.MinOutputChars, k.Score = counts(0, 0, 1), charsOfDocuments, DocQS
	case FullPipeline:
		k.Description = "Goes from sources over insights and recommendations to a document."
		k.Counts, k.RequireCitations, k.MinOutputChars = counts(insights, 1, 1), true, charsOfDocuments
		k.GoodEnoughScore, k.Perspectives = goodSynthesis, perspectives
	default:
		k.Name, k.Description = Chat, "Answers a question or does a task that leaves no artifact."
		k.RequireArtifacts, k.MinOutputChars = false, charsOfChat
		k.MaxAttempts, k.GoodEnoughScore, k.LowQualityThreshold = proto.Uint32(attemptsOfChat), goodChat, lowChat
	}
	return k
}

// ownKind returns a kind of the agent with its defaults.
func ownKind(k *harnessv1.WorkKind) Kind {
	filled := &harnessv1.WorkKind{
		Name: k.GetName(), Description: k.GetDescription(), ArtifactKinds: k.GetArtifactKinds(), Counts: k.GetCounts(),
		RequireCitations: k.GetRequireCitations(), RequireArtifacts: k.GetRequireArtifacts(), MinOutputChars: k.GetMinOutputChars(),
		MaxAttempts: k.MaxAttempts, GoodEnoughScore: k.GetGoodEnoughScore(), LowQualityThreshold: k.GetLowQualityThreshold(),
		Perspectives: k.GetPerspectives(), Score: k.GetScore(), Preamble: k.GetPreamble(), Prompts: k.GetPrompts(),
	}
	if len(filled.ArtifactKinds) == 0 {
		filled.ArtifactKinds = artifacts
	}
	if filled.GetMaxAttempts() == 0 {
		filled.MaxAttempts = proto.Uint32(defaultAttempts)
	}
	if filled.GoodEnoughScore == 0 {
		filled.GoodEnoughScore = defaultGood
	}
	if filled.LowQualityThreshold == 0 {
		filled.LowQualityThreshold = min(defaultLow, filled.GoodEnoughScore)
	}
	return Kind{WorkKind: filled, attempts: k.GetMaxAttempts()}
}

// Names returns the names of the built-in kinds, then of own.
func Names(own []*harnessv1.WorkKind) []string {
	names := slices.Clone(builtInKinds)
	for _, k := range own {
		names = append(names, k.GetName())
	}
	return names
}

// ArtifactKinds returns the kinds of artifacts that the kind takes.
func ArtifactKinds(k Kind) []string { return slices.Clone(k.GetArtifactKinds()) }

// Limits returns the attempts of a kind, the combined score from which its work is good
// enough and the verifier's score below which it is tried again. The agent's setting for its
// kind comes first, then cfg, then the table. The low score is at most the good one.
func Limits(k Kind, cfg *harnessv1.QualityConfig) (attempts uint32, good, low float64) {
	retry := cfg.GetRetry()
	attempts, good, low = k.GetMaxAttempts(), k.GetGoodEnoughScore(), k.GetLowQualityThreshold()
	var set *uint32
	switch {
	case k.BuiltIn && (k.GetName() == Synthesis || k.GetName() == FullPipeline):
		if retry != nil {
			set = retry.MaxAttemptsSynthesis
			good, low = or(retry.GoodEnoughScore, good), or(retry.LowQualityThreshold, low)
		}
	case k.BuiltIn && k.GetName() == Chat:
		if retry != nil {
			set = retry.MaxAttemptsChat
		}
	case k.attempts == 0 && retry != nil:
		set = retry.MaxAttemptsDefault
	}
	attempts = min(max(or(set, attempts), 1), maxAttempts)
	return attempts, good, min(low, good)
}

// or returns what p points to, or another value if it points to none.
func or[T any](p *T, other T) T {
	if p == nil {
		return other
	}
	return *p
}

// CheckKind returns an error that names the field if a kind of the agent is not valid.
func CheckKind(k *harnessv1.WorkKind) error {
	name := k.GetName()
	switch {
	case !kindName.MatchString(name):
		return fmt.Errorf("name %q: expected a lower-case letter, then at most 31 of a-z, 0-9 and _", name)
	case slices.Contains(builtInKinds, name):
		return fmt.Errorf("name %q: a built-in kind has this name", name)
	case len(k.GetDescription()) > maxKindDesc:
		return fmt.Errorf("kind %s: description exceeds %d bytes", name, maxKindDesc)
	case len(k.GetPreamble()) > maxKindPreamble:
		return fmt.Errorf("kind %s: preamble exceeds %d bytes", name, maxKindPreamble)
	case k.GetMinOutputChars() > maxKindChars:
		return fmt.Errorf("kind %s: min_output_chars %d exceeds %d", name, k.GetMinOutputChars(), maxKindChars)
	case k.MaxAttempts != nil && (k.GetMaxAttempts() < 1 || k.GetMaxAttempts() > maxAttempts):
		return fmt.Errorf("kind %s: max_attempts %d: expected 1 to %d", name, k.GetMaxAttempts(), maxAttempts)
	case k.GetScore() != "" && !slices.Contains(scoreTypes, k.GetScore()):
		return fmt.Errorf("kind %s: unknown score %q: expected one of %v", name, k.GetScore(), scoreTypes)
	case len(k.GetPerspectives()) > maxPerspectives:
		return fmt.Errorf("kind %s: %d perspectives exceed %d", name, len(k.GetPerspectives()), maxPerspectives)
	}
	if err := checkThresholds(k); err != nil {
		return fmt.Errorf("kind %s: %w", name, err)
	}
	if err := checkPrompts(k); err != nil {
		return fmt.Errorf("kind %s: %w", name, err)
	}
	if err := checkArtifacts(k); err != nil {
		return fmt.Errorf("kind %s: %w", name, err)
	}
	return nil
}

// checkThresholds checks the scores of a kind. The comparisons are false for NaN.
func checkThresholds(k *harnessv1.WorkKind) error {
	good, low := k.GetGoodEnoughScore(), k.GetLowQualityThreshold()
	if !(good >= 0 && good <= 1) {
		return fmt.Errorf("good_enough_score %v: expected a number above 0, at most 1", good)
	}
	if good == 0 {
		good = defaultGood
	}
	if !(low >= 0 && low <= good) {
		return fmt.Errorf("low_quality_threshold %v: expected a number from 0 to good_enough_score, %v", low, good)
	}
	return nil
}

// checkPrompts checks the perspectives of a kind and the prompts that it replaces. A custom
// perspective has no built-in prompt.
func checkPrompts(k *harnessv1.WorkKind) error {
	if err := checkUnique("perspective", k.GetPerspectives(), nil); err != nil {
		return err
	}
	known := []string{PromptPlan, PromptPreamble, PromptVerifier, PromptHealing}
	for _, p := range k.GetPerspectives() {
		id := verifierOf + p
		known = append(known, id)
		switch {
		case slices.Contains(perspectives, p):
		case !kindName.MatchString(p) || id == PromptVerifier:
			return fmt.Errorf("perspective %q: expected a lower-case letter, then at most 31 of a-z, 0-9 and _, and not system", p)
		case k.GetPrompts()[id] == "":
			return fmt.Errorf("unknown perspective %q: expected one of %v, or a text for it in prompts as %s", p, perspectives, id)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(k.GetPrompts())) {
		switch text := k.GetPrompts()[id]; {
		case !slices.Contains(known, id):
			return fmt.Errorf("prompts: unknown prompt %q: expected one of %v", id, known)
		case strings.TrimSpace(text) == "" || len(text) > maxKindPrompt:
			return fmt.Errorf("prompts: %s has %d bytes: expected 1 to %d", id, len(text), maxKindPrompt)
		}
	}
	return nil
}

// checkArtifacts checks the kinds of artifacts of a kind of work, and their counts.
func checkArtifacts(k *harnessv1.WorkKind) error {
	if n := len(k.GetArtifactKinds()); n > maxKindArtifacts {
		return fmt.Errorf("artifact_kinds: %d exceed %d", n, maxKindArtifacts)
	}
	for _, kind := range k.GetArtifactKinds() {
		if !workitem.IsKind(kind) {
			return fmt.Errorf("artifact kind %q: expected a lower-case letter, then at most 31 of a-z, 0-9 and _", kind)
		}
	}
	if err := checkUnique("artifact kind", k.GetArtifactKinds(), nil); err != nil {
		return err
	}
	taken := k.GetArtifactKinds()
	if len(taken) == 0 {
		taken = artifacts
	}
	counted := make([]string, 0, len(k.GetCounts()))
	for _, c := range k.GetCounts() {
		if c.GetCount() > maxKindCount {
			return fmt.Errorf("count of %s: %d exceeds %d", c.GetKind(), c.GetCount(), maxKindCount)
		}
		counted = append(counted, c.GetKind())
	}
	return checkUnique("count of", counted, taken)
}

// checkUnique returns an error if a name is there twice or is not one of known. Nil known
// permits every name.
func checkUnique(what string, names, known []string) error {
	for n, name := range names {
		if known != nil && !slices.Contains(known, name) {
			return fmt.Errorf("unknown %s %q: expected one of %v", what, name, known)
		}
		if slices.Contains(names[:n], name) {
			return fmt.Errorf("duplicate %s %q", what, name)
		}
	}
	return nil
}
