package harnesstool

import (
	"errors"
	"fmt"
	"path"
	"strings"
	"sync"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/tool"
)

// Wait is the name of the tool that waits.
const Wait = "wait"

const (
	// maxWait bounds a wait, in seconds: 24 hours.
	maxWait = 24 * 60 * 60
	// maxWaitCommand bounds the command that a wait runs, in bytes.
	maxWaitCommand = 4 << 10
	// maxWaitURL bounds the address that a wait is for, in bytes: the state has it.
	maxWaitURL = 2 << 10
)

var _ = register(75, &Tool{
	Tool:     tool.Tool[Run]{Spec: waitSpec("", "")},
	Enabled:  func(s Setting) bool { return s.Wait },
	Describe: describeWait,
	Reserved: true,
	Wait:     waitTarget,
})

// waitForURL is the spec where calls can wait for an address.
var waitForURL = sync.OnceValue(func() *harnessv1.ToolSpec {
	return waitSpec(", url", `"url":{"type":"string","description":"Until a GET to this address has a status of 200 to 299."},`)
})

func describeWait(s Setting) *harnessv1.ToolSpec {
	if s.WaitURL {
		return waitForURL()
	}
	return Find(Wait).Spec
}

// waitSpec returns the spec with a further target: its name in the list, and its property.
func waitSpec(name, property string) *harnessv1.ToolSpec {
	return &harnessv1.ToolSpec{
		Name: Wait,
		Description: "Wait without using turns: for a time, or until something happens. Give exactly one of seconds, command, path" + name + " and background. " +
			"Checked after 5 seconds, then less often, up to every 5 minutes. The result says what ended the wait; a message of the user also ends it. " +
			`Example: {"command":"gh run view 17 --exit-status","deadline":3600}.`,
		ParametersSchema: `{"type":"object","properties":{` +
			`"seconds":{"type":"integer","maximum":86400},` +
			`"command":{"type":"string","description":"Until this command, with at most 2 minutes a check, exits with 0."},` +
			`"path":{"type":"string","description":"Until this file changes, appears or disappears."},` + property +
			`"background":{"type":"string","description":"Until the background command with this id has ended."},` +
			`"deadline":{"type":"integer","minimum":1,"maximum":86400,"description":"Seconds after which to give up. Default 86400."}},` +
			`"additionalProperties":false}`,
		Usage:       "When something takes its time, such as a build on a server. Do not poll it.",
		Origin:      harnessv1.ToolOrigin_TOOL_ORIGIN_HARNESS,
		Annotations: &harnessv1.ToolAnnotations{Durability: harnessv1.Durability_DURABILITY_EPHEMERAL},
	}
}

// waitTarget returns the time or event that a call waits for. The arguments have passed the
// schema. The error tells the model which of them is invalid.
func waitTarget(arguments string) (*harnessv1.WaitState, error) {
	given, err := tool.Arguments[struct {
		Seconds    float64 `json:"seconds"`
		Command    string  `json:"command"`
		Path       string  `json:"path"`
		URL        string  `json:"url"`
		Background string  `json:"background"`
		Deadline   float64 `json:"deadline"`
	}](arguments)
	if err != nil {
		return nil, err
	}
	targets := 0
	for _, given := range []bool{given.Seconds > 0, given.Command != "", given.Path != "", given.URL != "", given.Background != ""} {
		if given {
			targets++
		}
	}
	w := &harnessv1.WaitState{Seconds: maxWait, Command: given.Command, Path: given.Path, Url: given.URL, Background: given.Background}
	switch {
	case targets != 1:
		return nil, fmt.Errorf("expected exactly one thing to wait for (seconds, command and so on), got %d of them", targets)
	case len(given.Command) > maxWaitCommand:
		return nil, fmt.Errorf("command: has %d bytes, more than %d; write it into a script and wait for that", len(given.Command), maxWaitCommand)
	case len(given.URL) > maxWaitURL:
		return nil, fmt.Errorf("url: has %d bytes, more than %d", len(given.URL), maxWaitURL)
	case strings.ContainsRune(given.Command, 0):
		return nil, errors.New("command: contains a NUL character")
	case given.Path != "" && !isLocal(given.Path):
		return nil, errors.New("path: must be relative and inside the workspace")
	}
	if given.Seconds > 0 {
		w.Seconds = uint32(given.Seconds)
	}
	if given.Deadline > 0 {
		w.Seconds = min(w.GetSeconds(), uint32(given.Deadline))
	}
	return w, nil
}

// isLocal reports whether a path is relative and does not leave its folder.
func isLocal(p string) bool {
	p = path.Clean(p)
	return !path.IsAbs(p) && p != ".." && !strings.HasPrefix(p, "../")
}
