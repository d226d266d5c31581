package main

import (
	"path"
	"strings"
)

// modelTexts lists where strings are texts for models: file, or file#Function.
// They are measured by the gym and are not changed for their words.
var modelTexts = []string{
	"pkg/tool/harnesstool/*.go",
	"services/toolhost/*.go",
	"services/toolhost/toolhostserver/*.go",
	"services/toolhost/toolhostserver/tools/*.go",
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
