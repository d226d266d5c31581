// Package media checks the images and documents that messages carry, weighs them, and
// decides which of them a request shows.
//
// Check accepts PNG, JPEG, GIF, WebP and PDF by their content. What it returns is fit for
// every provider: images have at most MaxSide pixels on the longer side and MaxImage
// bytes, are upright, and have no metadata; of an animated GIF or PNG only the first
// frame remains. Documents are unchanged.
//
// Invariants:
//   - Nothing is decoded before its header shows that it is small enough. At most
//     64 megapixels are decoded at the same time in one process.
//   - Check of what Check returned returns the same bytes.
//   - Show and Tokens are pure. Show is a fold over all messages: a message at the end
//     changes how those before it are shown only if the request would become too large.
//
// In a run with compaction the view of the conversation decides which images and documents a
// request shows: compaction clears the oldest before a request has no room for all of them.
// Show is applied to every request of a provider and guarantees the limits: for runs without
// compaction, for a message that exceeds them alone, and for what a model, which may be a
// fallback, does not take.
//
// Check fails with an error of one line that can follow the name of a file or field.
package media

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/media/pdf"
)

// Limits of an image or document.
const (
	// MaxData bounds what Check reads, in bytes.
	MaxData = 20 << 20
	// maxPixels bounds the pixels of an image before it is decoded.
	maxPixels = 50_000_000
	// MaxSide bounds the longer side of an image as it is stored, in pixels.
	MaxSide = 2000
	// MaxImage bounds an image as it is stored, in bytes.
	MaxImage = 3_500 << 10
	// MaxPages bounds the pages of a document.
	MaxPages = 100
	// MaxParts bounds the images and documents of one message.
	MaxParts = 20
	// maxName bounds the name of a file, in bytes.
	maxName = 128
)

// Media types.
const (
	PNG  = "image/png"
	JPEG = "image/jpeg"
	GIF  = "image/gif"
	WebP = "image/webp"
	PDF  = "application/pdf"
)

// names are how errors and lines for models call the types.
var names = map[string]string{PNG: "PNG", JPEG: "JPEG", GIF: "GIF", WebP: "WebP", PDF: "PDF"}

// TypeOf returns the media type of data by its first bytes; empty if it is not supported.
func TypeOf(data []byte) string {
	switch {
	case bytes.HasPrefix(data, []byte("\x89PNG\r\n\x1a\n")):
		return PNG
	case bytes.HasPrefix(data, []byte("\xff\xd8\xff")):
		return JPEG
	case bytes.HasPrefix(data, []byte("GIF87a")), bytes.HasPrefix(data, []byte("GIF89a")):
		return GIF
	case len(data) >= 12 && string(data[:4]) == "RIFF" && string(data[8:12]) == "WEBP":
		return WebP
	case bytes.Contains(data[:min(len(data), pdfHeader)], []byte("%PDF-")):
		return PDF
	}
	return ""
}

// pdfHeader is how far into a file readers look for the header of a PDF, in bytes.
const pdfHeader = 1024

// Check validates data and returns its form, size and pages, and the bytes to store. name
// is the name of the file, for people and models; it does not matter to the check.
func Check(name string, data []byte) (*harnessv1.Media, []byte, error) {
	return CheckContext(context.Background(), name, data)
}

// CheckContext is Check, and fails soon after ctx has ended: a large image takes a second.
func CheckContext(ctx context.Context, name string, data []byte) (*harnessv1.Media, []byte, error) {
	switch {
	case len(data) == 0:
		return nil, nil, errors.New("the file is empty")
	case len(data) > MaxData:
		return nil, nil, fmt.Errorf("the file is larger than %s", Size(MaxData))
	}
	m := &harnessv1.Media{Type: TypeOf(data), Name: cleanName(name)}
	switch m.GetType() {
	case "":
		return nil, nil, errors.New("unknown type; expected a PNG, JPEG, GIF, WebP or PDF file")
	case PDF:
		pages, err := checkPDF(data)
		if err != nil {
			return nil, nil, err
		}
		m.Pages = uint32(pages) //nolint:gosec // at most MaxPages
		return m, data, nil
	case PNG:
		data = undamagedPNG(data)
	}
	return checkImage(ctx, m, data)
}

// cleanName returns a name that fits into a line.
func cleanName(name string) string { return content.Cut(content.OneLine(name), maxName) }

// checkPDF returns the number of pages.
func checkPDF(data []byte) (int, error) {
	pages, err := pdf.Pages(data, MaxPages)
	switch {
	case errors.Is(err, pdf.ErrEncrypted):
		return 0, errors.New("the PDF is encrypted; remove its password first")
	case err != nil:
		return 0, fmt.Errorf("the PDF is damaged or truncated: %w", err)
	case pages > MaxPages:
		return 0, fmt.Errorf("the PDF has more than %d pages; split it", MaxPages)
	}
	return pages, nil
}

// Accepted reports whether m is as Check returns it, with its data, as far as can be seen
// without decoding an image.
func Accepted(m *harnessv1.Media) bool {
	data := m.GetData()
	if TypeOf(data) != m.GetType() {
		return false
	}
	switch m.GetType() {
	case PDF:
		pages, err := checkPDF(data)
		return err == nil && len(data) <= MaxData && uint64(m.GetPages()) == uint64(pages) //nolint:gosec // at least 1
	case PNG, JPEG:
		config, err := configOf(m.GetType(), data)
		return err == nil && len(data) <= MaxImage && max(config.Width, config.Height) <= MaxSide &&
			int64(m.GetWidth()) == int64(config.Width) && int64(m.GetHeight()) == int64(config.Height)
	}
	return false
}

// Stored returns m as records contain it: with the blob that has its data, without a
// preview, which would be some of its bytes.
func Stored(m *harnessv1.Media, ref *harnessv1.BlobRef) *harnessv1.Media {
	return &harnessv1.Media{
		Type: m.GetType(), Width: m.GetWidth(), Height: m.GetHeight(), Pages: m.GetPages(), Name: cleanName(m.GetName()),
		Blob: &harnessv1.BlobRef{Digest: ref.GetDigest(), Size: ref.GetSize()},
	}
}

// Parts returns the parts of a message of the user or of a tool with images and documents;
// nil without any.
func Parts(list []*harnessv1.Media) []*harnessv1.Part {
	var parts []*harnessv1.Part
	for _, m := range list {
		parts = append(parts, &harnessv1.Part{Kind: &harnessv1.Part_Media{Media: m}})
	}
	return parts
}

// IsDocument reports whether m is a document and not an image.
func IsDocument(m *harnessv1.Media) bool { return m.GetType() == PDF }

// Bytes returns the size of the stored form of m, in bytes.
func Bytes(m *harnessv1.Media) uint64 {
	if b := m.GetBlob(); b != nil {
		return b.GetSize()
	}
	return uint64(len(m.GetData()))
}

// Size returns a number of bytes for people and models: in KB of 1,024 bytes, or in MB.
func Size(n uint64) string {
	const kilo, mega = 1 << 10, 1 << 20
	switch {
	case n < kilo:
		return fmt.Sprintf("%d bytes", n)
	case n < mega-kilo/2:
		return fmt.Sprintf("%d KB", (n+kilo/2)/kilo)
	case n%mega == 0:
		return fmt.Sprintf("%d MB", n/mega)
	}
	return fmt.Sprintf("%.1f MB", float64(n)/mega)
}

// Extent returns the pixels of an image, such as 1280×720, or the pages of a document.
func Extent(m *harnessv1.Media) string {
	switch {
	case !IsDocument(m):
		return fmt.Sprintf("%d×%d", m.GetWidth(), m.GetHeight())
	case m.GetPages() == 1:
		return "1 page"
	}
	return fmt.Sprintf("%d pages", m.GetPages())
}
