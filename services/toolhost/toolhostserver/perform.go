package toolhostserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/services/toolhost"
)

// arguments are those of all tools; each call's have passed its tool's schema.
// Numbers are floats because 2.0 is an integer to JSON Schema.
type arguments struct {
	Path           string  `json:"path"`
	Offset         float64 `json:"offset"`
	Limit          float64 `json:"limit"`
	Content        string  `json:"content"`
	Old            string  `json:"old"`
	New            string  `json:"new"`
	Pattern        string  `json:"pattern"`
	Command        string  `json:"command"`
	TimeoutSeconds float64 `json:"timeout_seconds"`
}

// perform runs a tool within its time limit. It is interrupted when ctx ends.
func (s *Server) perform(ctx context.Context, req *harnessv1.ExecuteToolRequest) (e effect) {
	defer func() {
		if p := recover(); p != nil {
			s.log.Error("a tool panicked", "tool", req.GetTool(), "panic", p, "stack", string(debug.Stack()))
			e = failed("The tool failed for a reason that lies with the tool host.")
		}
	}()
	var a arguments
	if req.GetArguments() != "" {
		if err := json.Unmarshal([]byte(req.GetArguments()), &a); err != nil {
			return failed("The arguments cannot be read: " + err.Error())
		}
	}
	limit := s.config.Limits.CallTimeout(req.GetTimeout().AsDuration(), time.Duration(a.TimeoutSeconds)*time.Second)
	ctx, release := context.WithTimeoutCause(ctx, limit, errTimedOut)
	defer release()

	w, err := openWorkspace(req.GetWorkspace())
	if err != nil {
		return failed(fmt.Sprintf("The workspace cannot be used: %s.", plain(err)))
	}
	defer w.close()
	e = s.dispatch(ctx, w, req.GetTool(), a)
	if e.interrupted && errors.Is(context.Cause(ctx), errTimedOut) {
		note := fmt.Sprintf("[Stopped: it had not ended after %v.", limit)
		if req.GetTool() == toolhost.RunCommand {
			note += " Everything that it started was killed. For more time set timeout_seconds."
		}
		e.text = joinLines(e.text, note+"]")
		e.isError = true
	}
	return e
}

func (s *Server) dispatch(ctx context.Context, w *workspace, tool string, a arguments) effect {
	switch tool {
	case toolhost.ReadFile:
		return s.readFile(ctx, w, a)
	case toolhost.WriteFile:
		return s.writeFile(ctx, w, a)
	case toolhost.EditFile:
		return s.editFile(ctx, w, a)
	case toolhost.ListDirectory:
		return s.listDirectory(w, a)
	case toolhost.FindFiles:
		return s.findFiles(ctx, w, a)
	case toolhost.SearchFiles:
		return s.searchFiles(ctx, w, a)
	case toolhost.RunCommand:
		return s.runCommand(ctx, w, a)
	}
	return failed(s.tools.Unknown(tool))
}

// joinLines puts a note on a line of its own after a text.
func joinLines(text, note string) string {
	if text != "" && text[len(text)-1] != '\n' {
		text += "\n"
	}
	return text + note
}
