package gateway

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/input"
	"github.com/harnessmesh/harnessmesh/pkg/quality"
)

// Limits of tasks and kinds of work.
const (
	// maxSources bounds the sources of a task.
	maxSources = 200
	// maxKinds bounds the kinds of an agent.
	maxKinds = 16
	// maxProfile bounds the name of a profile, in bytes.
	maxProfile    = 256
	maxIterations = 5
	maxAttempts   = 10
	minJudgeTime  = time.Second
	maxJudgeTime  = 10 * time.Minute
	maxTitle      = 300
	maxURI        = 2000
)

var sourceID = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}$`)

// checkQuality refuses kinds, a task and settings by which no work can be judged.
func checkQuality(s *harnessv1.RunSpec) error {
	kinds := s.GetAgent().GetKinds()
	if n := len(kinds); n > maxKinds {
		return input.TooLarge("spec.agent.kinds", n, maxKinds, "kinds")
	}
	for i, k := range kinds {
		field := input.At("spec.agent.kinds", i)
		if err := quality.CheckKind(k); err != nil {
			return fault.Invalid(field, "%s", err)
		}
		if slices.ContainsFunc(kinds[:i], func(o *harnessv1.WorkKind) bool { return o.GetName() == k.GetName() }) {
			return fault.Invalid(field+".name", "another kind is named %q", k.GetName())
		}
	}
	if err := checkTask(s.GetTask(), quality.Names(kinds)); err != nil {
		return err
	}
	return checkQualityConfig(s.GetConfig().GetQuality())
}

// checkTask refuses a task of an unknown kind, and sources that cannot be cited or read.
func checkTask(t *harnessv1.Task, kinds []string) error {
	const field = "spec.task"
	switch {
	case t.GetKind() != "" && !slices.Contains(kinds, t.GetKind()):
		return fault.Invalid(field+".kind", "unknown kind %q: must be one of %s", t.GetKind(), strings.Join(kinds, ", "))
	case len(t.GetSources()) > maxSources:
		return input.TooLarge(field+".sources", len(t.GetSources()), maxSources, "sources")
	case len(t.GetProfile()) > maxProfile:
		return input.TooLarge(field+".profile", len(t.GetProfile()), maxProfile, "bytes")
	}
	seen := map[string]bool{}
	for i, src := range t.GetSources() {
		if err := checkSource(input.At(field+".sources", i), src); err != nil {
			return err
		}
		if seen[src.GetId()] {
			return fault.Invalid(input.At(field+".sources", i)+".id", "another source has the id %q", src.GetId())
		}
		seen[src.GetId()] = true
	}
	return nil
}

func checkSource(field string, src *harnessv1.Source) error {
	p := src.GetPath()
	switch {
	case !sourceID.MatchString(src.GetId()):
		return fault.Invalid(field+".id", "%q: must be 1 to 64 of the characters A-Z a-z 0-9 _ . -", src.GetId())
	case len(src.GetTitle()) > maxTitle:
		return input.TooLarge(field+".title", len(src.GetTitle()), maxTitle, "bytes")
	case len(src.GetUri()) > maxURI:
		return input.TooLarge(field+".uri", len(src.GetUri()), maxURI, "bytes")
	case p != "" && (path.IsAbs(p) || p != path.Clean(p) || p == ".." || strings.HasPrefix(p, "../")):
		return fault.Invalid(field+".path", "%q: must be a path below the workspace, such as notes/a.md", p)
	}
	return nil
}

// checkQualityConfig refuses settings out of their ranges or order.
func checkQualityConfig(c *harnessv1.QualityConfig) error {
	const field = "spec.config.quality"
	if c == nil {
		return nil
	}
	if err := checkSummarizer(field+".model", c.GetModel()); err != nil {
		return err
	}
	if c.Iterations != nil && (c.GetIterations() < 1 || c.GetIterations() > maxIterations) {
		return fault.Invalid(field+".iterations", "%d: must be 1 to %d", c.GetIterations(), maxIterations)
	}
	if t := c.GetTimeout(); t != nil && (t.AsDuration() < minJudgeTime || t.AsDuration() > maxJudgeTime) {
		return fault.Invalid(field+".timeout", "%s: must be %s to %s", t.AsDuration(), minJudgeTime, maxJudgeTime)
	}
	r := c.GetRetry()
	if r == nil {
		return nil
	}
	for _, limit := range []struct {
		name  string
		value *uint32
	}{
		{"max_attempts_synthesis", r.MaxAttemptsSynthesis},
		{"max_attempts_chat", r.MaxAttemptsChat},
		{"max_attempts_default", r.MaxAttemptsDefault},
	} {
		if n := limit.value; n != nil && (*n < 1 || *n > maxAttempts) {
			return fault.Invalid(field+".retry."+limit.name, "%d: must be 1 to %d", *n, maxAttempts)
		}
	}
	if err := quality.CheckThresholds(r); err != nil {
		return fault.Invalid(field+".retry", "%s", err)
	}
	return nil
}
