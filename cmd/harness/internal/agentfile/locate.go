package agentfile

import (
	"regexp"
	"strconv"
	"strings"
	"sync"

	"google.golang.org/grpc/status"

	"github.com/harnessmesh/harnessmesh/pkg/fault"
)

// Locate returns an error that names a field of the spec, of this process or over gRPC,
// as a problem at the field's place in the file. Any other error, and one about a field
// that no file sets, is returned unchanged.
func (f *File) Locate(err error) error {
	if err == nil {
		return nil
	}
	field, message, line, column := describe(err)
	at, ok := f.places.find(field)
	if field == "" || !ok {
		return err
	}
	if line > 0 {
		line, column = at.src.within(at.node, line, column)
	} else {
		line, column = at.node.Line, at.node.Column
	}
	r := &report{}
	r.add(at.src, line, column, "%s", message)
	return r.err()
}

// Forget records that a field was set by something else than the file, such as a flag.
func (f *File) Forget(field string) {
	for path := range f.places {
		if path == field || strings.HasPrefix(path, field+".") || strings.HasPrefix(path, field+"[") {
			delete(f.places, path)
		}
	}
}

// describe returns the field that an error names and the message, both as the file
// spells them. field is empty if the error names none.
func describe(err error) (field, message string, line, column int) {
	e := fault.FieldOf(err)
	if e == nil {
		return "", status.Convert(err).Message(), 0, 0
	}
	message = specPath().ReplaceAllStringFunc(e.Message, inFile)
	return e.Field, inFile(e.Field) + ": " + message, e.Line, e.Column
}

var specPath = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\bspec\.[a-z_.]+`) })

// inFile returns the name of a spec field in an agent file.
func inFile(field string) string {
	for _, renamed := range [][2]string{
		{"spec.agent.work_item_templates", "work_items.templates"},
		{graphField, "tasks"}, {"spec.config.tools.", ""}, {"spec.agent.", ""}, {"spec.config.", ""}, {"spec.", ""},
	} {
		if rest, ok := strings.CutPrefix(field, renamed[0]); ok {
			return renamed[1] + rest
		}
	}
	return field
}

func at(field string, i int) string { return field + "[" + strconv.Itoa(i) + "]" }
