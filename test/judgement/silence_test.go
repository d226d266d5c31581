package judgement

import "testing"

// TestASilentAgentEndsAtItsSixthTurn: two nudges, three rejections, then its silence is
// taken, and not accepted.
func TestASilentAgentEndsAtItsSixthTurn(t *testing.T) {
	t.Parallel()
	s := play(t, replies(says("I think it is done.")))
	s.want("DONE agent_done")
	if s.Result.GetTurnCount() != 6 || len(s.names("continuation.prompt")) != 2 || len(s.names("stop.rejected")) != 3 {
		t.Errorf("%d turns, %v", s.Result.GetTurnCount(), s.names())
	}
}
