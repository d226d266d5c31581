package agentfile

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/status"

	"github.com/harnessmesh/harnessmesh/pkg/fault"
)

// Locate is an error that names a field of the spec, of this process or over
// gRPC, as the problem of the place at which the field is written. Any other
// error, and one of a field that stands in no file, comes back as it is.
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

// Forget is told that a field was set otherwise than by the file, such as by a
// flag.
func (f *File) Forget(field string) {
	for path := range f.places {
		if path == field || strings.HasPrefix(path, field+".") || strings.HasPrefix(path, field+"[") {
			delete(f.places, path)
		}
	}
}

// refusal is what a check has against a field.
type refusal struct {
	field, message string
	line, column   int // within the value; 0: the whole
}

func (r *refusal) Error() string { return r.field + ": " + r.message }

func refusef(field, format string, args ...any) error {
	return &refusal{field: field, message: fmt.Sprintf(format, args...)}
}

// describe takes an error apart: the field that it is about, what is wrong in the
// words of the file, and the place within the value, 0 for the whole.
func describe(err error) (field, message string, line, column int) {
	var own *refusal
	var coded *fault.Error
	var carrier interface{ GRPCStatus() *status.Status }
	if refused := invalid(err); refused != nil {
		err = refused
	}
	switch {
	case errors.As(err, &own):
		field, message, line, column = own.field, own.message, own.line, own.column
	case errors.As(err, &coded):
		message = coded.Message
		for i := 0; i+1 < len(coded.Metadata); i += 2 {
			if coded.Metadata[i] == "field" {
				field = coded.Metadata[i+1]
			}
		}
	case errors.As(err, &carrier):
		message = carrier.GRPCStatus().Message()
		for _, detail := range carrier.GRPCStatus().Details() {
			if info, ok := detail.(*errdetails.ErrorInfo); ok && info.GetDomain() == fault.Domain {
				field = info.GetMetadata()["field"]
			}
		}
	default:
		message = err.Error()
	}
	if field == "" {
		return field, message, line, column
	}
	message = specPath.ReplaceAllStringFunc(strings.TrimPrefix(message, field+": "), inFile)
	return field, inFile(field) + ": " + message, line, column
}

var specPath = regexp.MustCompile(`\bspec\.[a-z_.]+`)

// inFile is what a field of the spec is called in an agent file.
func inFile(field string) string {
	for _, renamed := range [][2]string{
		{"spec.agent.work_item_templates", "work_items.templates"},
		{"spec.config.tools.", ""}, {"spec.agent.", ""}, {"spec.config.", ""}, {"spec.", ""},
	} {
		if rest, ok := strings.CutPrefix(field, renamed[0]); ok {
			return renamed[1] + rest
		}
	}
	return field
}

func at(field string, i int) string { return field + "[" + strconv.Itoa(i) + "]" }
