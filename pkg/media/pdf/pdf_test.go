package pdf_test

import (
	"bytes"
	"compress/zlib"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/pkg/media/pdf"
	"github.com/harnessmesh/harnessmesh/test/kit/mediatest"
)

const limit = 100

// bomb is an object stream whose list of objects has a megabyte of spaces.
func bomb() string {
	var b bytes.Buffer
	w := zlib.NewWriter(&b)
	_, _ = io.WriteString(w, strings.Repeat(" ", 1<<20))
	_ = w.Close()
	return fmt.Sprintf("9 0 obj<</Type/ObjStm/N 1/First 1048576/Filter[/FlateDecode]/Length %d>>stream\n%sendstream endobj ", b.Len(), b.String())
}

func TestPages(t *testing.T) {
	const tree = "2 0 obj<</Kids[3 0 R 3 0 R 3 0 R]>>endobj 3 0 obj<</Type/Page>>endobj "
	const catalog = "1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj "
	const trailer = "trailer<</Root 1 0 R>>"
	for name, c := range map[string]struct {
		file string
		want int
		err  error
	}{
		"written":                  {string(mediatest.PDF(40)), 40, nil},
		"compressed":               {string(mediatest.CompressedPDF(40, 0)), 40, nil},
		"too many":                 {string(mediatest.PDF(500)), limit + 1, nil},
		"too many for a node":      {catalog + "2 0 obj<</Kids[" + strings.Repeat("3 0 R ", 20_000) + "]>>endobj 3 0 obj<</Type/Page>>endobj " + trailer, limit + 1, nil},
		"minimal":                  {catalog + tree + trailer, 3, nil},
		"nested":                   {catalog + "2 0 obj<</Kids[4 0 R 4 0 R]>>endobj 4 0 obj<</Kids 5 0 R>>endobj 5 0 obj[3 0 R]endobj 3 0 obj<<>>endobj " + trailer, 2, nil},
		"the last object counts":   {catalog + tree + trailer + " 2 0 obj<</Kids[3 0 R]>>endobj ", 1, nil},
		"the last trailer counts":  {catalog + tree + "trailer<</Root 9 0 R>> " + trailer, 3, nil},
		"names with digits":        {catalog + tree + "trailer<</Ro#6ft 1 0 R>>", 3, nil},
		"a string with an object":  {catalog + tree + "7 0 obj(a\\) 8 0 R (b) )endobj " + trailer, 3, nil},
		"a comment":                {"%PDF-1.4 % 1 0 R\n" + catalog + tree + trailer, 3, nil},
		"an object within data":    {catalog + tree + "7 0 obj<</Length 30>>stream\n2 0 obj<</Kids[3 0 R]>>endobj  \nendstream endobj " + trailer, 3, nil},
		"data of unknown length":   {catalog + tree + "7 0 obj<</Length 8 0 R>>stream\n2 0 obj<</Kids[3 0 R]>>endobj\nendstream endobj " + trailer, 3, nil},
		"data without an end":      {catalog + tree + trailer + "7 0 obj<</Length 99>>stream\n2 0 obj<</Kids[3 0 R]>>endobj", 3, nil},
		"many trailers":            {strings.Repeat("trailer<</Size 1>> ", 1001) + catalog + tree + trailer, 0, pdf.ErrComplex},
		"many bombs":               {strings.Repeat(bomb(), 300) + catalog + tree + trailer, 0, pdf.ErrComplex},
		"some bombs":               {strings.Repeat(bomb(), 100) + catalog + tree + trailer, 3, nil},
		"encrypted":                {string(mediatest.EncryptedPDF(3)), 0, pdf.ErrEncrypted},
		"hidden encryption":        {catalog + tree + "trailer<</Root 1 0 R/#45ncrypt 9 0 R>>", 0, pdf.ErrEncrypted},
		"encryption in a stream":   {catalog + tree + "9 0 obj<</Type/XRef/Root 1 0 R/Encrypt 8 0 R/Length 0>>stream\n\nendstream endobj", 0, pdf.ErrEncrypted},
		"nothing":                  {"", 0, pdf.ErrDamaged},
		"a header":                 {"%PDF-1.7\n", 0, pdf.ErrDamaged},
		"no trailer":               {catalog + tree, 0, pdf.ErrDamaged},
		"no catalog":               {tree + trailer, 0, pdf.ErrDamaged},
		"no pages":                 {catalog + "2 0 obj<</Kids[]>>endobj " + trailer, 0, pdf.ErrDamaged},
		"a missing page":           {catalog + "2 0 obj<</Kids[9 0 R]>>endobj " + trailer, 0, pdf.ErrDamaged},
		"a circle":                 {catalog + "2 0 obj<</Kids[2 0 R]>>endobj " + trailer, 0, pdf.ErrComplex},
		"a circle that grows":      {catalog + "2 0 obj<</Kids[2 0 R 2 0 R]>>endobj " + trailer, 0, pdf.ErrComplex},
		"references in a circle":   {catalog + "2 0 obj 2 0 R endobj " + trailer, 0, pdf.ErrDamaged},
		"a catalog without pages":  {"1 0 obj<<>>endobj " + trailer, 0, pdf.ErrDamaged},
		"deep values":              {catalog + "2 0 obj" + strings.Repeat("[", 100_000) + trailer, 0, pdf.ErrDamaged},
		"a stream that is no zlib": {"9 0 obj<</Type/ObjStm/N 1/First 4/Filter/FlateDecode>>stream\nabc\nendstream endobj " + trailer, 0, pdf.ErrDamaged},
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := pdf.Pages([]byte(c.file), limit); got != c.want || !errors.Is(err, c.err) {
				t.Errorf("%d pages, %v; want %d, %v", got, err, c.want, c.err)
			}
		})
	}
}

// TestHostileFilesTakeLinearTime has files of 20 MB on which a search that begins again at
// each object, trailer or string would take minutes.
func TestHostileFilesTakeLinearTime(t *testing.T) {
	size := 20 << 20
	if testing.Short() {
		size = 2 << 20
	}
	for name, piece := range map[string]string{
		"objects without an end": "1 0 obj ", "objects with streams": "1 0 obj<<>>stream ", "words": "obj ", "trailers": "trailer<</A ",
		"strings": "trailer<</A(", "lists": "trailer<</A[", "endings": "1 0 obj endobj ", "streams": "stream ", "digits": "1234567890 ", "names": "1 0 obj<</A/B ",
		"object streams": "1 0 obj<</Type/ObjStm/N 9/First 9/Filter/FlateDecode/Length 8>>stream\nx\x9c\x03\x00\x00\x00\x00\x01endstream ",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := strings.Repeat(piece, size/len(piece)) + " trailer<</Root 1 0 R>>"
			if pages, err := pdf.Pages([]byte(file), limit); err == nil {
				t.Errorf("%d pages, want an error", pages)
			}
		})
	}
}

func FuzzPages(f *testing.F) {
	f.Add(mediatest.PDF(2))
	f.Add(mediatest.CompressedPDF(2, 0))
	f.Add(mediatest.EncryptedPDF(1))
	f.Fuzz(func(t *testing.T, data []byte) {
		if pages, err := pdf.Pages(data, limit); (err == nil) != (pages > 0) || pages > limit+1 {
			t.Errorf("%d pages, %v", pages, err)
		}
	})
}
