package turnserver

import (
	"context"
	"time"

	"github.com/harnessmesh/harnessmesh/pkg/executor"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
)

// atWorkTime bounds the questions of AtWork.
const atWorkTime = time.Second

var _ executor.Attester = (*Server)(nil)

// AtWork reports whether a tool host runs a call that a worker of the turn has started. Only the
// ids of calls are read from the journal: the death may have been caused by something else in it.
func (w *Server) AtWork(ctx context.Context, task *executor.Task) bool {
	ctx, cancel := context.WithTimeout(ctx, atWorkTime)
	defer cancel()
	rounds := map[string]uint32{}
	for _, c := range task.Step().GetSnapshot().GetPendingToolCalls() {
		rounds[c.GetCallId()] = c.GetQuestion().GetRound()
	}
	ledgers := map[string]string{}
	for _, e := range task.Journal {
		started := e.Record.GetJournal().GetToolsStarted()
		for _, id := range started.GetCallIds() {
			ledgers[id] = started.GetLedgerId()
		}
		delete(ledgers, e.Record.GetJournal().GetToolFinished().GetCallId())
	}
	for id, ledger := range ledgers {
		r, err := w.cfg.ToolHost.ReadCallOutput(ctx, &harnessv1.ReadCallOutputRequest{
			Namespace: task.Run.Namespace, RunId: task.Run.ID, CallId: runstate.RoundID(id, rounds[id]), LedgerId: ledger,
			FirstSequence: task.Step().GetSnapshot().GetFirstSequence(),
		})
		if err == nil && r.GetRunning() {
			return true
		}
	}
	return false
}
