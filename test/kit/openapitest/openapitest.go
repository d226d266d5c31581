// Package openapitest compares the answers of the gateway's HTTP interface with its
// description: put Handler between a test and the handler, and every answer that the
// description does not know fails the test.
package openapitest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/harnessmesh/harnessmesh/docs/openapi"
)

const root = "openapi.json"

// Description is the description, ready to judge.
type Description struct {
	document map[string]any
	compiler *jsonschema.Compiler

	mu      sync.Mutex
	schemas map[string]*jsonschema.Schema
	// seen are the operations with a response, as METHOD PATH STATUS.
	seen map[string]bool
}

// Load reads the description. Objects in it may not have fields that it does not
// name, but for those that others are composed of.
func Load(t testing.TB) *Description {
	t.Helper()
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(openapi.Document))
	if err != nil {
		t.Fatal(err)
	}
	d := &Description{document: document.(map[string]any), schemas: map[string]*jsonschema.Schema{}, seen: map[string]bool{}}
	d.close()
	d.compiler = jsonschema.NewCompiler()
	d.compiler.DefaultDraft(jsonschema.Draft2020)
	if err := d.compiler.AddResource(root, document); err != nil {
		t.Fatal(err)
	}
	return d
}

// close forbids fields that schemas do not name.
func (d *Description) close() {
	named := d.document["components"].(map[string]any)["schemas"].(map[string]any)
	parts := map[string]bool{}
	for _, s := range named {
		all, _ := s.(map[string]any)["allOf"].([]any)
		for _, part := range all {
			parts[strings.TrimPrefix(part.(map[string]any)["$ref"].(string), "#/components/schemas/")] = true
		}
	}
	for name, s := range named {
		if s := s.(map[string]any); s["properties"] != nil && !parts[name] {
			s["unevaluatedProperties"] = false
		}
	}
}

// Operations are those that are described, as METHOD PATH.
func (d *Description) Operations() (names []string) {
	for path, item := range d.document["paths"].(map[string]any) {
		for method := range item.(map[string]any) {
			if method != "parameters" {
				names = append(names, strings.ToUpper(method)+" "+path)
			}
		}
	}
	return names
}

// Seen reports whether an operation returned a status.
func (d *Description) Seen(operation string, status int) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.seen[fmt.Sprintf("%s %d", operation, status)]
}

// Handler judges what next answers.
func (d *Description) Handler(t testing.TB, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := &bytes.Buffer{}
		r.Body = &tee{r.Body, body}
		rec := &recorder{ResponseWriter: w, status: http.StatusOK}
		next.ServeHTTP(rec, r)
		if err := d.validate(r, body.Bytes(), rec); err != nil {
			t.Errorf("%s %s: %d: %v", r.Method, r.URL, rec.status, err)
		}
	})
}

type tee struct {
	io.ReadCloser
	copy *bytes.Buffer
}

func (r *tee) Read(p []byte) (int, error) {
	n, err := r.ReadCloser.Read(p)
	r.copy.Write(p[:n])
	return n, err
}

type recorder struct {
	http.ResponseWriter
	status int
	body   bytes.Buffer
}

func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

func (r *recorder) WriteHeader(status int) {
	r.status = status
	r.ResponseWriter.WriteHeader(status)
}

func (r *recorder) Write(p []byte) (int, error) {
	n, err := r.ResponseWriter.Write(p)
	r.body.Write(p[:n])
	return n, err
}

func (d *Description) validate(r *http.Request, sent []byte, rec *recorder) error {
	path, operation := d.find(r)
	if operation == nil {
		if rec.status >= 400 || r.Method == http.MethodOptions || r.Method == http.MethodHead {
			return nil
		}
		return errors.New("is not described")
	}
	d.mu.Lock()
	d.seen[fmt.Sprintf("%s %s %d", r.Method, path, rec.status)] = true
	d.mu.Unlock()
	responses := operation["responses"].(map[string]any)
	answer, known := responses[fmt.Sprint(rec.status)].(map[string]any)
	if !known {
		if rec.status < 400 {
			return errors.New("the status is not described")
		}
		answer = d.resolve(responses["default"].(map[string]any))
	}
	if rec.status < 300 && len(bytes.TrimSpace(sent)) > 0 {
		request := operation["requestBody"].(map[string]any)["content"].(map[string]any)["application/json"].(map[string]any)
		if err := d.valid(request["schema"].(map[string]any), sent); err != nil {
			return fmt.Errorf("the request: %w", err)
		}
	}
	return d.validateBody(answer, rec)
}

func (d *Description) validateBody(answer map[string]any, rec *recorder) error {
	content, _ := answer["content"].(map[string]any)
	if len(content) == 0 {
		if rec.body.Len() > 0 {
			return errors.New("no body is described")
		}
		return nil
	}
	kind, _, err := mime.ParseMediaType(rec.Header().Get("Content-Type"))
	if err != nil {
		return err
	}
	media, known := content[kind].(map[string]any)
	if !known {
		return fmt.Errorf("%s is not described", kind)
	}
	schema := media["schema"].(map[string]any)
	switch kind {
	case "application/json":
		return d.valid(schema, rec.body.Bytes())
	case "application/x-ndjson":
		return d.validLines(schema, rec.body.String(), "")
	case "text/event-stream":
		return d.validLines(schema, rec.body.String(), "data: ")
	}
	return nil
}

// validLines judges lines that begin with prefix. What follows the last line break
// did not arrive.
func (d *Description) validLines(schema map[string]any, body, prefix string) error {
	for line := range strings.Lines(body) {
		data, found := strings.CutPrefix(line, prefix)
		if !found || !strings.HasSuffix(line, "\n") {
			continue
		}
		if err := d.valid(schema, []byte(data)); err != nil {
			return fmt.Errorf("%s: %w", line, err)
		}
	}
	return nil
}

// find is the operation that a request is, nil when none is described.
func (d *Description) find(r *http.Request) (string, map[string]any) {
	have := strings.Split(r.URL.Path, "/")
next:
	for path, item := range d.document["paths"].(map[string]any) {
		want := strings.Split(path, "/")
		if len(want) != len(have) {
			continue
		}
		for i := range want {
			if want[i] != have[i] && !strings.HasPrefix(want[i], "{") {
				continue next
			}
		}
		operation, _ := item.(map[string]any)[strings.ToLower(r.Method)].(map[string]any)
		return path, operation
	}
	return "", nil
}

func (d *Description) resolve(s map[string]any) map[string]any {
	if name, ok := s["$ref"].(string); ok {
		at := d.document
		for _, part := range strings.Split(strings.TrimPrefix(name, "#/"), "/") {
			at = at[part].(map[string]any)
		}
		return at
	}
	return s
}

func (d *Description) valid(s map[string]any, body []byte) error {
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil {
		return err
	}
	name, ok := s["$ref"].(string)
	if !ok {
		raw, _ := json.Marshal(s)
		if string(raw) == `{"type":"object"}` {
			return nil
		}
		return fmt.Errorf("the schema has no name: %s", raw)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	schema := d.schemas[name]
	if schema == nil {
		if schema, err = d.compiler.Compile(root + name); err != nil {
			return err
		}
		d.schemas[name] = schema
	}
	return schema.Validate(value)
}
