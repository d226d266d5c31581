package mediatest

import (
	"bytes"
	"compress/zlib"
	"fmt"
	"strings"
)

// PDF returns a document with numbered pages of text.
func PDF(pages int) []byte { return document(pages, "") }

// EncryptedPDF returns a document that needs a password.
func EncryptedPDF(pages int) []byte {
	return document(pages, "/Encrypt << /Filter /Standard /V 2 /R 3 /Length 128 /P -4 /O (o) /U (u) >> ")
}

func document(pages int, trailer string) []byte {
	d := &pdfWriter{}
	d.WriteString("%PDF-1.7\n%\xe2\xe3\xcf\xd3\n")
	kids := make([]string, pages)
	for i := range kids {
		text := fmt.Sprintf("BT /F1 24 Tf 72 720 Td (Page %d) Tj ET", i+1)
		d.object(4+2*i, fmt.Sprintf("<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources << /Font << /F1 3 0 R >> >> /Contents %d 0 R >>", 5+2*i))
		d.object(5+2*i, fmt.Sprintf("<< /Length %d >>\nstream\n%s\nendstream", len(text), text))
		kids[i] = fmt.Sprintf("%d 0 R", 4+2*i)
	}
	d.object(3, "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>")
	d.object(2, fmt.Sprintf("<< /Type /Pages /Count %d /Kids [%s] >>", pages, strings.Join(kids, " ")))
	d.object(1, "<< /Type /Catalog /Pages 2 0 R >>")
	return d.finish("/Root 1 0 R " + trailer)
}

// CompressedPDF returns a document whose page tree is in an object stream, followed by
// spaces up to a decompressed size.
func CompressedPDF(pages, size int) []byte {
	var list, objects strings.Builder
	add := func(number int, object string) {
		fmt.Fprintf(&list, "%d %d ", number, objects.Len())
		objects.WriteString(object + " ")
	}
	kids := make([]string, pages)
	for i := range kids {
		kids[i] = fmt.Sprintf("%d 0 R", 3+i)
		add(3+i, "<< /Type /Page /Parent 2 0 R >>")
	}
	add(2, fmt.Sprintf("<< /Type /Pages /Count %d /Kids [%s] >>", pages, strings.Join(kids, " ")))
	add(1, "<< /Type /Catalog /Pages 2 0 R >>")
	content := list.String() + objects.String()
	content += strings.Repeat(" ", max(0, size-len(content)))
	compressed := deflate([]byte(content))
	d := &pdfWriter{}
	d.WriteString("%PDF-1.7\n")
	d.object(1000, fmt.Sprintf("<< /Type /ObjStm /N %d /First %d /Filter /FlateDecode /Length %d >>\nstream\n%s\nendstream",
		pages+2, list.Len(), len(compressed), compressed))
	d.object(1001, "<< /Type /XRef /Size 1002 /W [1 2 1] /Root 1 0 R /Length 0 >>\nstream\n\nendstream")
	fmt.Fprintf(d, "startxref\n%d\n%%%%EOF\n", d.places[1001])
	return d.Bytes()
}

func deflate(data []byte) []byte {
	return written(func(b *bytes.Buffer) error {
		w := zlib.NewWriter(b)
		if _, err := w.Write(data); err != nil {
			return err
		}
		return w.Close()
	})
}

// pdfWriter writes objects and the table of their places.
type pdfWriter struct {
	bytes.Buffer
	places map[int]int
}

func (d *pdfWriter) object(number int, text string) {
	if d.places == nil {
		d.places = map[int]int{}
	}
	d.places[number] = d.Len()
	fmt.Fprintf(d, "%d 0 obj\n%s\nendobj\n", number, text)
}

func (d *pdfWriter) finish(trailer string) []byte {
	table := d.Len()
	fmt.Fprintf(d, "xref\n0 %d\n0000000000 65535 f \n", len(d.places)+1)
	for number := 1; number <= len(d.places); number++ {
		fmt.Fprintf(d, "%010d 00000 n \n", d.places[number])
	}
	fmt.Fprintf(d, "trailer\n<< /Size %d %s>>\nstartxref\n%d\n%%%%EOF\n", len(d.places)+1, trailer, table)
	return d.Bytes()
}
