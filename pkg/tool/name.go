package tool

import "strings"

// maxName is the maximum length of a tool's name in bytes.
const maxName = 64

// ValidName reports whether a tool can have the name: it matches [A-Za-z0-9_-]{1,64}.
func ValidName(name string) bool {
	if name == "" || len(name) > maxName {
		return false
	}
	for _, c := range []byte(name) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '_', c == '-':
		default:
			return false
		}
	}
	return true
}

// Matches reports whether a name matches a pattern in which * is any characters.
func Matches(pattern, name string) bool {
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return pattern == name
	}
	first, last := parts[0], parts[len(parts)-1]
	if !strings.HasPrefix(name, first) || !strings.HasSuffix(name[len(first):], last) {
		return false
	}
	name = name[len(first) : len(name)-len(last)]
	for _, part := range parts[1 : len(parts)-1] {
		i := strings.Index(name, part)
		if i < 0 {
			return false
		}
		name = name[i+len(part):]
	}
	return true
}

// ValidPattern reports whether a pattern can match a name: without * it is one.
func ValidPattern(pattern string) bool {
	name := strings.ReplaceAll(pattern, "*", "")
	return ValidName(name) || name == "" && pattern != "" && len(pattern) <= maxName
}
