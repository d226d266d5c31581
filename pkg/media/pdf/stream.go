package pdf

import (
	"bytes"
	"compress/zlib"
	"io"
)

const (
	// maxInflated bounds the bytes that are decompressed of one file.
	maxInflated = 256 << 20
	// maxStream bounds those of one object stream.
	maxStream = 16 << 20
	// maxHeader bounds the list of objects in an object stream, in bytes.
	maxHeader = 1 << 20
)

// objectStream is a stream that contains objects.
type objectStream struct {
	header dict
	data   []byte
	// content is the decompressed stream; nil until it is needed.
	content []byte
}

// addObjects adds the objects of a stream. One that cannot be read has none.
func (f *file) addObjects(s *objectStream) {
	count, _ := s.header["N"].(int)
	first, _ := s.header["First"].(int)
	if count <= 0 || first <= 0 || first > maxHeader {
		return
	}
	p := parser{data: f.inflate(s, first)}
	for range count {
		number, isNumber := p.value(0).(int)
		offset, isOffset := p.value(0).(int)
		if !isNumber || !isOffset || offset < 0 || len(f.objects) >= maxObjects {
			return
		}
		f.objects[number] = place{stream: s, offset: first + offset}
	}
}

func (f *file) content(s *objectStream, offset int) []byte {
	if s.content == nil {
		if f.recent != nil {
			f.recent.content = nil
		}
		s.content, f.recent = f.inflate(s, maxStream), s
	}
	return s.content[min(offset, len(s.content)):]
}

// inflate returns up to limit bytes of a stream; fewer if it is damaged, or if too much
// of the file has been decompressed.
func (f *file) inflate(s *objectStream, limit int) []byte {
	filter := s.header["Filter"]
	if list, ok := filter.(array); ok && len(list) == 1 {
		filter = list[0]
	}
	switch filter {
	case nil:
		return s.data[:min(limit, len(s.data))]
	case name("FlateDecode"), name("Fl"):
	default:
		return nil
	}
	if f.inflated < 0 {
		return nil
	}
	r, err := zlib.NewReader(bytes.NewReader(s.data))
	if err != nil {
		return nil
	}
	content, _ := io.ReadAll(io.LimitReader(r, int64(limit))) // data before a damaged place counts
	f.inflated -= len(content) + overhead
	return content
}

// overhead is what a stream costs beyond its bytes, so that many short ones are bounded
// too.
const overhead = 4 << 10
