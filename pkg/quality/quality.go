// Package quality decides whether work is good, and what follows if it is not: complexity and
// kind of the work, plans and their choice, what a kind requires, alerts about a text, whether
// another attempt is worth it, what a healing prompt says, scores, the profile that outlives
// runs. Everything is pure: no clock, no call of a model. What a model says comes in as text and
// is parsed with a fallback for each malformed part; a JobRequest is the request to one.
//
// Characters are code points.
package quality

// Built-in kinds of work.
const (
	Chat           = "chat"
	Synthesis      = "synthesis"
	Recommendation = "recommendation"
	Drafting       = "drafting"
	FullPipeline   = "full_pipeline"
)

// Levels of complexity.
const (
	Simple  = "SIMPLE"
	Medium  = "MEDIUM"
	Complex = "COMPLEX"
)

// Built-in kinds of artifacts.
const (
	Insight          = "insight"
	RecommendationOf = "recommendation"
	Document         = "document"
)

// Purposes of jobs.
const (
	PurposeClassify = "complexity"
	PurposeIntent   = "intent"
	PurposePlan     = "plan"
	PurposeVerify   = "verify"
)

// Fallback begins what stands for an answer that did not come.
const Fallback = "[is_fallback] "
