package console

import (
	"cmp"
	"context"
	"fmt"
	"os/exec"
	"strings"
)

// defaultPager is used without PAGER.
const defaultPager = "less"

// Page shows a text in the user's pager, which reads its keys from the terminal.
func (a *Console) Page(ctx context.Context, text string) error {
	pager := cmp.Or(strings.TrimSpace(a.Env("PAGER")), defaultPager)
	cmd := exec.CommandContext(ctx, "sh", "-c", pager)
	cmd.Env = a.Environ
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(text), a.Err, a.Err
	err := cmd.Run()
	dropTyped(a.In)
	if err != nil {
		return fmt.Errorf("the pager %q failed (%w): set PAGER to another", pager, err)
	}
	return nil
}
