package contract

import (
	"context"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// givenTexts returns the texts in the arguments of the call that an error answers; none for
// other messages.
func givenTexts(ctx context.Context, src Sources, messages []*harnessv1.Message, m *harnessv1.Message) ([]string, error) {
	if m.GetRole() != harnessv1.Role_ROLE_TOOL || !m.GetIsError() {
		return nil, nil
	}
	for _, asking := range slices.Backward(messages) {
		for _, call := range asking.GetToolCalls() {
			if call.GetId() != m.GetToolCallId() {
				continue
			}
			arguments, err := src.Text(ctx, call.GetArguments())
			if err != nil {
				return nil, err
			}
			var value any
			if json.Unmarshal([]byte(arguments), &value) != nil {
				return []string{arguments}, nil
			}
			return texts(value, nil), nil
		}
	}
	return nil, nil
}

// texts appends the texts and names in a JSON value to all.
func texts(value any, all []string) []string {
	switch v := value.(type) {
	case string:
		return append(all, v)
	case []any:
		for _, item := range v {
			all = texts(item, all)
		}
	case map[string]any:
		for name, item := range v {
			all = texts(item, append(all, name))
		}
	case nil:
	default:
		all = append(all, argumentText(v))
	}
	return all
}

// findOwn returns the first match of a pattern in text that repeats none of the given texts.
// The match is that of a text of the same length.
func findOwn(pattern *regexp.Regexp, text string, given []string) []int {
	if len(given) == 0 {
		return pattern.FindStringIndex(text)
	}
	for _, g := range given {
		text = blank(text, g)
	}
	for _, at := range pattern.FindAllStringIndex(text, -1) {
		match := strings.ToLower(strings.Trim(text[at[0]:at[1]], "\x00 \t\r\n"))
		repeats := func(g string) bool { return strings.Contains(strings.ToLower(g), match) }
		if !slices.ContainsFunc(given, repeats) {
			return at
		}
	}
	return nil
}

// blank overwrites each occurrence of whole words in text with NUL.
func blank(text, words string) string {
	words = strings.TrimSpace(words)
	if words == "" {
		return text
	}
	isWord := func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }
	first, _ := utf8.DecodeRuneInString(words)
	last, _ := utf8.DecodeLastRuneInString(words)
	var b strings.Builder
	rest := text
	for {
		i := strings.Index(rest, words)
		if i < 0 {
			return b.String() + rest
		}
		before, _ := utf8.DecodeLastRuneInString(rest[:i])
		after, _ := utf8.DecodeRuneInString(rest[i+len(words):])
		b.WriteString(rest[:i])
		if isWord(first) && isWord(before) || isWord(last) && isWord(after) {
			b.WriteString(words)
		} else {
			b.WriteString(strings.Repeat("\x00", len(words)))
		}
		rest = rest[i+len(words):]
	}
}
