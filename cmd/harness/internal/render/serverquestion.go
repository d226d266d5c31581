package render

import (
	"strings"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/tool/elicit"
)

// serverQuestion returns what a server asks, a line for each message, address and field, and the
// answers to choose from if the form has a single field. All of it is the word of the server, and
// nothing of it is hidden: a person decides by it.
func serverQuestion(q *harnessv1.ServerQuestion) (text string, options []string) {
	var lines []string
	for _, r := range q.GetRequests() {
		prefix := ""
		if len(q.GetRequests()) > 1 {
			prefix = content.Visible(r.GetId()) + ": "
		}
		lines = append(lines, prefix+content.Visible(content.Text(r.GetMessage())))
		if r.Url != nil {
			lines = append(lines, "visit "+content.Visible(content.Text(r.GetUrl()))+" and answer done")
			continue
		}
		fields, err := elicit.Fields(r.GetSchema().GetInline())
		if err != nil { // it stays a reference
			lines = append(lines, "a form: "+preview(r.GetSchema()))
			continue
		}
		for _, f := range fields {
			lines = append(lines, fieldLine(f))
		}
		if len(fields) == 1 && len(q.GetRequests()) == 1 {
			options = Choices(fields[0])
		}
	}
	return strings.Join(lines, "\n"), options
}

// Choices returns the answers to choose from for a field; nil if any value, or several, can be
// given.
func Choices(f elicit.Field) (options []string) {
	if f.Type == elicit.Boolean {
		return []string{"yes", "no"}
	}
	if f.Type == elicit.List {
		return nil
	}
	for _, o := range f.Options {
		options = append(options, o.Value)
	}
	return options
}

// fieldLine describes a field of a form.
func fieldLine(f elicit.Field) string {
	line := content.Visible(f.Name) + " (" + f.Type
	if !f.Required {
		line += ", optional"
	}
	if f.Default != "" {
		line += ", default " + shorten(f.Default, 80)
	}
	line += ")"
	for _, text := range []string{f.Title, f.Description} {
		if text != "" {
			line += " " + shorten(text, 200)
		}
	}
	if len(f.Options) == 0 {
		return line
	}
	options := make([]string, len(f.Options))
	for i, o := range f.Options {
		options[i] = shorten(o.Value, 80)
		if o.Title != "" {
			options[i] += " (" + shorten(o.Title, 80) + ")"
		}
	}
	return line + ": one of " + strings.Join(options, ", ")
}
