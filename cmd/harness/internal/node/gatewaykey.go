package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"

	"github.com/harnessmesh/harnessmesh/pkg/sandbox"
	"github.com/harnessmesh/harnessmesh/pkg/transport/access"
	"github.com/harnessmesh/harnessmesh/pkg/transport/localkey"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
)

// KeyFile is the name of the gateway's key in a data directory.
const KeyFile = "gateway.key"

// doorKeys are the keys of a node's gateway: what its listeners accept. The zero value
// admits every caller.
//
// The rule goes by the listener and not by the peer, because a proxy or a port that is
// forwarded makes every peer a local one.
type doorKeys struct {
	// network are the tokens at the gateway's address, socket those at the local socket;
	// nil admits every caller.
	network, socket *access.Tokens
	// file is the key file; empty if the key is in no file.
	file string
	// noted: clients on this machine find file by the gateway's address.
	noted bool
	// admits returns why a process may not use the local socket; nil admits every process.
	admits func(pid int) error
}

// socketFile is the key file for the local socket; empty if the socket requires no key.
func (k doorKeys) socketFile() string {
	if k.socket == nil {
		return ""
	}
	return k.file
}

// place is what decides about the keys of a gateway.
type place struct {
	// tokens: there is a --tokens file. open: --open-loopback. loopback: the gateway's
	// listener is on loopback; listens: it has one.
	tokens, open, listens, loopback bool
	// confined: commands of this process cannot read files of the user, or it has none.
	confined bool
	// named: the user has named a key file.
	named bool
}

// keyPlan is the use of the key by the listeners of a gateway.
type keyPlan struct {
	// file: the key is in a file. network and socket: the listener requires the key.
	file, network, socket bool
	// ancestry: the local socket refuses commands of runs.
	ancestry bool
	// noted: clients on this machine find the key by the address.
	noted bool
}

// planKeys decides which listeners of a gateway require the key. Commands that are not
// confined can read the user's files: then the key is in no file of ours, and the local
// socket tells commands by their descent.
func planKeys(p place) keyPlan {
	if p.open {
		return keyPlan{}
	}
	network := p.listens && p.loopback && !p.tokens
	file := p.confined || p.named
	return keyPlan{
		file: file, network: network, socket: p.confined, ancestry: !p.confined,
		noted: network && p.confined,
	}
}

// openLocal opens the server for this machine, once.
func (n *Node) openLocal(ctx context.Context) error {
	if n.local != nil {
		return nil
	}
	if err := n.openKeys(ctx); err != nil {
		return err
	}
	return n.listen()
}

// confined reports whether the commands of this process cannot read files of the user. A
// process without a tool host has none.
func (n *Node) confined(ctx context.Context) bool {
	switch {
	case n.sandbox == nil:
		return true
	case n.cfg.Confined != nil:
		return n.cfg.Confined()
	}
	select {
	case <-n.sandbox.done:
		return n.sandbox.support.GetLevel() > sandbox.Off
	case <-ctx.Done():
		return false
	}
}

// openKeys makes the keys of this node's gateway.
func (n *Node) openKeys(ctx context.Context) error {
	if !slices.Contains(n.cfg.Roles, workflow.Gateway) {
		return nil
	}
	p := place{
		tokens: n.cfg.Tokens != nil, open: n.cfg.OpenLoopback, listens: n.cfg.Listen != "", loopback: onLoopback(n.cfg.Listen),
		named: n.cfg.KeyFile != "",
	}
	p.confined = p.open || n.confined(ctx)
	plan := planKeys(p)
	n.keys = doorKeys{network: n.cfg.Tokens, noted: plan.noted}
	if plan.ancestry {
		n.keys.admits = socketAdmission()
	}
	if !plan.file {
		return n.keyOutOfFiles(plan)
	}
	n.keys.file = n.cfg.KeyFile
	if n.keys.file == "" {
		n.keys.file = filepath.Join(n.cfg.Data, KeyFile)
	}
	key, made, err := localkey.Watch(n.keys.file, n.cfg.Logger)
	if err != nil {
		return fmt.Errorf("--key-file: %w", err)
	}
	// Every user of the machine reads the refusal, so it names no path.
	where := "the key of the gateway, which is in the file " + KeyFile + " of its data directory, or in that of --key-file: on its machine `harness` and the clients find it, " +
		"others send its content (docs/security.md)"
	n.watchedKey.Store(key)
	accepted := access.LiveKey(key.Key, where)
	if plan.socket {
		n.keys.socket = accepted
	}
	if plan.network {
		n.keys.network = accepted
	}
	if made && n.older && plan.network {
		n.notice(fmt.Sprintf("the gateway now requires a key, also on loopback: `harness` and the clients find it in %s, curl and other clients have to send it; and commands of agents run in a sandbox, without network and your home: docs/upgrading.md", n.keys.file))
	}
	if !p.confined {
		n.notice(fmt.Sprintf("WARNING: commands of runs are not confined on this machine (`harness doctor` shows the reason), so they can read the gateway's key in %s: clients need it with --token-file", n.keys.file))
	}
	return nil
}

// keyOutOfFiles makes a key that only this process and its terminal have.
func (n *Node) keyOutOfFiles(plan keyPlan) error {
	// The key of an earlier start, when commands were confined, is worth nothing.
	if plan.ancestry {
		if err := os.Remove(filepath.Join(n.cfg.Data, KeyFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("earlier key of the gateway: %w", err)
		}
	}
	if !plan.network {
		return nil
	}
	key := localkey.New()
	n.keys.network = access.Key(key, "the key that the gateway printed when it started, or start it with --key-file")
	n.notice(fmt.Sprintf("WARNING: commands of runs are not confined on this machine (`harness doctor` shows the reason), so the gateway's key is in no file. Clients need it, with --token-file from a file of yours: %s", key))
	return nil
}

// notice passes a line to the user.
func (n *Node) notice(text string) {
	if n.cfg.Notice != nil {
		n.cfg.Notice(text)
	}
}

// recordKeyFile notes where the key of an address is, or removes the note of an earlier gateway
// that required one. A note that cannot be written is reported and prevents nothing:
// clients have --token-file.
func (n *Node) recordKeyFile(address string, noted bool) {
	if n.cfg.Notes.Dir == "" {
		return
	}
	if !noted {
		if err := n.cfg.Notes.Remove(address); err != nil {
			n.cfg.Logger.Warn("an old note of the gateway's key cannot be removed", "error", err)
		}
		return
	}
	if err := n.cfg.Notes.Put(address, n.keys.file); err != nil {
		level := slog.LevelWarn
		if n.keys.network == nil { // tokens, or no key: only the local socket requires it
			level = slog.LevelDebug
		}
		n.cfg.Logger.Log(context.Background(), level, "clients cannot find the gateway's key by its address; use --token-file", "key_file", n.keys.file, "error", err)
		return
	}
	n.unnote = append(n.unnote, func() { _ = n.cfg.Notes.Remove(address) })
}

// onLoopback reports whether only this machine can connect to an address.
func onLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
