package node

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"sync"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/transport/localkey"
	"github.com/harnessmesh/harnessmesh/pkg/transport/roledoor"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
)

// MeshKeyFile is the name of the key that the processes of a user on one machine share, in
// the user's configuration folder of harness.
const MeshKeyFile = "mesh.key"

// MeshKey is the key that processes on one machine present to each other.
type MeshKey struct {
	// File is made if it does not exist and a key is required; empty means no file.
	File string
	// Named: the user has named File, so a key is required wherever this process listens.
	Named bool
}

// rolePlace is what decides about the callers of a node's roles.
type rolePlace struct {
	// gateway: the roles are called at the address of a gateway. shared: other processes
	// are in the mesh.
	gateway, shared bool
	// mutual: processes present certificates to each other.
	mutual bool
	// loopback: the listener is on loopback. open: --open-loopback. named: --mesh-key.
	loopback, open, named bool
}

// rolePlan is the credential that callers of roles present. Without any, only the gateway's
// tokens admit to roles.
type rolePlan struct {
	// open: nothing. certificates: a certificate of the mesh. key: a token of its key.
	open, certificates, key bool
}

// planRoles decides what the callers of roles present. Beyond loopback without
// certificates a process listens with --insecure only.
func planRoles(p rolePlace) rolePlan {
	switch {
	case p.gateway && !p.shared:
		return rolePlan{}
	case p.mutual:
		return rolePlan{certificates: true}
	case p.named || p.loopback && !p.open:
		return rolePlan{key: true}
	}
	return rolePlan{open: true}
}

func (n *Node) rolePlace() rolePlace {
	return rolePlace{
		gateway: n.serves(workflow.Gateway), shared: n.mesh.shared(), mutual: n.cfg.TLS != nil && n.cfg.TLS.Mutual(),
		loopback: onLoopback(n.cfg.Listen), open: n.cfg.OpenLoopback, named: n.cfg.MeshKey.Named,
	}
}

// roleDoor returns what admits callers of this node's roles.
func (n *Node) roleDoor(ctx context.Context, plan rolePlan) (*roledoor.Door, error) {
	cfg := roledoor.Config{Open: plan.open, Certificates: plan.certificates, Logger: n.cfg.Logger}
	if !plan.key {
		return roledoor.New(cfg), nil
	}
	if n.cfg.MeshKey.File == "" {
		return nil, errors.New("--mesh-key: missing file: neither XDG_CONFIG_HOME nor HOME is set, where the processes of this machine share mesh.key; name a file, or set one of them")
	}
	key, _, err := localkey.Watch(n.cfg.MeshKey.File, n.cfg.Logger)
	if err != nil {
		return nil, fmt.Errorf("--mesh-key: %w", err)
	}
	n.meshKey.set(key)
	cfg.Live = func() []string {
		key := key.Key()
		return []string{key, roledoor.Token(key, n.instance, n.mesh.started)}
	}
	cfg.File = n.cfg.MeshKey.File
	cfg.Where = "the key of the mesh, which is in the file " + MeshKeyFile + " of the user that runs it, or in that of --mesh-key, on all processes of the mesh (docs/security.md)"
	if n.called() && !n.confined(ctx) {
		n.notice(fmt.Sprintf("WARNING: commands of runs are not confined on this machine (`harness doctor` shows the reason), so they can read the key of the mesh in %s and call every role of it", n.cfg.MeshKey.File))
	}
	return roledoor.New(cfg), nil
}

// meshKey is the key of the mesh as this process presents it. A process that requires none
// may call one that does, and then reads the file that the other one has made.
type meshKey struct {
	file   string
	logger *slog.Logger

	mu       sync.Mutex
	key      *localkey.File // nil: not found yet
	required bool           // of callers of this process
	reported bool
}

func (k *meshKey) set(key *localkey.File) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.key, k.required = key, true
}

// demanded returns the key if this process requires it of its callers, else nothing.
func (k *meshKey) demanded() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.required {
		return ""
	}
	return k.key.Key()
}

// current returns the key; empty without one.
func (k *meshKey) current() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.find()
}

// token returns what admits to a process; empty without a key.
func (k *meshKey) token(p *harnessv1.Presence) string {
	key := k.current()
	if key == "" {
		return ""
	}
	return roledoor.Token(key, p.GetInstance(), p.GetStartTime().AsTime())
}

// check puts back the mode of the key and renews it if a command has changed it.
func (k *meshKey) check() {
	k.mu.Lock()
	key := k.key
	k.mu.Unlock()
	if key != nil {
		key.Key()
	}
}

// find returns the key, and reads its file until it is there.
func (k *meshKey) find() string {
	if k.key == nil && k.file != "" {
		key, err := localkey.Follow(k.file, k.logger)
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !k.reported {
			k.reported = true
			k.logger.Warn("the key of the mesh cannot be read, so roles that require it refuse this process", "error", err)
		}
		k.key = key
	}
	if k.key == nil {
		return ""
	}
	return k.key.Key()
}

// serverCheck returns the check of a server's certificate for a role.
func serverCheck(role string) func(*x509.Certificate) error {
	return func(cert *x509.Certificate) error { return roledoor.CheckServer(cert, role) }
}
