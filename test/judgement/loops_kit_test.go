package judgement

import (
	"fmt"
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/test/kit/live"

	"google.golang.org/protobuf/proto"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/test/kit/modeltest"
)

// loopsOff switches the detection of loops off.
func loopsOff(spec *harnessv1.RunSpec) {
	spec.Config.DoomLoop = &harnessv1.DoomLoopConfig{Enabled: proto.Bool(false)}
}

// loopsStallOff switches the detection of stalls off.
func loopsStallOff(spec *harnessv1.RunSpec) {
	spec.Config.Stall = &harnessv1.StallConfig{Enabled: proto.Bool(false)}
}

func loopsThreshold(n uint32) func(*harnessv1.RunSpec) {
	return func(spec *harnessv1.RunSpec) { spec.Config.Stall = &harnessv1.StallConfig{Threshold: proto.Uint32(n)} }
}

// loopsABC are files with different contents.
func loopsABC(t *testing.T) func(*harnessv1.RunSpec) {
	t.Helper()
	files := map[string]string{}
	for _, name := range strings.Split("abcdefgh", "") {
		files[name+".txt"] = "content of " + name
	}
	return stopFiles(t, files)
}

// loopsReads is a model that reads the files that the letters name, one a turn, and
// after the last letter begins again with the first.
func loopsReads(letters string) live.Model {
	return func(n int, _ *modeltest.Request) modeltest.Reply {
		return live.Calls(stopRead(letters[n%len(letters):n%len(letters)+1] + ".txt"))
	}
}

// loopsReadsOnce is a model that reads the files that the letters name, one a turn, and
// then ends the work.
func loopsReadsOnce(letters string) live.Model {
	var all []modeltest.Reply
	for _, l := range strings.Split(letters, "") {
		all = append(all, live.Calls(stopRead(l+".txt")))
	}
	return stopOnce(all...)
}

// loopsSeen returns the reported loops, such as "3 strict 1×3 correction 1": the
// turn, the kind, the length and the repeats, and the correction.
func loopsSeen(s *live.Transcript) []string {
	var all []string
	for _, e := range s.Events {
		if d := e.GetDoomLoopDetected(); d != nil {
			all = append(all, fmt.Sprintf("%d %s %d×%d correction %d", e.GetTurnNumber(), d.GetKind(), d.GetLength(), d.GetRepeats(), d.GetCorrection()))
		}
	}
	return all
}

// loopsTurns are the turns after which a kind of loop was corrected.
func loopsTurns(s *live.Transcript, kind string) []uint32 {
	var all []uint32
	for _, e := range s.Events {
		if d := e.GetDoomLoopDetected(); d.GetKind() == kind && d.GetCorrection() > 0 {
			all = append(all, e.GetTurnNumber())
		}
	}
	return all
}

// loopsCorrections returns the corrections that the model got, by the number of the turn after
// which it got them.
func loopsCorrections(s *live.Transcript) map[uint32]string {
	all := map[uint32]string{}
	for _, e := range s.Events {
		if g := e.GetGuidanceInjected(); g.GetKind() == "doom_loop" {
			all[e.GetTurnNumber()] = g.GetText()
		}
	}
	return all
}
