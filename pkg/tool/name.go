package tool

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
