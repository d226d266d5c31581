package contract

import (
	"fmt"
	"net" //nolint:depguard // SplitHostPort only parses
	"path"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

const maxPath = 1024

var itemID = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9_.-]{1,32}$`) })

// placeKind is a kind of place that has a text.
type placeKind uint8

const (
	inResponse placeKind = iota
	inTranscript
	inArtifact
	inFile
)

// place names a text to check. The zero value is the last response.
type place struct {
	kind placeKind
	// name is the id of a work item or of a saved artifact, or the path of a file.
	name string
}

func (p place) String() string {
	switch p.kind {
	case inTranscript:
		return "the conversation"
	case inArtifact:
		return "the artifact " + p.name
	case inFile:
		return "the file " + p.name
	default:
		return "the last response"
	}
}

// placeOf returns the place of a valid predicate.
func placeOf(p *harnessv1.Predicate) place {
	switch kind, name, _ := strings.Cut(p.GetIn(), ":"); kind {
	case "transcript":
		return place{kind: inTranscript}
	case "artifact":
		return place{kind: inArtifact, name: name}
	case "file":
		return place{kind: inFile, name: name}
	}
	return place{kind: inResponse}
}

func parsePlace(field, in string) (place, error) {
	kind, name, named := strings.Cut(in, ":")
	switch {
	case in == "" || in == response:
		return place{kind: inResponse}, nil
	case in == "transcript":
		return place{kind: inTranscript}, nil
	case kind == "artifact" && named:
		if !itemID().MatchString(name) {
			return place{}, fault.Invalid(field, "invalid id of a work item or saved artifact %q: it must match [A-Za-z0-9_.-]{1,32}", clip(name, 80))
		}
		return place{kind: inArtifact, name: name}, nil
	case kind == "file" && named:
		return place{kind: inFile, name: name}, checkPath(field, name)
	}
	return place{}, fault.Invalid(field, "unknown place %q: expected response, transcript, artifact:ID or file:PATH", clip(in, 80))
}

// checkPath rejects a path that cannot be a file in the workspace.
func checkPath(field, name string) error {
	switch last := path.Base(name); {
	case strings.TrimSpace(name) == "":
		return fault.Invalid(field, "missing path: expected a file in the workspace")
	case len(name) > maxPath:
		return fault.Invalid(field, "a path of %d bytes exceeds the limit of %d", len(name), maxPath)
	case strings.ContainsAny(name, "\x00\n\r"):
		return fault.Invalid(field, "the path contains a line break or a NUL byte")
	case strings.HasPrefix(name, "/"):
		return fault.Invalid(field, "%q is absolute: expected a path relative to the workspace", clip(name, 80))
	case path.Clean(name) == ".." || strings.HasPrefix(path.Clean(name), "../"):
		return fault.Invalid(field, "%q is outside the workspace", clip(name, 80))
	case strings.HasSuffix(name, "/") || last == "." || last == "..":
		return fault.Invalid(field, "%q is a directory: expected a file", clip(name, 80))
	}
	return nil
}

// checkTarget rejects a target that is not HOST:PORT.
func checkTarget(field, target string) error {
	host, port, err := net.SplitHostPort(target)
	number, wrong := strconv.ParseUint(port, 10, 16)
	if err != nil || host == "" || wrong != nil || number == 0 || strings.ContainsAny(host, "/@ \t\r\n") {
		return fault.Invalid(field, "invalid target %s: expected HOST:PORT, such as localhost:9000", clip(fmt.Sprintf("%q", target), 80))
	}
	return nil
}
