package mark

import harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"

// searchTokens is the number of tokens from which results of web_search are externalised: a
// list of results is short, and a later search for the same words has others.
const searchTokens = 500

// usual are the marks that the name of a tool implies for its results.
type usual struct {
	durability harnessv1.Durability
	fields     []string
	// externalize is the number of tokens from which results are externalised; 0: that of
	// the run.
	externalize uint32
}

// usuals are the tools whose names have one meaning, wherever they run. What a tool declares
// precedes durability and fields.
var usuals = map[string]usual{
	"web_search":   {durability: harnessv1.Durability_DURABILITY_NON_REPLAYABLE, externalize: searchTokens},
	"web_fetch":    {durability: harnessv1.Durability_DURABILITY_NON_REPLAYABLE, fields: []string{"url"}},
	"http_request": {durability: harnessv1.Durability_DURABILITY_NON_REPLAYABLE, fields: []string{"status_code", "url"}},
	"calculate":    {durability: harnessv1.Durability_DURABILITY_REPLAYABLE},
}

// usualOf returns the marks that a tool's name implies, in a run that externalises from a number of tokens
// on. A run that externalises shorter messages also does so with results of this tool.
func usualOf(tool string, run uint32) usual {
	u := usuals[tool]
	if run > 0 && run <= u.externalize {
		u.externalize = 0
	}
	return u
}
