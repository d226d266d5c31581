package turnserver

import (
	"context"

	"github.com/harnessmesh/harnessmesh/pkg/agent/hook/hookcaller"
	"github.com/harnessmesh/harnessmesh/services/turn"
)

// fireHooks calls the subscribers of a point.
func (t *execution) fireHooks(ctx context.Context, a turn.FireHooks) turn.Event {
	p, s := a.Point, t.state.Snapshot
	p.Namespace, p.RunID = t.run.Namespace, t.run.ID
	return turn.HooksFired{Result: t.server.cfg.Hooks.Fire(ctx, t.state.Definition.Hooks, p, hookcaller.RunInfo{
		Workspace: s.GetWorkspace(), FirstSequence: s.GetFirstSequence(), Timeout: s.GetConfig().GetHooks().GetTimeout().AsDuration(), Sandbox: s.GetConfig().GetSandbox(),
	})}
}
