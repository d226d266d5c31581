package tokens

import "strings"

// family is models whose vocabulary is public.
type family struct {
	// name is what their names begin with. If more follows, it is one of then first.
	name, then string
	encoding   *encoding
}

// The families are those of tiktoken, github.com/openai/tiktoken; that gpt-6 has the
// vocabulary of gpt-5, github.com/simonw/ttok says, release 1.0.
var families = []family{
	{"gpt-4o", "-", o200k}, {"chatgpt-4o", "-", o200k}, {"gpt-4.1", "-", o200k}, {"gpt-4.5", "-", o200k},
	{"gpt-5", "-.", o200k}, {"gpt-6", "-.", o200k}, {"gpt-oss", "-", o200k},
	{"o1", "-", o200k}, {"o3", "-", o200k}, {"o4", "-", o200k},
	{"gpt-4", "-", cl100k}, {"gpt-3.5", "-", cl100k}, {"gpt-35", "-", cl100k}, {"text-embedding", "-", cl100k},
}

// The limits of the factor of a model whose vocabulary is not public: the tokens that it needs
// for one that is counted. A model that reports fewer reports something else, and one that
// needs more than MaxFactor is not known.
const (
	MinFactor = 1.0
	MaxFactor = 2.5
)

// Known reports whether the vocabulary of a model, by its name or reference, is public,
// so that Count is exact for it.
func Known(model string) bool { return familyOf(model) != nil }

// encodingFor returns the encoding of a model by its name or reference.
func encodingFor(model string) *encoding {
	if f := familyOf(model); f != nil {
		return f.encoding
	}
	return o200k
}

func familyOf(model string) *family {
	name := strings.ToLower(model[strings.LastIndexAny(model, ":/")+1:])
	for i, f := range families {
		rest, ok := strings.CutPrefix(name, f.name)
		if ok && (rest == "" || strings.Contains(f.then, rest[:1])) {
			return &families[i]
		}
	}
	return nil
}
