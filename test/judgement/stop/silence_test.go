package stop

import (
	"testing"

	"github.com/harnessmesh/harnessmesh/test/kit/live"
)

// TestASilentAgentEndsAtItsSixthTurn: two nudges, three rejections, then its silence is
// taken, and not accepted.
func TestASilentAgentEndsAtItsSixthTurn(t *testing.T) {
	t.Parallel()
	s := live.Play(t, live.Replies(live.Says("I think it is done.")))
	s.Want("DONE agent_done")
	if s.Result.GetTurnCount() != 6 || len(s.Names("continuation.prompt")) != 2 || len(s.Names("stop.rejected")) != 3 {
		t.Errorf("%d turns, %v", s.Result.GetTurnCount(), s.Names())
	}
}
