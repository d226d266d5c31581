package main

import (
	"regexp"
	"strings"
)

// kind is where a text appears: a set of them says where a word is reported.
type kind int

const (
	comment    kind = 1 << iota // of Go, proto, Python, TypeScript, shell, YAML and the like
	identifier                  // declared in Go, split into words: "goesOn" is "goes on"
	function                    // the name of a Go function or method
	typeName                    // the name of a Go type
	message                     // an error, log or help text
	document                    // Markdown, outside of code
)

const (
	prose      = comment | message | document
	everywhere = prose | identifier
)

func (k kind) String() string {
	return map[kind]string{
		comment: "comment", identifier: "identifier", function: "function",
		typeName: "type", message: "message", document: "document",
	}[k]
}

// word is a phrase that the project does not use.
type word struct {
	name    string   // in reports and exceptions
	kinds   kind     // where it is reported
	pattern string   // a regular expression; whole words, any case, a space is any white space
	except  []string // expressions for ordinary uses: a match inside of one of these is not reported
	instead string   // what to write
	most    int      // uses that the repository may still have, which only decreases; 0: each use is reported
}

// words is the table. A phrase is here only if its ordinary uses can be told
// from the others by the words around it; the rare rest is in exceptions.txt.
var words = []word{
	{
		name: "somebody", kinds: everywhere, pattern: `somebody|someone|nobody|no one|whoever|everybody|everyone|anybody|anyone`,
		instead: "name the actor: the caller, the client, the user, another worker, no client, all readers",
	},
	{
		name: "who", kinds: comment | document | message, pattern: `who`,
		except: []string{
			`(?:user|client|caller|person|people|operator|engineer|developer|reader|contributor|author|administrator|customer|reviewer|teammate|human)s?,? who`,
		},
		instead: "name the actor: the caller, the client that ...",
	},
	{
		name: "says that", kinds: prose, pattern: `(?:says?|said|saying) (?:that|whether|how|what|which|who|where|why|when|if|so)`,
		instead: "reports whether, returns, sets, is true if",
	},
	{
		name: "tells of", kinds: prose, pattern: `(?:tells?|telling|told) (?:of|that|whether|how|what|which|who|where|why|when|if|so)`,
		instead: "reports, returns, contains",
	},
	{
		name: "stands", kinds: everywhere, pattern: `stands?|stood|standing`,
		except:  []string{`stands? for`, `stand-?in`, `standing in for`, `long-standing`},
		instead: "is, appears, is stored in, is set",
	},
	{
		name: "rests", kinds: everywhere, pattern: `rests|resting|rested|(?:at|to) rest|(?:runs?|it|they|that|may|can) rest`,
		except:  []string{`encrypt\w* at rest`},
		instead: "is parked, has ended, is idle",
	},
	{
		name: "mend", kinds: everywhere, pattern: `mend(?:s|ed|ing)?|puts? (?:\w+ )?right`,
		instead: "fix, correct; repair is the executor",
	},
	{
		name: "behind", kinds: everywhere, pattern: `behind`,
		except: []string{
			`(?:lag\w*|fall\w*|fell|left|leav\w+|far|records?|messages?|seconds|versions?) (?:too )?(?:far )?behind`,
			`behind (?:(?:a|an|the|your|one) )?(?:[\w-]+ )?(?:prox(?:y|ies)|(?:load )?balancers?|firewalls?|NAT|ingress)`,
		},
		instead: "after, following, past; or protected by, backed by",
	},
	{
		name: "beside", kinds: everywhere, pattern: `besides?`,
		instead: "next to, in addition to, compared with",
	},
	{
		name: "in place of", kinds: everywhere, pattern: `in (?:the )?place of|(?:takes?|took|taken|taking) (?:the|its|their|his|her) place|in (?:its|their) place`,
		instead: "instead of, replaces",
	},
	{
		name: "anew", kinds: everywhere, pattern: `anew|once more`,
		instead: "again, re-created, rebuilt",
	},
	{
		name: "goes on", kinds: everywhere, pattern: `(?:goes|go|went) on|lets? (?:\w+ )?go on`,
		instead: "continues, resumes",
	},
	{
		name: "takes up", kinds: everywhere, pattern: `(?:takes?|took|taken|taking) (?:(?:it|them|(?:a|the) \w+) )?up`,
		except:  []string{`up (?:to|space|room|memory|time)`},
		instead: "continues, resumes, reopens, starts",
	},
	{
		name: "lets go", kinds: everywhere, pattern: `(?:lets?|letting) (?:\w+ )?go(?: of)?|(?:gives?|gave|given|giving) (?:it |them )?back`,
		instead: "releases, closes, frees, returns",
	},
	{
		name: "held by", kinds: everywhere, pattern: `held by|(?:holds?|held|holding) (?:a|an|the|its|each|every|another|that|this) (?:data directory|directory|call|run|delivery|connection|stream)`,
		except:  []string{`(?:locks?|lease|mutex|mu) (?:(?:is|are|be) )?held by`},
		instead: "is in use by, has locked, owns, contains",
	},
	{
		name: "offers", kinds: everywhere, pattern: `offer(?:s|ed|ing)?`,
		instead: "exposes, lists, is available, advertises, sends again",
	},
	{
		name: "a look", kinds: prose, pattern: `(?:a|the|one|each|every|last|next|another|its|this) look`,
		instead: "a read, a check",
	},
	{
		name: "a moment", kinds: prose, pattern: `a moment|a while|a word (?:of|from|about)`,
		instead: "a value with its unit; a message",
	},
	{
		name: "is told", kinds: everywhere, pattern: `(?:is|are|was|were|be|been|being|not) (?:told|asked)`,
		instead: "receives, is sent, is prompted, is called",
	},
	{
		name: "is answered", kinds: everywhere, pattern: `(?:is|are|was|were|be|been|being) answered`,
		except:  []string{`(?:questions?|approvals?|prompts?|pending calls?) (?:is|are|was|were|has been|have been) answered`},
		instead: "returns; has a result, a response",
	},
	{
		name: "of its own", kinds: prose, pattern: `of (?:one's|its|their|your|our|his|my) own`,
		instead: "custom, separate, user-defined",
	},
	{
		name: "what is meant", kinds: prose, pattern: `(?:what|who|which) (?:is|was|are) meant|what (?:it|they) (?:is|are) for`,
		instead: "the target, its purpose",
	},
	{
		name: "as it is", kinds: prose, pattern: `as (?:it|they) (?:is|are|was|were)(?:[.,;:)]|\z)`,
		instead: "unchanged",
	},
	{
		name: "what is there", kinds: prose, pattern: `what is there`,
		instead: "name the thing",
	},
	{
		// A noun clause instead of the thing. Indirect questions are fine: "decides what is sent".
		name: "what is", kinds: comment, pattern: `what (?:is|are|was|were|has|have|had|the)`, most: 188,
		except: []string{
			`(?:decid|determin|ask|know|knew|show|describ|explain|see|saw|nam|record|depend|restrict|limit|unclear|learn)\w*(?: (?:on|of|in order|exactly))? what (?:is|are|was|were|has|have|had|the)`,
			`what is there`, `what is meant`,
		},
		instead: "name the thing: \"what is closed when there is more\" → \"a channel that is closed when more arrives\"",
	},
	{
		name: "at once", kinds: everywhere, pattern: `at once`,
		instead: "immediately; or: at the same time",
	},
	{
		name: "for good", kinds: everywhere, pattern: `for good`,
		except:  []string{`for good (?:measure|reasons?)`},
		instead: "permanently, durably",
	},
	{
		name: "so many", kinds: prose, pattern: `so (?:many|long)`,
		except:  []string{`so (?:many|long)(?: \w+)? that`},
		instead: "n, up to n, until the deadline; for so long as: as long as, while",
	},
	{
		name: "to the letter", kinds: prose, pattern: `to the letter|by word`,
		except:  []string{`word by word`},
		instead: "exactly, literally",
	},
	{
		name: "bite", kinds: everywhere, pattern: `bit(?:es?|ing)`,
		instead: "fail on, detect",
	},
	{
		name: "wants", kinds: message, pattern: `wants`,
		instead: "expected, must",
	},
	{
		name: "insist", kinds: function, pattern: `^(?:insist|settle|judge|judging|look|begin|beginning|note|mine|say|tell)(?:s|d|ed|ing)?(?: .*)?$`,
		except:  []string{`look up`, `looks? like`},
		instead: "a verb of the field: retry, resolve, decide, read, start, record, report; own",
	},
	{
		name: "participle", kinds: typeName, pattern: `^(?:.* )?(?:\w+ed|\w+ing|held|known|given|shown|told|said|sent|gone|kept|left|written|taken|chosen|hidden|seen)$`,
		except: []string{
			`(?:bed|feed|seed|speed|need|shed|heading|string|thing|setting|binding|encoding|listing|mapping|meaning|ping|ring|timing|warning|building|padding|spelling|finding|pricing|accounting|embedding|logging|routing|scheduling|tracing|sampling|batching|testing|rendering|thinking)$`,
		},
		instead: "a noun: offered → toolSet, completing → completion, answered → response",
	},
}

// matcher is a word made ready to search for.
type matcher struct {
	word
	find   *regexp.Regexp
	except []*regexp.Regexp
}

// matchers compiles the table.
func matchers(table []word) []matcher {
	compiled := make([]matcher, 0, len(table))
	for _, w := range table {
		m := matcher{word: w, find: compile(w.pattern)}
		for _, e := range w.except {
			m.except = append(m.except, compile(e))
		}
		compiled = append(compiled, m)
	}
	return compiled
}

func compile(pattern string) *regexp.Regexp {
	start, end := `\b`, `\b`
	if strings.HasPrefix(pattern, "^") {
		start = ""
	}
	if strings.HasSuffix(pattern, "$") || strings.HasSuffix(pattern, `\z)`) {
		end = ""
	}
	return regexp.MustCompile(`(?im)` + start + `(?:` + strings.ReplaceAll(pattern, " ", `\s+`) + `)` + end)
}

// search returns where the word is in text, as pairs of offsets.
func (m *matcher) search(text string) [][]int {
	found := m.find.FindAllStringIndex(text, -1)
	if len(found) == 0 {
		return nil
	}
	var ordinary [][]int
	for _, e := range m.except {
		ordinary = append(ordinary, e.FindAllStringIndex(text, -1)...)
	}
	var rest [][]int
next:
	for _, f := range found {
		for _, o := range ordinary {
			if o[0] < f[1] && f[0] < o[1] {
				continue next
			}
		}
		rest = append(rest, f)
	}
	return rest
}
