package webclient

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/JohannesKaufmann/html-to-markdown/v2/converter"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/base"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/commonmark"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/table"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
	"golang.org/x/net/html/charset"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/media"
)

// Page is a response as a model reads it: a text, or an image or a document.
type Page struct {
	// Title of an HTML page; may be empty.
	Title string
	Text  string
	Media *harnessv1.Media
}

// partBytes bounds a part of a page.
const partBytes = 32 << 10

// convertTimeout bounds the conversion of a page. One that takes longer becomes its plain text.
const convertTimeout = 10 * time.Second

// ReadPage makes a page of a response: HTML becomes Markdown, other texts are unchanged, images
// and PDF documents are media. The error is a sentence for the model, or that of ctx.
func ReadPage(ctx context.Context, r *Response) (Page, error) {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || kind == "" {
		kind, _, _ = mime.ParseMediaType(http.DetectContentType(r.Body))
	}
	if t := media.TypeOf(r.Body); t != "" && !isText(kind) {
		return readMedia(ctx, r)
	}
	if !isText(kind) && (bytes.IndexByte(r.Body[:min(len(r.Body), 8<<10)], 0) >= 0 || !utf8.Valid(whole(r.Body))) {
		return Page{}, fmt.Errorf("It is no text: %s, %d bytes.", content.Line(content.Clean(kind), 80), len(r.Body)) //nolint:staticcheck // a sentence for the model
	}
	text := decode(r.Body, r.Header.Get("Content-Type"))
	if kind != "text/html" && kind != "application/xhtml+xml" {
		return Page{Text: tidy(text)}, nil
	}
	converting, cancel := context.WithTimeout(ctx, convertTimeout)
	defer cancel()
	pages := make(chan Page, 1)
	go func() { pages <- markdown(converting, text, r.URL) }() // it ends soon after the context does
	select {
	case p := <-pages:
		return p, nil
	case <-ctx.Done():
		return Page{}, ctx.Err()
	}
}

func readMedia(ctx context.Context, r *Response) (Page, error) {
	if r.Cut {
		return Page{}, fmt.Errorf("It is larger than %d bytes.", MaxBody) //nolint:staticcheck // a sentence for the model
	}
	name := r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]
	m, data, err := media.CheckContext(ctx, content.Clean(name), r.Body)
	if ctx.Err() != nil {
		return Page{}, ctx.Err()
	}
	if err != nil {
		return Page{}, fmt.Errorf("It cannot be shown: %w.", err) //nolint:staticcheck // a sentence for the model
	}
	m.Data = data
	return Page{Text: fmt.Sprintf("%s %s, %d bytes", m.GetType(), media.Extent(m), len(data)), Media: m}, nil
}

// isText reports whether a media type is that of a text.
func isText(kind string) bool {
	if strings.HasPrefix(kind, "text/") || strings.HasSuffix(kind, "+json") || strings.HasSuffix(kind, "+xml") {
		return true
	}
	switch kind {
	case "application/json", "application/xml", "application/javascript", "application/yaml", "application/x-yaml", "application/toml",
		"application/x-ndjson", "application/x-www-form-urlencoded", "application/sql":
		return true
	}
	return false
}

// whole returns text without the incomplete character at its end.
func whole(text []byte) []byte {
	for i := 1; i <= utf8.UTFMax && i <= len(text); i++ {
		if utf8.RuneStart(text[len(text)-i]) {
			if !utf8.FullRune(text[len(text)-i:]) {
				return text[:len(text)-i]
			}
			break
		}
	}
	return text
}

// decode returns a text in UTF-8. Bytes that are invalid become U+FFFD.
func decode(data []byte, contentType string) string {
	data = whole(data)
	if utf8.Valid(data) {
		return string(data)
	}
	encoding, _, _ := charset.DetermineEncoding(data[:min(len(data), 1024)], contentType)
	decoded, err := encoding.NewDecoder().Bytes(data)
	if err != nil {
		decoded = data
	}
	return strings.ToValidUTF8(string(decoded), "\uFFFD")
}

// tidy returns a text that is safe to show.
func tidy(text string) string { return strings.TrimRight(content.Clean(text), " \t\n") }

var errNoBody = errors.New("no text")

// markdown converts an HTML page. One that is nested too deeply, or not
// converted when ctx ends, becomes its plain text.
func markdown(ctx context.Context, text string, address *url.URL) (p Page) {
	doc, err := parse(ctx, text)
	if err != nil {
		return Page{Text: tidy(plain(text))}
	}
	p.Title = content.Line(content.Clean(title(doc)), 300)
	converted, err := convert(ctx, doc, address)
	if err != nil {
		return Page{Title: p.Title, Text: tidy(plain(text))}
	}
	p.Text = tidy(converted)
	return p
}

// readFunc is a reader.
type readFunc func(p []byte) (int, error)

// Read calls the function.
func (f readFunc) Read(p []byte) (int, error) { return f(p) }

// parse parses HTML until ctx ends; a panic of the parser is an error.
func parse(ctx context.Context, text string) (doc *html.Node, err error) {
	defer func() {
		if recover() != nil {
			err = errNoBody
		}
	}()
	r := strings.NewReader(text)
	return html.Parse(readFunc(func(p []byte) (int, error) {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		return r.Read(p)
	}))
}

// convert converts a document until ctx ends; a panic of the converter is an error. Characters
// of the page that Markdown gives a meaning are not escaped: models do not need it, and the
// time that it takes grows with the square of their number.
func convert(ctx context.Context, doc *html.Node, address *url.URL) (text string, err error) {
	defer func() {
		if recover() != nil {
			err = errNoBody
		}
	}()
	c := converter.NewConverter(converter.WithEscapeMode(converter.EscapeModeDisabled),
		converter.WithPlugins(base.NewBasePlugin(), commonmark.NewCommonmarkPlugin(), table.NewTablePlugin()))
	stop := func(converter.Context, converter.Writer, *html.Node) converter.RenderStatus {
		if ctx.Err() != nil {
			panic(ctx.Err()) // there is no other way out of a conversion
		}
		return converter.RenderTryNext
	}
	c.Register.Renderer(stop, -1)
	at := *address
	at.User, at.RawQuery, at.Fragment = nil, "", ""
	data, err := c.ConvertNode(doc, converter.WithDomain(at.String()))
	return string(data), err
}

// title returns the title of a document; empty if it has none.
func title(doc *html.Node) string {
	for n := range doc.Descendants() {
		if n.DataAtom == atom.Title && n.FirstChild != nil && n.FirstChild.Type == html.TextNode {
			return strings.TrimSpace(n.FirstChild.Data)
		}
	}
	return ""
}

// plain returns the text of HTML without its tags, scripts and styles.
func plain(text string) string {
	var b strings.Builder
	z := html.NewTokenizer(strings.NewReader(text))
	hidden := false
	for {
		switch z.Next() {
		case html.ErrorToken:
			return b.String()
		case html.TextToken:
			if !hidden {
				b.Write(z.Text())
			}
		case html.StartTagToken:
			name, _ := z.TagName()
			hidden = string(name) == "script" || string(name) == "style"
		case html.EndTagToken:
			hidden = false
			b.WriteByte('\n')
		default: // no text
		}
	}
}

// Part returns part n of a text, counted from 1, and how many there are; a part ends with a line
// where there is one to end with.
func Part(text string, n int) (part string, parts int) {
	for rest := text; rest != "" || parts == 0; parts++ {
		end := len(rest)
		if end > partBytes {
			end = partBytes
			if line := strings.LastIndexByte(rest[:end], '\n'); line > partBytes/2 {
				end = line + 1
			}
			for !utf8.RuneStart(rest[end]) {
				end--
			}
		}
		if parts+1 == n {
			part = rest[:end]
		}
		rest = rest[end:]
	}
	return part, parts
}

// Raw returns the body of a response without conversion, as a text or as media.
func Raw(ctx context.Context, r *Response) (text string, m *harnessv1.Media) {
	if len(r.Body) == 0 {
		return "", nil
	}
	raw := *r
	raw.Header = r.Header.Clone()
	if kind, parameters, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err == nil && (kind == "text/html" || kind == "application/xhtml+xml") {
		raw.Header.Set("Content-Type", mime.FormatMediaType("text/plain", parameters))
	}
	if r.Header.Get("Content-Type") == "" {
		raw.Header.Set("Content-Type", "application/octet-stream")
	}
	page, err := ReadPage(ctx, &raw)
	if err != nil {
		return err.Error(), nil
	}
	return page.Text, page.Media
}
