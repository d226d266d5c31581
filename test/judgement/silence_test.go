package judgement

import (
	"testing"

	"github.com/harnessmesh/harnessmesh/test/kit/live"
)

// TestASilentAgentEndsAtItsSixthTurn: after two reminders and three rejections its silence is
// the end, not accepted.
func TestASilentAgentEndsAtItsSixthTurn(t *testing.T) {
	t.Parallel()
	s := live.Play(t, live.Replies(live.Message("I think it is done.")))
	s.Want("DONE agent_done")
	if s.Result.GetTurnCount() != 6 || len(s.Names("continuation.prompt")) != 2 || len(s.Names("stop.rejected")) != 3 {
		t.Errorf("%d turns, %v", s.Result.GetTurnCount(), s.Names())
	}
}
