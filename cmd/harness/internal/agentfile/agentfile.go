// Package agentfile reads the files of a run: the agent file, and the files of
// contracts, just-in-time rules, hooks and modes that it may name, and graphs of tasks. They are YAML whose
// keys are the fields of the protos. An unknown field or an invalid value is an error
// that names file, line and column; nothing is guessed or ignored.
//
// Decoding records the place of each field, so that an error that names a field of the
// spec, from here or from the gateway, is shown at its place in the file
// ([File.Locate]).
//
// The package is pure except for Load, LoadContract, LoadGraph, LoadServers and Check, which read files.
package agentfile

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"go.yaml.in/yaml/v3"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// maxSize bounds a file, in bytes.
const maxSize = 1 << 20

// Reader reads a file that another one names.
type Reader func(path string) ([]byte, error)

// File is the content of an agent file and of the files that it names.
type File struct {
	Agent *harnessv1.AgentSpec
	// Config has only the settings of the file, without defaults.
	Config *harnessv1.LoopConfig
	// ClientTools are the tools that the client of the run runs.
	ClientTools []*harnessv1.ToolSpec
	// Contract is the task contract; nil without one.
	Contract *harnessv1.TaskContract
	// OutputSchema is the JSON Schema of the result; empty without one.
	OutputSchema string
	// Graph is the work of sub-agents before the first turn; only a graph file has it.
	Graph []*harnessv1.GraphTask
	// Task is the kind of work of runs; nil without one.
	Task *harnessv1.Task

	// read reads the files.
	read   Reader
	places places
	// broken are the fields of the spec with a reported problem.
	broken []string
}

// New returns an empty file.
func New() *File {
	return &File{Agent: &harnessv1.AgentSpec{}, Config: &harnessv1.LoopConfig{}, read: Read, places: places{}}
}

// ReadWith sets what reads the files that are loaded from now on. Default: Read.
func (f *File) ReadWith(read Reader) { f.read = read }

// Load reads the agent file at path and the files that it names with read. The error is Problems
// if the content is invalid.
func Load(path string, read Reader) (*File, error) {
	data, err := read(path)
	if err != nil {
		return nil, err
	}
	file, err := Parse(path, data, read)
	if err == nil {
		file.read = read
	}
	return file, err
}

// Parse parses the text of an agent file. name is its name in errors; read reads the
// files that it names, relative to it, and may be nil if none are allowed. The error is
// Problems.
func Parse(name string, data []byte, read Reader) (*File, error) {
	r := &report{}
	file := New()
	d, root := open(name, data, read, r, file.places)
	if root != nil {
		d.agent(file, root)
		d.check(file)
	}
	if err := r.err(); err != nil {
		return nil, err
	}
	return file, nil
}

// LoadContract replaces the contract of f by the file at path.
func (f *File) LoadContract(path string) error {
	data, err := f.read(path)
	if err != nil {
		return err
	}
	return f.ParseContract(path, data)
}

// ParseContract does what LoadContract does with the text of a file.
func (f *File) ParseContract(name string, data []byte) error {
	for field := range f.places {
		if field == "spec.contract" || strings.HasPrefix(field, "spec.contract.") {
			delete(f.places, field)
		}
	}
	r := &report{}
	d, root := open(name, data, nil, r, f.places)
	f.Contract = nil
	if root != nil {
		d.inlineContract(f, root)
		if len(r.problems) > 0 {
			f.broken = append(f.broken, "spec.contract")
		}
		d.check(f)
	}
	return r.err()
}

// Read reads a file of at most 1 MiB.
func Read(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.IsDir() {
		return nil, &fs.PathError{Op: "read", Path: path, Err: syscall.EISDIR}
	}
	data, err := io.ReadAll(io.LimitReader(f, maxSize+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxSize {
		return nil, fmt.Errorf("%s: larger than %d bytes", path, maxSize)
	}
	return data, nil
}

// open parses the text of a file; root is nil if that fails.
func open(name string, data []byte, read Reader, r *report, at places) (d *decoder, root *yaml.Node) {
	r.files = append(r.files, name)
	d = &decoder{src: newSource(name, data), report: r, places: at, dir: filepath.Dir(name), read: read}
	return d, d.parse(data)
}
