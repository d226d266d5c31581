package judgement

import (
	"strings"
	"testing"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/test/kit/live"
	"github.com/harnessmesh/harnessmesh/test/kit/modeltest"
	"github.com/harnessmesh/harnessmesh/test/kit/waittest"
)

// TestVerifierIsCalibrated: a verdict that a user did not share is in the requests of verifiers of
// later runs of the profile, and of no other.
func TestVerifierIsCalibrated(t *testing.T) {
	t.Parallel()
	const text, profile = "The one answer of this test, which is long enough.", "calibrated"
	play := func(name, profile string) (s *live.Transcript) {
		t.Run(name, func(t *testing.T) {
			s = live.Play(t, func(_ int, req *modeltest.Request) modeltest.Reply {
				switch purpose(req) {
				case "complexity":
					return complexity("SIMPLE", nil)
				case "verify":
					return verdict(0.9)
				}
				return finish(text)
			}, withJudge("chat"), func(s *harnessv1.RunSpec) { s.Task.Profile = profile })
			s.Want("DONE agent_done accepted")
		})
		return s
	}
	first := play("first", profile)
	if t.Failed() {
		return
	}
	if got := parts(t, of(first, "verify")[0]); got["CALIBRATION"] != "" {
		t.Errorf("before feedback: %q", got)
	}
	if _, err := live.Gateway(t).SendInput(t.Context(), &harnessv1.SendInputRequest{RunId: first.ID, RequestId: "f", Input: &harnessv1.SendInputRequest_Feedback{
		Feedback: &harnessv1.Feedback{Thumb: harnessv1.Thumb_THUMB_DOWN},
	}}); err != nil {
		t.Fatal(err)
	}
	waittest.Eventually(t, "the feedback is stored", func() bool {
		p, err := live.Gateway(t).GetProfile(t.Context(), &harnessv1.GetProfileRequest{Profile: profile})
		return err == nil && p.GetState().GetThumbs() == 1
	})
	second, other := play("second", profile), play("other", "not-calibrated")
	if t.Failed() {
		return
	}
	got := parts(t, of(second, "verify")[0])
	if c := got["CALIBRATION"]; len(got) != 4 || !strings.Contains(c, "Goal: Do the task.") || !strings.Contains(c, "Output: "+text) || !strings.Contains(c, "Score: 0.90, user: down") {
		t.Errorf("after feedback: %q", got)
	}
	if got := parts(t, of(other, "verify")[0]); len(got) != 3 {
		t.Errorf("of another profile: %q", got)
	}
}
