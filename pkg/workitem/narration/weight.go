package narration

import (
	"slices"
	"strings"
)

// weight is the certainty that a sentence is narration, by its words alone.
type weight int

const (
	nothing  weight = iota
	possible        // it is narration only where the artifact has no content
	likely          // it may be content of a text that mentions its writer
	certain         // it is about the artifact, or of the request for it
)

// testimony has the signs in the words of a line.
type testimony struct {
	signs  signs
	weight weight
	first  signs // of its first sentence
	// opens is true if its first sentence is about an artifact, or leads to what does.
	opens bool
	// own is true if a sentence mentions its writer, and of nothing else here; turns
	// says it of one after the first.
	own, turns bool
}

// testify reads a line. Sentences that say nothing of the artifact do not take away
// from those that do.
func testify(bare string) testimony {
	t := testimony{}
	sentences := utterances(strings.TrimPrefix(strings.TrimPrefix(bare, "P.S. "), "PS: "))
	for n, u := range sentences {
		found := phrases().read(u.words, u.lead)
		switch u.ends {
		case '?':
			found |= signAsks
		case ':':
			found |= signColon
		}
		w := weigh(found)
		if n == 0 {
			t.first = found
			t.opens = w >= likely || found&(signHail|signHand|signDone|signSorry|polite|signOnward|signThinks|signDid) != 0
		}
		t.own = t.own || w == possible && found&signMe != 0 && found&^(signMe|signYou|signWhole|aside) == 0
		t.turns = t.turns || t.own && n > 0
		t.weight = max(t.weight, w)
		t.signs |= found
	}
	if n := len(sentences); n > 1 && t.has(signHail) {
		t.weight = max(t.weight, weigh(t.signs))
	}
	if len(bare) > maxRemark {
		t.weight = nothing
	}
	if t.has(signVoice) && !t.has(signRequest) || t.has(signWill) && (t.has(signLater) || t.has(signFinite) && !t.has(signMe)) {
		t.weight = min(t.weight, possible)
	}
	return t
}

func (t testimony) has(oneOf signs) bool { return t.signs.has(oneOf) }

// certainly are signs that together are about an artifact or of the request for it: one
// of each set.
var certainly = [][]signs{
	{signTool},
	{signRequest, signDid | signWill | signHand | signDone | polite | signHail | signOnward}, // "I cut it as you asked."
	{signRequest, signWhole, signSize | signText},                                            // "This version is shorter, as you wanted."
	{signGiven, signDid | signSorry | signLook | signOnward, signMe},                         // "I've checked your notes."
	{signGiven, signWhole, signText},                                                         // "This draft follows the notes you sent."
	{signProposal, signText | signSize | polite | signWill | signOnward, signYou | signMe},
	{signProposal, signAsks | signDone}, // "Shall I add a table?"
	{signHand, signPart | signOnward, signRequest | signGiven | signOnward},
	{signHand, signRequest | signGiven},        // "Here is the plan you asked for."
	{signHail | signHand, signText, signColon}, // "Sure, the plan:"
	{signHail, signHand | signDid | signWill | signProposal},
	{signOnward, signWill | signHand},                 // "Continuing with the plan."
	{signOnward, signPart | signText, signMe},         // "I continue with the second part."
	{signWill, signPart | signText},                   // "Let me write the report."
	{signDid, signPart | signText, signMe},            // "I've shortened the report."
	{signSaved, signMe | signDid | signText},          // "The report was saved."
	{signGaps, signDid | signYou | signWill | polite}, // "Replace the placeholders."
	{signModel, signMe | polite | signWhole},          // "I'm an AI."
	{signThinks, signMe | signRequest | signText},     // "The user wants a report."
	{signSorry, signMe, signGiven | signRequest | signText},
}

// mostly are signs that narration gives, and content of a text that says I.
var mostly = [][]signs{
	{signWill | signProposal | signRequest | signSaved | signGaps | signModel | signDone | signThinks},
	{signDid | signLook | signSorry | signOnward, signMe},
	{signHand, signColon},
	{signHand, signText, signMe},
	{polite, signYou | signMe},
	{signGiven, signYou},
	{signWhole, signSize | signYou},
	{signWhole, signText, signColon},
	{signHail, signText},
}

// polite are signs of a sentence that turns to the reader.
const polite = signPolite | signAdvice

// aside are signs that alone say nothing of narration.
const aside = signText | signPart | signForm | signLater | signFinite | signColon | signAsks

// weigh returns the weight of the signs of a sentence.
func weigh(s signs) weight {
	switch {
	case s.has(signVoice) && !s.has(signRequest):
		return possible
	case s.fits(certainly):
		return certain
	case s.fits(mostly):
		return likely
	case s&^aside != 0, s&^(signColon|signAsks) != 0 && s.has(signColon):
		return possible
	}
	return nothing
}

// has reports whether one of the signs is there.
func (s signs) has(oneOf signs) bool { return s&oneOf != 0 }

// fits reports whether one of the rows is there: one sign of each of its sets.
func (s signs) fits(rows [][]signs) bool {
	return slices.ContainsFunc(rows, func(row []signs) bool {
		return !slices.ContainsFunc(row, func(set signs) bool { return !s.has(set) })
	})
}
