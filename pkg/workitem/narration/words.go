package narration

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxWords bounds how many words of a line are read.
const maxWords = 120

// utterance is a sentence of a line, as words.
type utterance struct {
	words []token
	// lead is the number of of the first words only lead to what it says: "Now, ".
	lead int
	// ends is the sign that ends it; 0 when none does.
	ends rune
	// unknown is the number of words that no table has; names is the number of words after the
	// first that begin with a capital letter, and numbers that of those with a digit.
	unknown, names, numbers int
}

// utterances reads a line as sentences. What it quotes is one word.
func utterances(bare string) []utterance {
	var all []utterance
	var u utterance
	finish := func(ends rune) {
		if u.ends = ends; len(u.words) > 0 {
			for u.lead < len(u.words) && (u.words[u.lead].id == comma || u.words[u.lead].class&read().leads != 0) {
				u.lead++
			}
			all = append(all, u)
		}
		u = utterance{}
	}
	total := 0
	for at := 0; at < len(bare) && total < maxWords; {
		r, size := utf8.DecodeRuneInString(bare[at:])
		switch {
		case wordRune(r):
			end := wordEnd(bare, at)
			u.add(bare[at:end])
			total++
			at = end
			continue
		case strings.ContainsRune("\"“„«`", r):
			end := quoteEnd(bare, at+size, r)
			u.words = append(u.words, quotation(bare[at+size:max(at+size, end)], r))
			total++
			at = end
			_, width := utf8.DecodeRuneInString(bare[min(at, len(bare)):])
			at += width
			continue
		case r == '.' || r == '!' || r == '?' || r == '…':
			if at+size >= len(bare) || bare[at+size] == ' ' || bare[at+size] == ')' {
				finish(r)
			}
		case r == ':' && at+size >= len(bare):
			finish(r)
		case r == ',' || r == ';' || r == '—' || r == '–' || r == ':':
			if n := len(u.words); n > 0 && u.words[n-1].id != comma {
				u.words = append(u.words, token{id: comma})
				total++
			}
		}
		at += size
	}
	finish(0)
	return all
}

func wordRune(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

// wordEnd returns the end of the word that starts at a byte. Apostrophes, hyphens, and
// the dots and slashes of file names are part of it.
func wordEnd(text string, at int) int {
	for at < len(text) {
		r, size := utf8.DecodeRuneInString(text[at:])
		if !wordRune(r) && r != '_' {
			next, _ := utf8.DecodeRuneInString(text[at+size:])
			if !strings.ContainsRune("'’-./", r) || !wordRune(next) {
				return at
			}
		}
		at += size
	}
	return at
}

func quoteEnd(text string, at int, opened rune) int {
	closing := map[rune]string{'"': "\"", '“': "”", '„': "“”", '«': "»", '`': "`"}[opened]
	if n := strings.IndexAny(text[at:], closing); n >= 0 {
		return at + n
	}
	return len(text)
}

func quotation(text string, opened rune) token {
	if opened == '`' && fileLike(text) {
		return token{class: read().files}
	}
	return token{}
}

// fileLike reports whether a word looks like the name of a file.
func fileLike(word string) bool {
	dot := strings.LastIndexByte(word, '.')
	return dot > 0 && len(word)-dot <= 9 && read().lexicon[strings.ToLower(word[dot+1:])]&read().endings != 0
}

// workItem reports whether a word is the id of a work item.
func workItem(word string) bool {
	return len(word) > 1 && len(word) < 5 && word[0] == 'w' && strings.Trim(word[1:], "0123456789") == ""
}

// add appends a word; the French article of "l'archive" is a separate word.
func (u *utterance) add(word string) {
	if fileLike(word) || workItem(word) {
		u.words = append(u.words, token{class: read().files})
		return
	}
	first, _ := utf8.DecodeRuneInString(word)
	begins := len(u.words) == 0
	word = strings.ToLower(strings.ReplaceAll(word, "’", "'"))
	if at := strings.IndexByte(word, '\''); at > 0 && at <= 5 {
		switch word[:at] {
		case "l", "d", "qu", "n", "s", "m", "t", "c", "j", "un", "dell", "nell", "all", "dall", "sull", "quest":
			u.words = append(u.words, token{id: read().ids[word[:at+1]], class: read().lexicon[word[:at+1]]})
			word = word[at+1:]
		}
	}
	class := read().lexicon[word]
	if verb, rest, ok := strings.Cut(word, "_"); ok && rest != "" && read().lexicon[verb]&read().verbs != 0 {
		class |= read().calls
	}
	switch known := read().ids[word] != 0 || class != 0; {
	case strings.ContainsAny(word, "0123456789"):
		u.numbers++
	case !known && unicode.IsUpper(first) && !begins:
		u.names++
		u.unknown++
	case !known && (len(word) < 5 || !strings.HasSuffix(word, "ed")):
		u.unknown++
	}
	if len(word) > 4 && strings.HasSuffix(word, "ed") {
		class |= read().past
	}
	u.words = append(u.words, token{id: read().ids[word], class: class})
}
