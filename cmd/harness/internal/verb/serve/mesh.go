package serve

import (
	"errors"
	"path/filepath"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/console"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/node"
	"github.com/harnessmesh/harnessmesh/pkg/transport/localkey"
)

// meshFlags control which processes may call the roles of this one.
type meshFlags struct {
	MeshKey string `placeholder:"FILE" help:"Key that processes on one machine present to each other, on all of them; is made if it does not exist. Default, on loopback without --tls-ca: mesh.key in $$XDG_CONFIG_HOME/harness, else ~/.config/harness."`
}

// configure passes the key of the mesh to the node.
func (f meshFlags) configure(c *Cmd, a *console.Console, cfg *node.Config) error {
	switch {
	case f.MeshKey != "" && c.TLSCA != "":
		return errors.New("--mesh-key: roles present certificates to each other with --tls-ca: leave one of them out")
	case f.MeshKey != "" && c.Open:
		return errors.New("--mesh-key and --open-loopback are mutually exclusive: use one of them")
	case f.MeshKey != "":
		file, err := filepath.Abs(f.MeshKey)
		cfg.MeshKey = node.MeshKey{File: file, Named: true}
		return err
	}
	// Without a folder of the user, a process that requires a key reports it.
	if notes, err := localkey.UserNotes(a.Env); err == nil {
		cfg.MeshKey.File = filepath.Join(filepath.Dir(notes.Dir), node.MeshKeyFile)
	}
	return nil
}
