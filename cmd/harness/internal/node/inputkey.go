package node

import (
	"context"
	"fmt"
	"os"

	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runlog/jetstream"
	"github.com/harnessmesh/harnessmesh/pkg/runlog/seal"
	"github.com/harnessmesh/harnessmesh/pkg/transport/reread"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
)

// inputSeal is the use of seals by a process with a gateway or repair, on a bus that other processes use.
//
// Its keys are those of Config.InputKey. Without that file, it is derived from the key of the mesh if there is
// one: a process that requires that key of its callers requires seals too, because a gateway without it
// could not call the tool host; another one seals with it and requires none. Without any key, all inputs count.
type inputSeal struct {
	file *reread.Value[seal.Keys] // nil without a file
	mesh *meshKey
}

// openInputSeal returns what seals inputs; nil for a bus inside this process, which no other process
// reaches, and for roles that neither send nor apply inputs.
func (n *Node) openInputSeal() (jetstream.Sealer, error) {
	path := n.cfg.InputKey
	if n.cfg.NATS == "" || !n.serves(workflow.Gateway) && !n.serves(workflow.Repair) {
		return nil, nil //nolint:nilnil // nothing is sealed
	}
	s := &inputSeal{mesh: n.meshKey}
	if path == "" {
		return s, nil
	}
	parse := func() (seal.Keys, error) {
		raw, err := os.ReadFile(path)
		if err != nil {
			return seal.Keys{}, err
		}
		keys, err := seal.Parse(string(raw))
		if err != nil {
			return seal.Keys{}, fmt.Errorf("%s: %w", path, err)
		}
		return keys, nil
	}
	var err error
	s.file, err = reread.New(parse, func(err error) {
		n.cfg.Logger.Warn("the input keys cannot be read; the previous ones stay valid", "error", err)
	}, path)
	if err != nil {
		return nil, fmt.Errorf("--input-key: %w", err)
	}
	return s, nil
}

// Seal implements jetstream.Sealer.
func (s *inputSeal) Seal(run runlog.Run, stored []byte) string {
	if s.file != nil {
		return s.file.Get().Seal(run, stored)
	}
	if key := s.mesh.current(); key != "" {
		return seal.Derive(key).Seal(run, stored)
	}
	return ""
}

// Valid implements jetstream.Sealer.
func (s *inputSeal) Valid(run runlog.Run, stored []byte, code string) bool {
	if s.file != nil {
		return s.file.Get().Valid(run, stored, code)
	}
	if key := s.mesh.demanded(); key != "" {
		return seal.Derive(key).Valid(run, stored, code)
	}
	return true
}

// warnOfUnsealedInputs warns if the users of a bus are not all that can approve calls.
func (n *Node) warnOfUnsealedInputs(ctx context.Context) {
	if n.cfg.NATS == "" || n.cfg.InputKey != "" || !n.serves(workflow.Repair) || n.meshKey.demanded() != "" || n.log.AcceptsAnyClient(ctx, n.bus) {
		return
	}
	n.notice("WARNING: without --input-key each process with a NATS user that may write inputs can approve calls of runs: make a key for the gateway and repair (docs/security.md)")
}
