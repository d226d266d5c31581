package console

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// defaultEditor is used without VISUAL and EDITOR.
const defaultEditor = "vi"

// Edit opens a text in the user's editor, and returns it when that has ended.
func (a *Console) Edit(ctx context.Context, text string, command bool) (string, error) {
	editor := cmp.Or(strings.TrimSpace(a.Env("VISUAL")), strings.TrimSpace(a.Env("EDITOR")), defaultEditor)
	dir, err := os.MkdirTemp("", "harness-edit-")
	if err != nil {
		return "", fmt.Errorf("edit: %w", err)
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "arguments.json")
	if command {
		file = filepath.Join(dir, "command.sh")
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return "", fmt.Errorf("edit: %w", err)
	}
	cmd := exec.CommandContext(ctx, "sh", "-c", editor+` "$1"`, "sh", file)
	cmd.Env = a.Environ
	cmd.Stdin, cmd.Stdout, cmd.Stderr = a.In, a.Err, a.Err
	err = cmd.Run()
	dropTyped(a.In)
	if err != nil {
		return "", fmt.Errorf("the editor %q failed (%w), so nothing is changed: set EDITOR to another", editor, err)
	}
	f, err := os.Open(file)
	if err != nil {
		return "", fmt.Errorf("edit: %w", err)
	}
	defer f.Close()
	changed, err := io.ReadAll(io.LimitReader(f, maxSaid+1))
	if err != nil {
		return "", fmt.Errorf("edit: %w", err)
	}
	if len(changed) > maxSaid {
		return "", fmt.Errorf("the text is larger than %d bytes", maxSaid)
	}
	return string(changed), nil
}
