package backend

import (
	"os"
	"path/filepath"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/node"
	"github.com/harnessmesh/harnessmesh/pkg/transport/localkey"
)

// DataOf returns the data directory of a gateway of this user on this machine, which it has its key in; empty
// for any other gateway, and for one whose key is elsewhere.
func DataOf(env func(string) string, server string) string {
	notes, err := localkey.UserNotes(env)
	if err != nil {
		return ""
	}
	address, _, err := parseServer(server)
	if err != nil {
		return ""
	}
	note, err := notes.Find(address)
	if err != nil || filepath.Base(note.KeyFile) != node.KeyFile {
		return ""
	}
	dir := filepath.Dir(note.KeyFile)
	if _, err := os.Stat(filepath.Join(dir, "tools")); err != nil {
		return ""
	}
	return dir
}
