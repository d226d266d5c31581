package mesh

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/profile"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/test/kit/meshtest"
	"github.com/harnessmesh/harnessmesh/test/kit/waittest"
)

const brief = `turns:
  - {text: "The folder has two files, and both of them are text that was written by hand.", calls: [{name: work_complete, arguments: {summary: done}}]}
jobs:
  complexity: [{answer: {level: MEDIUM, reason: one question, subtask_count: 1}}]
  verify: [{answer: {passed: true, score: 0.9, issues: [], feedback: Good.}}]
`

// TestSystemProfileCountsRunsOnce: 64 runs of one profile end while stop decision workers die. Each
// counts once, and each milestone is reported once. Feedback is kept until its run is deleted.
func TestSystemProfileCountsRunsOnce(t *testing.T) {
	t.Parallel()
	const runs = 64
	m := meshtest.Start(t, bin, meshtest.Config{Takeover: time.Second})
	ctx, client, log := t.Context(), m.Client(), m.Log()
	key := runlog.ValueKey{Namespace: "default", Kind: "profile", Name: profile.Key("team")}
	stored := func() (*harnessv1.StoredProfile, string) {
		data, _, err := log.Value(ctx, key)
		p := &harnessv1.StoredProfile{}
		if err != nil || proto.Unmarshal(data, p) != nil {
			t.Fatalf("%q: %v", data, err)
		}
		return p, string(data)
	}
	script, workspace := scriptFile("brief", brief), newWorkspace(t)
	if err := os.WriteFile(filepath.Join(workspace, "a.txt"), []byte("a\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for n := range runs {
		s := spec(script, workspace)
		withQuality("chat")(s)
		s.Task.Profile = "team"
		if _, err := client.StartRun(ctx, &harnessv1.StartRunRequest{RunId: fmt.Sprint("p", n), RequestId: fmt.Sprint("p", n), Spec: s}); err != nil {
			t.Fatal(err)
		}
	}
	for _, counted := range []uint64{1, 12, 30} {
		waittest.Eventually(t, fmt.Sprint(counted, " runs are counted"), func() bool {
			p, _ := stored()
			return p.GetState().GetTotalRuns() >= counted
		})
		m.Process("stopdecision").Kill()
		m.Start("stopdecision")
	}
	milestones := map[uint64]int{}
	for n := range runs {
		profiles := 0
		for _, e := range events(m.Ended(runlog.Run{Namespace: "default", ID: fmt.Sprint("p", n)}, 0)) {
			if e.GetQualityProfile() != nil && e.GetQualityProfile().GetProblem() == "" {
				profiles++
			}
			if e.GetQualityMilestone() != nil {
				milestones[e.GetQualityMilestone().GetThreshold()]++
			}
		}
		if profiles != 1 {
			t.Errorf("run %d has %d events quality.profile", n, profiles)
		}
	}
	if p, _ := stored(); p.GetState().GetTotalRuns() != runs || p.GetState().GetScoredRuns() != runs || len(p.GetCounted()) != runs {
		t.Errorf("counted %v", p.GetState())
	}
	if milestones[10] != 1 || milestones[50] != 1 || len(milestones) != 2 {
		t.Errorf("milestones %v", milestones)
	}
	if _, err := client.SendInput(ctx, &harnessv1.SendInputRequest{RunId: "p0", RequestId: "f", Input: &harnessv1.SendInputRequest_Feedback{
		Feedback: &harnessv1.Feedback{Thumb: harnessv1.Thumb_THUMB_DOWN},
	}}); err != nil {
		t.Fatal(err)
	}
	waittest.Eventually(t, "feedback is stored", func() bool {
		p, words := stored()
		return p.GetState().GetThumbs() == 1 && strings.Contains(words, "both of them are text")
	})
	waittest.Eventually(t, "the run is deleted", func() bool {
		_, err := client.DeleteRun(ctx, &harnessv1.DeleteRunRequest{RunId: "p0"})
		return err == nil
	})
	waittest.Eventually(t, "its words are removed", func() bool {
		_, words := stored()
		return !strings.Contains(words, "both of them are text")
	})
}
