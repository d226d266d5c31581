// Package demo contains a small broken program and a scripted model that fixes it, so
// that users can watch a run without a model.
package demo

import (
	"embed"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Goal is the task of the agent.
const Goal = "The tests of this program fail. Find out why and mend the program."

//go:embed files script.yaml
var content embed.FS

// Place is a demo on disk.
type Place struct {
	// Root is the directory of the demo.
	Root string
	// Workspace is the broken program.
	Workspace string
	// Script is the scripted model's file.
	Script string
	// Data is the data directory of the demo.
	Data string
}

// Write writes a demo into the new directory root.
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
		// The names end in .txt here, so that the Go tool does not build the files.
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
