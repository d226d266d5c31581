// Package pdf counts the pages of a PDF file that may be hostile.
//
// It reads no cross-reference table: it searches the file for objects, of which the last
// one with a number counts, also within object streams, and walks the tree of pages from
// the catalog. So a file with a broken table is read as most readers repair it.
//
// Bounds, whatever a file contains: objects, nodes of the page tree, depth of values,
// and the bytes that are decompressed and parsed. A file beyond them is an error. The
// time is linear in the size of the file and of these bytes.
package pdf

import (
	"bytes"
	"errors"
)

// Errors of Pages.
var (
	// ErrEncrypted is returned for a file that needs a password, or permits only some uses.
	ErrEncrypted = errors.New("it is encrypted")
	// ErrDamaged is returned for a file without a readable tree of pages.
	ErrDamaged = errors.New("its pages are not found")
	// ErrComplex is returned for a file that exceeds a bound of this package.
	ErrComplex = errors.New("it has too many objects")
)

const (
	maxObjects = 500_000
	// maxTrailers bounds the trailers; each change of a file appends one.
	maxTrailers = 1_000
	// maxNodes bounds the nodes of the page tree that are read.
	maxNodes = 10_000
	// maxParsed bounds the bytes that are parsed, some of them more than once.
	maxParsed = 256 << 20
)

// Pages returns the number of pages, or limit+1 if there are more than limit.
func Pages(data []byte, limit int) (int, error) {
	f := &file{data: data, objects: map[int]place{}, inflated: maxInflated, parsed: maxParsed}
	if err := f.scan(); err != nil {
		return 0, err
	}
	if f.encrypted {
		return 0, ErrEncrypted
	}
	pages, err := f.countPages(limit)
	switch {
	case f.inflated < 0, f.parsed < 0:
		return 0, ErrComplex
	case err != nil:
		return 0, err
	case pages == 0:
		return 0, ErrDamaged
	}
	return pages, nil
}

// place is where an object is.
type place struct {
	// stream is the object stream that contains the object; nil: the file.
	stream *objectStream
	offset int
}

// file is a PDF file as far as it was read.
type file struct {
	data    []byte
	objects map[int]place // by number
	root    value         // the catalog, or a reference to it
	// encrypted reports whether a trailer names an encryption.
	encrypted bool
	// inflated and parsed are how many bytes may still be decompressed and parsed.
	inflated, parsed int
	recent           *objectStream // whose content is in memory
	ends             int           // trailers that were read
}

// scan finds the objects and the trailers.
func (f *file) scan() error {
	streams, ends := search{data: f.data, word: "stream"}, search{data: f.data, word: "endobj"}
	for at := 0; ; {
		word := bytes.Index(f.data[at:], []byte("obj"))
		if word < 0 {
			f.trailers(f.data[at:])
			return nil
		}
		word += at
		number, begin, ok := objectNumber(f.data, word)
		if !ok {
			f.trailers(f.data[at:word])
			at = word + len("obj")
			continue
		}
		f.trailers(f.data[at:begin])
		if len(f.objects) >= maxObjects {
			return ErrComplex
		}
		at = word + len("obj")
		f.objects[number] = place{offset: at}
		if s := streams.from(at); s < ends.from(at) {
			at = f.stream(at, s)
		}
	}
}

// search finds a word again and again, each time from a later offset, in linear time.
type search struct {
	data  []byte
	word  string
	found int // the newest result
	begun bool
}

// from returns the offset of the first occurrence at or after an offset, or the length of
// the data if there is none.
func (s *search) from(at int) int {
	if s.begun && s.found >= at {
		return s.found
	}
	s.begun, s.found = true, len(s.data)
	if i := bytes.Index(s.data[at:], []byte(s.word)); i >= 0 {
		s.found = at + i
	}
	return s.found
}

// objectNumber returns the number of the object whose word obj is at an offset, and where
// its number begins: NUMBER GENERATION obj.
func objectNumber(data []byte, word int) (number, begin int, ok bool) {
	_, begin, ok = digitsBefore(data, word)
	if !ok || begin == 0 || !isSpace(data[begin-1]) {
		return 0, 0, false
	}
	number, begin, ok = digitsBefore(data, begin)
	ok = ok && (begin == 0 || isSpace(data[begin-1]) || isDelimiter(data[begin-1]) || bytes.HasSuffix(data[:begin], []byte("obj")))
	return number, begin, ok
}

// digitsBefore returns the number that ends before an offset and the white space there.
func digitsBefore(data []byte, end int) (number, begin int, ok bool) {
	for end > 0 && isSpace(data[end-1]) {
		end--
	}
	for begin = end; begin > 0 && isDigit(data[begin-1]) && end-begin < 10; {
		begin--
	}
	return decimal(data[begin:end]), begin, begin < end
}

// stream reads the dictionary of a stream object, which begins at an offset and ends
// before the word stream, and returns where the search for objects continues.
func (f *file) stream(at, word int) int {
	begin := word + len("stream")
	if begin < len(f.data) && f.data[begin] == '\r' {
		begin++
	}
	if begin < len(f.data) && f.data[begin] == '\n' {
		begin++
	}
	header, _ := f.parse(f.data[at:word]).(dict)
	var end int
	length, direct := header["Length"].(int)
	if direct && length >= 0 && length <= len(f.data)-begin && endsStream(f.data[begin+length:]) {
		end = begin + length
	} else if i := bytes.Index(f.data[begin:], []byte("endstream")); i >= 0 {
		end = begin + i
	} else {
		return len(f.data)
	}
	switch header["Type"] {
	case name("XRef"):
		f.trailer(header)
	case name("ObjStm"):
		f.addObjects(&objectStream{header: header, data: f.data[begin:end]})
	}
	return end
}

func endsStream(rest []byte) bool {
	for i := 0; i < 2 && len(rest) > 0 && isSpace(rest[0]); i++ {
		rest = rest[1:]
	}
	return bytes.HasPrefix(rest, []byte("endstream"))
}

// trailers reads the trailers in a part of the file between objects.
func (f *file) trailers(part []byte) {
	for {
		_, rest, found := bytes.Cut(part, []byte("trailer"))
		if !found {
			return
		}
		if f.ends++; f.ends > maxTrailers {
			f.parsed = -1
			return
		}
		if d, ok := f.parse(rest).(dict); ok {
			f.trailer(d)
		}
		part = rest
	}
}

func (f *file) trailer(d dict) {
	if d["Root"] != nil {
		f.root = d["Root"]
	}
	f.encrypted = f.encrypted || d["Encrypt"] != nil
}

// countPages walks the tree of pages.
func (f *file) countPages(limit int) (int, error) {
	catalog, _ := f.resolve(f.root).(dict)
	if catalog == nil || catalog["Pages"] == nil {
		return 0, ErrDamaged
	}
	pages, waiting := 0, []value{catalog["Pages"]}
	for nodes := 0; len(waiting) > 0; nodes++ {
		if nodes == maxNodes {
			return 0, ErrComplex
		}
		node, ok := f.resolve(waiting[len(waiting)-1]).(dict)
		waiting = waiting[:len(waiting)-1]
		if !ok {
			return 0, ErrDamaged
		}
		kids, inner := f.resolve(node["Kids"]).(array)
		if !inner {
			if pages++; pages > limit {
				return pages, nil
			}
		}
		if len(kids) > maxNodes {
			return limit + 1, nil
		}
		waiting = append(waiting, kids...)
	}
	return pages, nil
}

// parse returns the value at the beginning of data; nil if there is none that is complete.
func (f *file) parse(data []byte) value {
	if f.parsed < 0 {
		return nil
	}
	p := parser{data: data[:min(len(data), maxText)]}
	v := p.value(0)
	f.parsed -= p.at
	return v
}

// resolve returns the value of a reference, and any other value unchanged.
func (f *file) resolve(v value) value {
	for range 8 {
		r, ok := v.(reference)
		if !ok {
			return v
		}
		at, known := f.objects[int(r)]
		if !known {
			return nil
		}
		if at.stream != nil {
			v = f.parse(f.content(at.stream, at.offset))
		} else {
			v = f.parse(f.data[at.offset:])
		}
	}
	return nil
}
