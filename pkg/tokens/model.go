package tokens

import "strings"

// encodingFor returns the encoding of a model by its name: cl100k for the families
// before gpt-4o, o200k for all others.
func encodingFor(model string) *encoding {
	name := strings.ToLower(model[strings.LastIndexAny(model, ":/")+1:])
	switch {
	case name == "gpt-4", name == "gpt-3.5", name == "gpt-35",
		strings.HasPrefix(name, "gpt-4-"), strings.HasPrefix(name, "gpt-3.5-"), strings.HasPrefix(name, "gpt-35-"),
		strings.HasPrefix(name, "text-embedding-"):
		return cl100k
	default:
		return o200k
	}
}
