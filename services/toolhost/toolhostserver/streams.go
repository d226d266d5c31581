package toolhostserver

import (
	"errors"
	"io"
	"os"
	"sync"
	"time"
)

// streams are the pipes to and from a command.
type streams struct {
	order
	// The host's ends; writeInput and readErrors are nil without them.
	writeInput, readOutput, readErrors *os.File
	// The command's ends; errorsEnd is outputEnd where both are one stream.
	inputEnd, outputEnd, errorsEnd *os.File
}

// open makes the pipes that a command needs.
func (o order) open(p *pipes) *streams {
	s := &streams{order: o}
	if o.input != "" {
		s.inputEnd, s.writeInput = p.open()
	}
	s.readOutput, s.outputEnd = p.open()
	s.errorsEnd = s.outputEnd
	if o.errors != nil {
		s.readErrors, s.errorsEnd = p.open()
	}
	return s
}

// stdin is what the command reads; nil means nothing.
func (s *streams) stdin() io.Reader {
	if s.inputEnd == nil {
		return nil // a nil *os.File would be a reader
	}
	return s.inputEnd
}

// copy lets go of the command's ends, so that their end can be seen, and copies
// until it has come.
func (s *streams) copy(work *sync.WaitGroup) {
	for _, end := range []*os.File{s.inputEnd, s.outputEnd, s.errorsEnd} {
		_ = end.Close() // nil, and what is closed already, says so
	}
	if s.writeInput != nil {
		work.Go(func() {
			_, _ = io.WriteString(s.writeInput, s.input) // who does not read it all need not
			_ = s.writeInput.Close()
		})
	}
	work.Go(func() { _, _ = io.Copy(s.output, s.readOutput) })
	if s.readErrors != nil {
		work.Go(func() { _, _ = io.Copy(s.errors, s.readErrors) })
	}
}

// drain ends the copying soon: the command is dead.
func (s *streams) drain() {
	if s.writeInput != nil {
		_ = s.writeInput.Close()
	}
	end := time.Now().Add(drainTime)
	_ = s.readOutput.SetReadDeadline(end)
	if s.readErrors != nil {
		_ = s.readErrors.SetReadDeadline(end)
	}
}

// pipes makes pipes and closes all their ends.
type pipes struct {
	ends []*os.File
	err  error
}

func (p *pipes) open() (read, write *os.File) {
	read, write, err := os.Pipe()
	if err != nil {
		p.err = errors.Join(p.err, err)
		return nil, nil
	}
	p.ends = append(p.ends, read, write)
	return read, write
}

func (p *pipes) close() {
	for _, end := range p.ends {
		_ = end.Close() // those that are closed already say so
	}
}
