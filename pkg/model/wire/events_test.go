package wire

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

// readEvents returns the events of a stream as "type|data", and the error that
// ended it.
func readEvents(r io.Reader) (list []string, err error) {
	events := newEvents(r)
	for {
		e, err := events.Next()
		if err != nil {
			return list, err
		}
		list = append(list, e.Type+"|"+string(e.Data))
	}
}

func TestEventsDecodeTheFormat(t *testing.T) {
	for name, c := range map[string]struct {
		stream string
		want   []string
	}{
		"line feeds":                     {"data: a\n\ndata: b\n\n", []string{"|a", "|b"}},
		"carriage returns":               {"data: a\r\rdata: b\r\r", []string{"|a", "|b"}},
		"both":                           {"data: a\r\n\r\ndata: b\r\n\r\n", []string{"|a", "|b"}},
		"both, several data lines":       {"event: x\r\ndata: a\r\ndata: b\r\n\r\n", []string{"x|a\nb"}},
		"mixed":                          {"data: a\r\n\ndata: b\n\r\n", []string{"|a", "|b"}},
		"type":                           {"event: x\ndata: a\n\ndata: b\n\n", []string{"x|a", "|b"}},
		"type after data":                {"data: a\nevent: x\n\n", []string{"x|a"}},
		"type without data is forgotten": {"event: x\n\ndata: a\n\n", []string{"|a"}},
		"several data lines":             {"data: a\ndata: b\ndata\n\n", []string{"|a\nb\n"}},
		"one space is dropped":           {"data:a\n\ndata:  b\n\n", []string{"|a", "| b"}},
		"empty data":                     {"data\n\ndata:\n\n", []string{"|", "|"}},
		"comments":                       {": keep-alive\n\n:\ndata: a\n: in between\ndata: b\n\n", []string{"|a\nb"}},
		"other fields":                   {"id: 7\nretry: 3\nnonsense\ndata: a\n\n", []string{"|a"}},
		"colon in the value":             {"data: a: b\n\n", []string{"|a: b"}},
		"byte order mark":                {"\uFEFFdata: a\n\n", []string{"|a"}},
		"only one byte order mark":       {"\uFEFF\uFEFFdata: a\n\ndata: b\n\n", []string{"|b"}},
		"no blank line at the end":       {"data: a\n\nevent: x\ndata: b\n", []string{"|a", "x|b"}},
		"no line end at the end":         {"data: a\n\ndata: b", []string{"|a", "|b"}},
		"nothing":                        {"", nil},
		"blank lines":                    {"\n\r\n\r", nil},
		"beyond the buffer":              {"data: " + strings.Repeat("a", 9000) + "\n\n", []string{"|" + strings.Repeat("a", 9000)}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, r := range []io.Reader{strings.NewReader(c.stream), iotest.OneByteReader(strings.NewReader(c.stream)), iotest.DataErrReader(strings.NewReader(c.stream))} {
				got, err := readEvents(r)
				if !errors.Is(err, io.EOF) || !slices.Equal(got, c.want) {
					t.Errorf("got %q and %v, want %q", got, err, c.want)
				}
			}
		})
	}
}

func TestEventsDropAnUnfinishedEventOfABrokenStream(t *testing.T) {
	broken := errors.New("connection reset")
	got, err := readEvents(io.MultiReader(strings.NewReader("data: a\n\ndata: b\n"), iotest.ErrReader(broken)))
	if !errors.Is(err, broken) || !slices.Equal(got, []string{"|a"}) {
		t.Errorf("got %q and %v", got, err)
	}
}

// TestEventsArriveWithTheirBlankLine reads from a pipe: an event must not wait
// for the bytes that follow it.
func TestEventsArriveWithTheirBlankLine(t *testing.T) {
	for _, end := range []string{"\n", "\r", "\r\n"} {
		r, w := io.Pipe()
		events := newEvents(r)
		go func() { _, _ = io.WriteString(w, "data: a"+end+end) }()
		if e, err := events.Next(); err != nil || string(e.Data) != "a" {
			t.Errorf("line end %q: got %q and %v", end, e.Data, err)
		}
		_ = w.Close()
	}
}

// endless repeats a text.
type endless struct{ text string }

func (e endless) Read(p []byte) (n int, err error) {
	for n < len(p) {
		n += copy(p[n:], e.text)
	}
	return n, nil
}

func TestEventsAreBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("reads the largest events")
	}
	for name, r := range map[string]io.Reader{
		"line": endless{"a"},
		"data": endless{"data: " + strings.Repeat("a", 1000) + "\n"},
	} {
		if _, err := readEvents(r); !errors.Is(err, ErrTooLarge) {
			t.Errorf("%s without end: error %v, want ErrTooLarge", name, err)
		}
	}
}

// FuzzEvents compares any stream, cut anywhere, with a decoder that has all of
// it in memory.
func FuzzEvents(f *testing.F) {
	for _, seed := range []string{"data: a\r\n\r\nevent: x\ndata: b\rdata: c\n\n", "\uFEFFdata", "\r\n\r\r\n:\ndata:\n", "data: a\n\n\ndata:b"} {
		f.Add([]byte(seed), uint(3))
	}
	f.Fuzz(func(t *testing.T, stream []byte, cut uint) {
		want := wholeEvents(string(stream))
		at := int(cut % uint(len(stream)+1))
		for _, r := range []io.Reader{
			bytes.NewReader(stream), iotest.OneByteReader(bytes.NewReader(stream)),
			io.MultiReader(bytes.NewReader(stream[:at]), bytes.NewReader(stream[at:])),
		} {
			got, err := readEvents(r)
			if !errors.Is(err, io.EOF) || !slices.Equal(got, want) {
				t.Fatalf("got %q and %v, want %q", got, err, want)
			}
		}
	})
}

// wholeEvents decodes a stream as the standard describes it, line by line.
func wholeEvents(stream string) (list []string) {
	stream = strings.TrimPrefix(stream, "\uFEFF")
	stream = strings.ReplaceAll(strings.ReplaceAll(stream, "\r\n", "\n"), "\r", "\n")
	kind, data := "", []string(nil)
	for _, line := range append(strings.Split(stream, "\n"), "") {
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case line == "":
			if data != nil {
				list = append(list, kind+"|"+strings.Join(data, "\n"))
			}
			kind, data = "", nil
		case name == "event":
			kind = value
		case name == "data":
			data = append(data, value)
		}
	}
	return list
}
