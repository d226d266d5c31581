package mesh

import (
	"strings"
	"syscall"
	"testing"
	"time"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/test/kit/meshtest"
	"github.com/harnessmesh/harnessmesh/test/kit/nettest"
	"github.com/harnessmesh/harnessmesh/test/kit/waittest"
)

// TestSystemHungNATS stops NATS (SIGSTOP) while a run is at work. Every role reports it within
// the takeover time, also those that consume nothing, and the doctor in seconds. Once
// NATS continues, the roles are ready again and the run ends.
func TestSystemHungNATS(t *testing.T) {
	t.Parallel()
	const takeover = runlog.DefaultTakeover
	m := meshtest.Start(t, bin, meshtest.Config{Takeover: takeover})
	s := slow
	stopped := false
	s.drive = func(_ *driver, e *harnessv1.Event) {
		if e.GetToolCall() == nil || stopped {
			return
		}
		stopped = true
		began := time.Now()
		m.Bus.Signal(0, syscall.SIGSTOP)
		for _, role := range meshtest.Roles {
			reason, ok := m.Process(role).Line("waiting role=" + role + ` reason="NATS at `)
			if took := time.Since(began); !ok || took > takeover || !strings.Contains(reason, "has not answered since") {
				t.Errorf("%s reports after %v, the takeover time is %v: %s", role, took, takeover, reason)
			}
		}
		began = time.Now()
		text, err := with(t, "doctor", "--nats", m.Bus.URL())
		if took := time.Since(began); err == nil || took > 10*time.Second || !strings.Contains(text, "cannot reach NATS") {
			t.Errorf("the doctor, after %v: %v\n%s", took, err, text)
		}
		m.Bus.Signal(0, syscall.SIGCONT)
	}
	d, entries := s.through(t.Context(), t, m, "hung")
	sound(t, d, entries)
	for _, role := range meshtest.Roles {
		p := m.Process(role)
		waittest.Eventually(t, role+" is ready again", func() bool {
			return strings.LastIndex(p.Stderr(), "ready role=") > strings.LastIndex(p.Stderr(), "waiting role=")
		})
	}
}

// TestSystemRoleStartsNextToADeadAddress starts a role while one of the addresses of NATS drops
// packets, and one whose only address does so at first. Both become ready.
func TestSystemRoleStartsNextToADeadAddress(t *testing.T) {
	t.Parallel()
	m := meshtest.Start(t, bin, meshtest.Config{Without: []string{"compaction"}})
	hole := nettest.NewHole(t)
	began := time.Now()
	m.Start("compaction", meshtest.Via("nats://"+nettest.NewHole(t).Addr()+","+m.Bus.URL()))
	m.AwaitReady("compaction")
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("ready after %v", took)
	}
	late := m.Start("compaction-2", meshtest.Via("nats://"+hole.Addr()))
	waittest.Eventually(t, "it waits for NATS", func() bool { return late.Ended() || strings.Contains(late.Stderr(), "waiting for NATS") })
	hole.Forward(strings.TrimPrefix(m.Bus.URL(), "nats://"))
	m.AwaitReady("compaction-2")
}
