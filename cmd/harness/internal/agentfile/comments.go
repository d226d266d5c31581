package agentfile

import "bytes"

// withoutComments returns a file of other programs in JSON without a byte order mark and with spaces for each comment, from // to the end
// of its line and from /* to */. Lines and columns stay. A comma at an end is no error of YAML, which JSON is read as.
// A file that is no object is returned unchanged.
func withoutComments(data []byte) []byte {
	out := bytes.Clone(bytes.TrimPrefix(data, []byte("\ufeff")))
	var quote, before byte // the string that i is in, and the last byte that is no space
	object := false
	for i := 0; i < len(out); i++ {
		c := out[i]
		switch {
		case quote != 0:
			switch c {
			case '\\':
				i++
			case quote:
				quote = 0
			}
			continue
		case c == '"' || c == '\'' && bytes.IndexByte([]byte("{[,:"), before) >= 0:
			quote = c
		case c == '/' && i+1 < len(out) && (out[i+1] == '/' || out[i+1] == '*'):
			end := commentEnd(out[i:])
			blank(out[i : i+end])
			i += end - 1
			continue
		case c == '\t':
			out[i] = ' '
			continue
		case c == ' ' || c == '\r' || c == '\n':
			continue
		case before == 0 && c != '{':
			return data
		}
		before, object = c, true
	}
	if !object {
		return data
	}
	return out
}

// commentEnd returns the length of a comment at the beginning of a text.
func commentEnd(text []byte) int {
	end := "\n"
	if text[1] == '*' {
		end = "*/"
	}
	i := bytes.Index(text[2:], []byte(end))
	switch {
	case i < 0:
		return len(text)
	case end == "\n":
		return i + 2
	}
	return i + 2 + len(end)
}

// blank replaces what a comment has apart from line breaks.
func blank(comment []byte) {
	for i, c := range comment {
		if c != '\n' && c != '\r' {
			comment[i] = ' '
		}
	}
}
