package main

import (
	"path"
	"strings"
)

// modelTexts lists where strings are texts for models: file, or file#Function.
// They are measured by the gym and are not changed for their words.
var modelTexts = []string{
	"cmd/harness/internal/demo/demo.go", // the goal of the demo
	"pkg/agent/hook/verdict.go#checkVerdict",
	"pkg/agent/hook/hookcaller/command.go#verdictOf",
	"pkg/tool/harnesstool/*.go",
	"pkg/workitem/apply.go",
	"pkg/workitem/control.go#parseControl",
	"services/toolhost/*.go",
	"services/toolhost/toolhostserver/*.go",
	"services/toolhost/toolhostserver/calls/*.go",
	"services/toolhost/toolhostserver/command/*.go",
	"services/toolhost/toolhostserver/command/background/*.go",
	"services/toolhost/toolhostserver/files/*.go",
	"services/toolhost/toolhostserver/mcp/*.go",
	"services/toolhost/toolhostserver/tools/*.go",
	"services/toolhost/toolhostserver/disk/*.go",
	"services/toolhost/toolhostserver/worktree/*.go",
	"services/toolhost/toolhostserver/workspace/*.go",
}

func forModels(file, function string) bool {
	for _, place := range modelTexts {
		pattern, in, limited := strings.Cut(place, "#")
		if matched, _ := path.Match(pattern, file); matched && (!limited || in == function) {
			return true
		}
	}
	return false
}
