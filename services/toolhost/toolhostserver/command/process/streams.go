package process

import (
	"cmp"
	"io"
	"os"
	"sync"
	"time"
)

// streams are the pipes to and from a command.
type streams struct {
	Command
	// The host's ends; writeInput and readErrors are nil if there is no such pipe.
	writeInput, readOutput, readErrors *os.File
	// The command's ends; errorsEnd is outputEnd if both are one stream.
	inputEnd, outputEnd, errorsEnd *os.File
}

// open makes the pipes that a command needs.
func (c Command) open(p *pipes) *streams {
	s := &streams{Command: c}
	switch {
	case c.Stdin != nil:
		s.inputEnd = c.Stdin
		p.ends = append(p.ends, c.Stdin)
	case c.Input != "":
		s.inputEnd, s.writeInput = p.open()
	}
	s.readOutput, s.outputEnd = p.open()
	s.errorsEnd = s.outputEnd
	if c.Errors != nil {
		s.readErrors, s.errorsEnd = p.open()
	}
	return s
}

// stdin returns the reader for the command's input; nil means none.
func (s *streams) stdin() io.Reader {
	if s.inputEnd == nil {
		return nil // a nil *os.File would be a reader
	}
	return s.inputEnd
}

// copy closes the command's ends in this process, so that end of file is seen, and
// copies in goroutines of wait until then.
func (s *streams) copy(wait *sync.WaitGroup) {
	for _, end := range []*os.File{s.inputEnd, s.outputEnd, s.errorsEnd} {
		_ = end.Close() // returns an error if it is nil or already closed
	}
	if s.writeInput != nil {
		wait.Go(func() {
			_, _ = io.WriteString(s.writeInput, s.Input) // the command need not read all of it
			_ = s.writeInput.Close()
		})
	}
	wait.Go(func() { _, _ = io.Copy(s.Output, s.readOutput) })
	if s.readErrors != nil {
		wait.Go(func() { _, _ = io.Copy(s.Errors, s.readErrors) })
	}
}

// drain ends the copying after drainTimeout. The command must be dead.
func (s *streams) drain() {
	if s.writeInput != nil {
		_ = s.writeInput.Close()
	}
	end := time.Now().Add(drainTimeout)
	_ = s.readOutput.SetReadDeadline(end)
	if s.readErrors != nil {
		_ = s.readErrors.SetReadDeadline(end)
	}
}

// pipes opens pipes and closes all their ends.
type pipes struct {
	ends []*os.File
	err  error // the first one
}

func (p *pipes) open() (read, write *os.File) {
	read, write, err := os.Pipe()
	if err != nil {
		p.err = cmp.Or(p.err, err)
		return nil, nil
	}
	p.ends = append(p.ends, read, write)
	return read, write
}

func (p *pipes) close() {
	for _, end := range p.ends {
		_ = end.Close() // returns an error if it is already closed
	}
}
