package mesh

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/test/kit/disktest"
	"github.com/harnessmesh/harnessmesh/test/kit/meshtest"
	"github.com/harnessmesh/harnessmesh/test/kit/waittest"
)

// TestSystemFullDiskOfNATS fills the disks of all NATS servers while a run is at work. The
// roles that write, the doctor and a client that sends a message report it. Once there is
// room and NATS was restarted, as they demand, the run ends and nothing is reported.
func TestSystemFullDiskOfNATS(t *testing.T) {
	for _, servers := range []int{1, 3} {
		t.Run(fmt.Sprint(servers, " servers"), func(t *testing.T) {
			t.Parallel()
			var disks []*disktest.Disk
			m := meshtest.Start(t, bin, meshtest.Config{Replicas: servers, NATS: meshtest.NATSConfig{Servers: servers, SyncAlways: true, Dir: func() string {
				disks = append(disks, disktest.New(t))
				return disks[len(disks)-1].Dir
			}}})
			doctor := func() (string, error) {
				out, err := exec.Command(bin.Harness, "doctor", "--nats", m.Bus.URL()).CombinedOutput()
				return string(out), err
			}
			why := "NATS stores nothing since "
			if servers > 1 {
				why = "JetStream of NATS at "
			}
			s := slow
			full := false
			s.drive = func(d *driver, e *harnessv1.Event) {
				if e.GetToolCall() == nil || full {
					return
				}
				full = true
				for _, disk := range disks {
					disk.Fill()
				}
				// The doctor writes more than what is left in the last pages.
				out, err := doctor()
				if err == nil || !strings.Contains(out, "disk") {
					t.Errorf("the doctor: %v\n%s", err, out)
				}
				reports(t, m, "turn", "NATS stores nothing since ")
				d.refusedMessage(why)
				reports(t, m, "gateway", why)
				if servers > 1 { // JetStream is off, which all roles notice
					for _, role := range meshtest.Roles {
						reports(t, m, role, why)
					}
				}
				for _, disk := range disks {
					disk.Free()
				}
				for i := range servers {
					m.Bus.Kill(i)
					m.Bus.Restart(i)
				}
				for i := range servers {
					m.Bus.AwaitReady(i)
				}
			}
			d, entries := s.through(t.Context(), t, m, "full")
			sound(t, d, entries)
			waittest.Eventually(t, "the doctor finds nothing", func() bool {
				_, err := doctor()
				return err == nil
			})
		})
	}
}

// reports waits until a role reports that nothing is stored.
func reports(t *testing.T, m *meshtest.Mesh, role, why string) {
	t.Helper()
	if rest, ok := m.Process(role).Line("waiting role=" + role + ` reason="` + why); !ok || !strings.Contains(rest, "restart NATS") {
		t.Errorf("%s reports %q", role, rest)
	}
}

// refusedMessage sends messages until one is refused with the reason.
func (d *driver) refusedMessage(why string) {
	d.t.Helper()
	waittest.Eventually(d.t, "a message is refused with the reason", func() bool {
		_, err := d.client.SendInput(d.ctx, &harnessv1.SendInputRequest{RunId: d.run.ID, RequestId: "refused", Input: &harnessv1.SendInputRequest_UserMessage{
			UserMessage: &harnessv1.UserMessage{Content: content.Inline("Are you there?")},
		}})
		if status.Code(err) != codes.Unavailable {
			d.t.Fatalf("a message: %v", err)
		}
		return strings.Contains(err.Error(), why) && strings.Contains(err.Error(), "send the same request again")
	})
}
