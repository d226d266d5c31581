// Package demo is a small broken program and the script of a model that mends
// it, so that a run can be seen without a model.
package demo

import (
	"embed"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Goal is what the agent is asked to do.
const Goal = "The tests of this program fail. Find out why and mend the program."

//go:embed files script.yaml
var content embed.FS

// Place is where a demo lives on disk.
type Place struct {
	// Root holds everything else.
	Root string
	// Workspace is the broken program.
	Workspace string
	// Script is the scripted model's file.
	Script string
	// Data is a data directory of its own.
	Data string
}

// Write puts a demo into the new directory root.
func Write(root string) (*Place, error) {
	p := &Place{
		Root: root, Workspace: filepath.Join(root, "till"),
		Script: filepath.Join(root, "script.yaml"), Data: filepath.Join(root, "data"),
	}
	if err := os.Mkdir(p.Workspace, 0o755); err != nil {
		return nil, fmt.Errorf("demo: %w", err)
	}
	files, err := fs.ReadDir(content, "files")
	if err != nil {
		return nil, fmt.Errorf("demo: %w", err)
	}
	for _, file := range files {
		// The names end in .txt here, or the program would be a part of this one.
		to := filepath.Join(p.Workspace, strings.TrimSuffix(file.Name(), ".txt"))
		if err := write("files/"+file.Name(), to); err != nil {
			return nil, err
		}
	}
	return p, write("script.yaml", p.Script)
}

func write(name, to string) error {
	data, err := content.ReadFile(name)
	if err == nil {
		err = os.WriteFile(to, data, 0o644)
	}
	if err != nil {
		return fmt.Errorf("demo: %w", err)
	}
	return nil
}
