package dialect

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"unicode"

	"github.com/harnessmesh/harnessmesh/pkg/content"
)

// Text returns a text from outside without the characters that a person does not see:
// controls other than line feed and tab, marks of direction, characters of no width, tags
// and variation selectors. It has at most limit bytes, the last of which are an ellipsis
// where something was cut. Invalid bytes become U+FFFD.
func Text(s string, limit int) string {
	if limit <= 0 {
		return ""
	}
	s = strings.ToValidUTF8(s, "\uFFFD")
	s = strings.Map(func(r rune) rune {
		switch {
		case r == '\n', r == '\t':
			return r
		case r == '\u2028', r == '\u2029', r == '\u0085':
			return '\n'
		case invisible(r):
			return -1
		}
		return r
	}, s)
	if s = strings.TrimSpace(s); len(s) <= limit {
		return s
	}
	if limit <= len("…") {
		return ""
	}
	return strings.TrimSpace(content.Cut(s, limit-len("…"))) + "…"
}

// invisible reports whether a character has no shape, or changes how those around it read.
func invisible(r rune) bool {
	switch r {
	case '\u034f', '\u115f', '\u1160', '\u17b4', '\u17b5', '\u2800', '\u3164', '\uffa0':
		return true
	}
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co, unicode.Cs, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point) ||
		r >= 0xE0000 && r <= 0xE0FFF
}

// maxName bounds the name of a tool, in bytes.
const maxName = 64

// Name returns the name that models, rules and events use for a tool of a server: the prefix of
// the server, such as mcp__SERVER__, and the tool. Where this is longer than 64 bytes, or has
// other characters than [A-Za-z0-9_-], the characters become _ and the end is 8 hexadecimal
// digits of the SHA-256 of the whole name. It is the same in every run.
func Name(prefix, tool string) string {
	whole := prefix + tool
	plain := plainName(whole, false)
	if plain == whole && len(whole) <= maxName {
		return whole
	}
	return content.Cut(plain, maxName-9) + "_" + digest(whole)
}

// plainName returns a name with _ for each character that is not plain. Dots are plain in
// the names of properties.
func plainName(name string, dots bool) string {
	return strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', r == '_', r == '-', dots && r == '.':
			return r
		}
		return '_'
	}, name)
}

// digest returns 8 hexadecimal digits of the SHA-256 of a text.
func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:4])
}

// propertyNames returns the name in the dialect of each property, given their names in
// order. No two are the same, and one that fits remains unchanged.
func propertyNames(names []string) map[string]string {
	out, used := make(map[string]string, len(names)), make(map[string]bool, len(names))
	for _, name := range names {
		if fits(name) {
			out[name], used[name] = name, true
		}
	}
	for _, name := range names {
		if fits(name) {
			continue
		}
		plain := plainName(name, true)
		short := plain
		for sum := name; !fits(short) || used[short]; {
			short = content.Cut(plain, maxName-9) + "_" + digest(sum)
			sum += "\x00"
		}
		out[name], used[short] = short, true
	}
	return out
}

func fits(name string) bool {
	return name != "" && len(name) <= maxName && plainName(name, true) == name
}
