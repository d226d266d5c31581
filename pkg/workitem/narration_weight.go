package workitem

import "strings"

// weight is how surely a sentence is narration, by its words alone.
type weight int

const (
	nothing  weight = iota
	possible        // it may be where nothing of the artifact can stand
	likely          // it may be content of a text that speaks of its writer
	certain         // it speaks of the artifact, or of the request for it
)

// testimony is what the words of a line say.
type testimony struct {
	signs  signs
	weight weight
	// colon says that it leads to what follows it.
	colon bool
	// asks says that it ends with a question.
	asks bool
	// opens says that its first sentence speaks of an artifact, or leads to what does.
	opens bool
	// plain is how many of its sentences say nothing of an artifact.
	plain int
	// own says that a sentence speaks of its writer, and of nothing else here; aside
	// says it of one behind the first.
	own, aside bool
}

// testify reads a line. Sentences that say nothing of the artifact do not take away
// from those that do.
func testify(bare string) testimony {
	t := testimony{}
	if len(bare) > maxRemark {
		return t
	}
	sentences := utterances(strings.TrimPrefix(strings.TrimPrefix(bare, "P.S. "), "PS: "))
	for n, u := range sentences {
		found := phrases.read(u.words, u.lead)
		if u.ends == '?' {
			t.asks = true
		}
		w := weigh(found, u.ends)
		if n == 0 {
			t.opens = w >= likely || found&(signHail|signHand|signDone|signSorry|signPolite|signOnward|signThinks|signDid) != 0
		}
		if w == nothing {
			t.plain++
		}
		t.own = t.own || w == possible && found&signMe != 0 && found&^(signMe|signYou|signText|signPart|signWhole) == 0
		t.aside = t.aside || t.own && n > 0
		t.weight = max(t.weight, w)
		t.signs |= found
	}
	if n := len(sentences); n > 0 {
		t.colon = sentences[n-1].ends == ':'
	}
	if n := len(sentences); n > 1 && t.has(signHail) {
		t.weight = max(t.weight, weigh(t.signs, sentences[n-1].ends))
	}
	if t.has(signVoice) && !t.has(signRequest) {
		t.weight = min(t.weight, possible)
	}
	return t
}

func (t testimony) has(any signs) bool { return t.signs&any != 0 }

// weigh is how much the signs of a sentence count together.
func weigh(s signs, ends rune) weight {
	has := func(any signs) bool { return s&any != 0 }
	switch {
	case has(signVoice) && !has(signRequest):
		return possible
	case has(signRequest) && has(signDid|signWill|signHand|signDone) || has(signRequest) && has(signWhole) && has(signSize|signText),
		has(signGiven) && has(signDid|signSorry|signLook) && has(signMe),
		has(signOffer) && has(signText|signSize|signPolite|signWill|signOnward) && has(signYou|signMe),
		has(signOffer) && ends == '?',
		has(signGiven) && has(signWhole) && has(signText), has(signHail|signOnward) && has(signRequest), has(signOnward) && has(signGiven) && has(signMe),
		has(signHand) && has(signPart) && has(signRequest|signGiven|signOnward),
		has(signOnward) && has(signWill|signHand) || has(signOnward) && has(signPart|signText) && has(signMe|signHand),
		has(signWill) && has(signPart|signText),
		has(signDid) && has(signText|signPart) && has(signMe),
		has(signSaved) && has(signMe|signDid|signText),
		has(signGaps) && has(signDid|signYou|signWill|signPolite),
		has(signModel) && has(signMe|signPolite|signWhole), has(signPolite) && has(signRequest),
		has(signHail) && has(signHand|signDid|signWill|signOffer),
		has(signHail|signHand) && has(signText) && ends == ':',
		has(signHand) && has(signRequest|signGiven),
		has(signDone) && has(signOffer),
		has(signThinks) && has(signMe|signRequest|signText),
		has(signSorry) && has(signMe) && has(signGiven|signRequest|signText):
		return certain
	case has(signDid) && has(signMe), has(signWill | signOffer | signRequest | signSaved | signGaps | signModel | signDone | signThinks),
		has(signHand) && ends == ':', has(signHand) && has(signText) && has(signMe), has(signLook|signSorry|signOnward) && has(signMe),
		has(signPolite) && has(signYou|signMe), has(signWhole) && has(signSize|signYou), has(signWhole) && has(signText) && ends == ':', has(signHail) && has(signText):
		return likely
	case s&^(signText|signPart) != 0, s != 0 && ends == ':':
		return possible
	}
	return nothing
}
