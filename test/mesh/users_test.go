package mesh

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/sandbox"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
	"github.com/harnessmesh/harnessmesh/test/kit/meshtest"
	"github.com/harnessmesh/harnessmesh/test/kit/waittest"
)

// installedUsers returns the configuration of the users of NATS that deploy/k8s installs, with the
// passwords of its dev overlay.
func installedUsers(t *testing.T) string {
	t.Helper()
	const installed = "../../deploy/k8s"
	roles, err := os.ReadFile(filepath.Join(installed, "base", "roles.conf"))
	if err != nil {
		t.Fatal(err)
	}
	passwords, err := os.ReadFile(filepath.Join(installed, "overlays", "dev", "passwords.conf"))
	if err != nil {
		t.Fatal(err)
	}
	before, after, found := strings.Cut(string(roles), "include passwords.conf\n")
	if !found {
		t.Fatal("roles.conf includes no passwords")
	}
	return before + string(passwords) + after
}

// TestSystemUsersOfRolesAreEnoughAfterAReconnect runs each role as its installed user. NATS ends and starts
// again: every role is ready again, a new turn worker becomes ready, runs with commands end, and no process
// has asked for anything that its user may not. The doctor works as each of them.
func TestSystemUsersOfRolesAreEnoughAfterAReconnect(t *testing.T) {
	t.Parallel()
	users := map[string]string{}
	for _, role := range meshtest.Roles {
		users[role] = fmt.Sprintf("%s:dev-%s", role, role)
	}
	m := meshtest.Start(t, bin, meshtest.Config{
		NATS: meshtest.NATSConfig{Extra: installedUsers(t)}, Credentials: "provision:dev-provision", Users: users,
	})
	var host *harnessv1.Presence // of the tool host
	ready := func(when string, names ...string) {
		t.Helper()
		var problem string
		waittest.Eventually(t, "every role is ready "+when, func() bool {
			there, err := m.Log().Presences(t.Context())
			if err != nil {
				problem = err.Error()
				return false
			}
			problem = fmt.Sprintf("%d processes", len(there))
			for _, p := range there {
				if p.GetRole() == workflow.ToolHost {
					host = p
				}
				if !p.GetReady() {
					problem = p.GetRole() + ": " + p.GetReason()
					return false
				}
			}
			return len(there) == len(names)
		})
		if t.Failed() {
			t.Fatal(problem)
		}
	}
	names := meshtest.Roles
	ready("at first", names...)
	for _, role := range append(meshtest.Roles, "provision") {
		creds := m.Write(role+".doctor", fmt.Sprintf("%s:dev-%s", role, role))
		text := m.Harness("doctor", "--nats", m.Bus.URL(), "--nats-creds", creds)
		lists := role == "gateway" || role == "repair" || role == "provision"
		if !strings.Contains(text, "sandbox of commands on "+host.GetInstance()+": "+sandbox.Name(host.GetSandbox().GetLevel())) || lists == strings.Contains(text, "custom executors are unknown") {
			t.Errorf("doctor as %s:\n%s", role, text)
		}
	}
	d, entries := work.through(t.Context(), t, m, "before")
	sound(t, d, entries)
	for restart := range 2 {
		m.Bus.Kill(0)
		m.Bus.Restart(0)
		m.Bus.AwaitReady(0)
		d, entries := work.through(t.Context(), t, m, fmt.Sprintf("after-%d", restart))
		sound(t, d, entries)
		if restart == 0 {
			m.Start("turn-2")
			m.AwaitReady("turn-2")
			names = append(names, "turn-2")
		}
		ready(fmt.Sprintf("after restart %d", restart+1), names...)
	}
	for _, name := range names {
		for line := range strings.Lines(m.Process(name).Stderr()) {
			// The client deletes a consumer that it has replaced.
			if strings.Contains(line, "ermissions Violation") && !strings.Contains(line, "$JS.API.CONSUMER.DELETE.") {
				t.Errorf("%s asks for what its user may not: %s", name, line)
			}
		}
	}
}
