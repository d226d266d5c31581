// Package agentfile reads the files that a run is started with: the agent file,
// and the files of contracts, just-in-time rules, hooks and modes that it may
// name. They are YAML whose keys are the fields of the protos. What a file says
// that no field knows, or with a value that does not fit, is an error that names
// file, line and column; nothing is guessed and nothing is left out.
//
// Decoding remembers where each field stands, so that whoever refuses a spec by
// the path of a field, here or at the gateway, is shown at its place
// ([File.Locate]).
//
// The package is pure but for Load, LoadContract and Check, which read files.
package agentfile

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// maxSize is the largest file that is read, in bytes.
const maxSize = 1 << 20

// Reader reads a file that another one names.
type Reader func(path string) ([]byte, error)

// File is what an agent file says, and the files that it names.
type File struct {
	// Agent is the persona.
	Agent *harnessv1.AgentSpec
	// Config has what the file sets of the loop's numbers, and no more.
	Config *harnessv1.LoopConfig
	// ClientTools are the tools that the client of the run runs itself.
	ClientTools []*harnessv1.ToolSpec
	// Contract is what has to be there; nil without one.
	Contract *harnessv1.TaskContract

	places places
	// broken are fields of the spec of which something was reported.
	broken []string
}

// New is a file that says nothing.
func New() *File {
	return &File{Agent: &harnessv1.AgentSpec{}, Config: &harnessv1.LoopConfig{}, places: places{}}
}

// Load reads the agent file at path and the files that it names. The error is
// Problems when a file can be read and is wrong.
func Load(path string) (*File, error) {
	data, err := readFile(path)
	if err != nil {
		return nil, err
	}
	return Parse(path, data, readFile)
}

// Parse reads the text of an agent file. name stands in the errors, and files that
// it names are looked for beside it with read; nil: there are none. The error is
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

// LoadContract puts the contract in the file at path in the place of the one that
// f has.
func (f *File) LoadContract(path string) error {
	data, err := readFile(path)
	if err != nil {
		return err
	}
	return f.ParseContract(path, data)
}

// ParseContract is LoadContract with the file's text.
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

func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.IsDir() {
		return nil, fmt.Errorf("%s: is a directory", path)
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

// open parses the text of a file; root is nil when that fails.
func open(name string, data []byte, read Reader, r *report, at places) (d *decoder, root *yaml.Node) {
	r.files = append(r.files, name)
	d = &decoder{src: newSource(name, data), report: r, places: at, dir: filepath.Dir(name), read: read}
	return d, d.parse(data)
}
