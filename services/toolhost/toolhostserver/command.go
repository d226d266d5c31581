package toolhostserver

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/harnessmesh/harnessmesh/services/toolhost"
)

const (
	// markVariable is the environment variable by which everything that a call
	// started can be found; its value is a mark, see life.
	markVariable = "HARNESS_CALL"
	// killGrace is how long a supervisor may take to kill all; then it is killed
	// itself and the host kills what it finds.
	killGrace = 5 * time.Second
	// drainTime is how long output may still come when all is dead: what is in
	// the pipe, not what somebody goes on to write.
	drainTime = 500 * time.Millisecond
)

// order is a command to run.
type order struct {
	command string
	dir     string
	environ []string
	// mark is the value of markVariable.
	mark string
	// input is what the command can read; empty: nothing.
	input string
	// output takes what the command writes, and errors what it writes to its error
	// output; nil: output takes that too. They are not used after the end.
	output, errors io.Writer
}

// ending is how a command ended. All that it started is dead.
type ending struct {
	// Exit code; 128 + signal when it was killed by one.
	Code int `json:"code"`
	// Number of the signal, 0 for none.
	Signal int `json:"signal"`
	// Names of the processes that it had left behind and that were killed.
	Left []string `json:"left,omitempty"`
	// Why it could not be run.
	Error string `json:"error,omitempty"`
	// It was stopped because the host asked or died.
	Stopped bool `json:"stopped,omitempty"`
}

func (s *Server) runCommand(ctx context.Context, w *workspace, a arguments) effect {
	if strings.ContainsRune(a.Command, 0) {
		return failed("command: holds a NUL character.")
	}
	limits := s.config.Limits
	output := toolhost.NewExcerpt(limits.CommandHeadBytes, limits.CommandTailBytes)
	end, err := execute(ctx, order{
		command: a.Command, dir: w.dir, environ: s.environ(w), mark: s.life.mark(), output: output,
	})
	text := output.Text("To see all of it, write it to a file and read that.")
	switch {
	case err != nil:
		s.log.Error("a command's supervisor failed", "error", err)
		e := failed(joinLines(text, "[The command's supervisor failed. Everything that was found of the command was killed; how far it had come is not known.]"))
		e.interrupted = ctx.Err() != nil
		return e
	case end.Error != "":
		return failed(fmt.Sprintf("The command could not be started: %s.", end.Error))
	case end.Stopped:
		code := int32(124) // as timeout(1) has it
		return effect{text: text, interrupted: true, isError: true, exitCode: &code}
	}
	code := int32(end.Code)
	return effect{text: joinLines(text, end.note()), isError: code != 0, exitCode: &code}
}

// environ is the environment of commands in a workspace.
func (s *Server) environ(w *workspace) []string {
	return append(toolhost.CommandEnvironment(os.Environ(), s.config.PassEnvironment), "PWD="+w.dir)
}

// note is the line that tells the model how a command ended.
func (e ending) note() string {
	note := fmt.Sprintf("[exit code %d", e.Code)
	if e.Signal != 0 {
		note += fmt.Sprintf(", killed by signal %d", e.Signal)
	}
	if len(e.Left) > 0 {
		note += "; killed the processes that it left running: " + toolhost.Clip(strings.Join(e.Left, ", "), 300)
	}
	return note + "]"
}
