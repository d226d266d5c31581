package simulation

import (
	"math/rand/v2"
	"strings"

	"google.golang.org/protobuf/proto"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/profile"
	"github.com/harnessmesh/harnessmesh/pkg/quality"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/test/kit/rejudge"
	"github.com/harnessmesh/harnessmesh/test/kit/sim"
)

// profiles returns the profiles of a process.
func profiles(log runlog.Log) *profile.Profiles {
	return profile.New(profile.Config{Values: log, Random: func() float64 { return 0.5 }})
}

// withQuality has the work of a run judged. Half of the runs name their kind.
func withQuality(spec *harnessv1.RunSpec, random *rand.Rand) {
	turns := uint32(12)
	spec.Config.Stop.MaxTurns = &turns
	spec.Config.Quality = &harnessv1.QualityConfig{Enabled: proto.Bool(true), Model: "sim:judge"}
	spec.Task = &harnessv1.Task{Profile: "shared"}
	if random.IntN(2) == 0 {
		spec.Task.Kind = [...]string{quality.Chat, quality.Drafting, quality.Recommendation}[random.IntN(3)]
	}
	if random.IntN(4) == 0 {
		spec.Config.Quality.Iterations = proto.Uint32(2)
	}
}

// sameVerdicts makes the decisions about judged work again, from what their records store.
func sameVerdicts() sim.Invariant {
	logs := map[*sim.Log]*rejudge.Log{}
	return sim.Invariant{Name: "judged again, the same", Stored: func(l *sim.Log, e runlog.Entry) string {
		if e.Header.Version == 1 {
			logs[l] = &rejudge.Log{Blob: l.Blob}
		}
		return logs[l].Add(e)
	}}
}

// fallbackNames returns another name of an event about judged work that is a fallback.
func fallbackNames(name string, e *harnessv1.Event) []string {
	if strings.HasPrefix(e.GetQualityVerified().GetFeedback(), quality.Fallback) || strings.HasPrefix(e.GetQualityComplexity().GetReason(), quality.Fallback) {
		return []string{name + " " + strings.TrimSpace(quality.Fallback)}
	}
	return nil
}
