package runstate_test

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/pkg/sandbox"
)

func previewed(network harnessv1.SandboxNetworkMode, hosts ...string) *harnessv1.Snapshot {
	return &harnessv1.Snapshot{Workspace: "/srv/a", Config: &harnessv1.LoopConfig{
		Sandbox: &harnessv1.SandboxConfig{Network: &harnessv1.SandboxNetwork{Mode: network, Hosts: hosts}},
	}}
}

func TestPreviewOfACommandHasItsNetwork(t *testing.T) {
	const (
		none  = harnessv1.SandboxNetworkMode_SANDBOX_NETWORK_MODE_NONE
		every = harnessv1.SandboxNetworkMode_SANDBOX_NETWORK_MODE_ALL
		hosts = harnessv1.SandboxNetworkMode_SANDBOX_NETWORK_MODE_HOSTS
	)
	for name, c := range map[string]struct {
		snapshot *harnessv1.Snapshot
		level    harnessv1.SandboxLevel
		extra    []string
		network  harnessv1.SandboxNetworkMode
		want     string
	}{
		"the defaults":                 {&harnessv1.Snapshot{Workspace: "/srv/a"}, sandbox.Full, nil, none, ""},
		"all":                          {previewed(every), sandbox.Full, []string{"a.example"}, every, ""},
		"hosts":                        {previewed(hosts, "a.example"), sandbox.Full, []string{"b.example"}, hosts, "a.example b.example"},
		"hosts of the call":            {previewed(none), sandbox.Full, []string{"b.example"}, hosts, "b.example"},
		"outside of the sandbox":       {previewed(none), sandbox.Off, nil, every, ""},
		"hosts outside of the sandbox": {previewed(hosts, "a.example"), sandbox.Off, nil, every, ""},
	} {
		call := &harnessv1.PendingCall{Tool: "run_command", SandboxLevel: c.level, SandboxHosts: c.extra}
		got := runstate.Preview(c.snapshot, call, nil).GetCommand()
		if got.GetNetwork() != c.network || strings.Join(got.GetHosts(), " ") != c.want || got.GetDirectory() != "/srv/a" || got.GetLevel() != c.level {
			t.Errorf("%s: %v", name, got)
		}
	}
	if p := runstate.Preview(previewed(none), &harnessv1.PendingCall{Tool: "write_file"}, nil); p.GetCommand() != nil || len(p.GetDigest()) != 64 {
		t.Errorf("a call that runs no command: %v", p)
	}
}

// Another call, and the same call run in another way, has another digest. The place of the
// arguments makes no difference.
func TestDigestOfAPreview(t *testing.T) {
	s := previewed(harnessv1.SandboxNetworkMode_SANDBOX_NETWORK_MODE_HOSTS, "a.example")
	call := &harnessv1.PendingCall{CallId: "c1", Tool: "run_command", Arguments: content.Inline(`{"command":"make"}`), SandboxLevel: sandbox.Full}
	var proposed *harnessv1.CallPreview
	digest := func(change func(*harnessv1.Snapshot, *harnessv1.PendingCall)) string {
		s, call := proto.CloneOf(s), proto.CloneOf(call)
		change(s, call)
		return runstate.Preview(s, call, proposed).GetDigest()
	}
	seen := map[string]string{}
	for name, change := range map[string]func(*harnessv1.Snapshot, *harnessv1.PendingCall){
		"the call":     func(*harnessv1.Snapshot, *harnessv1.PendingCall) {},
		"another tool": func(_ *harnessv1.Snapshot, c *harnessv1.PendingCall) { c.Tool = "run" },
		"other arguments": func(_ *harnessv1.Snapshot, c *harnessv1.PendingCall) {
			c.Arguments = content.Inline(`{"command":"make "}`)
		},
		"another level":     func(_ *harnessv1.Snapshot, c *harnessv1.PendingCall) { c.SandboxLevel = sandbox.Kernel },
		"another directory": func(s *harnessv1.Snapshot, _ *harnessv1.PendingCall) { s.Workspace = "/srv/b" },
		"other hosts":       func(_ *harnessv1.Snapshot, c *harnessv1.PendingCall) { c.SandboxHosts = []string{"b.example"} },
		"another network": func(s *harnessv1.Snapshot, _ *harnessv1.PendingCall) {
			s.Config.Sandbox.Network.Mode = harnessv1.SandboxNetworkMode_SANDBOX_NETWORK_MODE_ALL
		},
	} {
		got := digest(change)
		if other, ok := seen[got]; ok {
			t.Errorf("%s and %s have one digest", name, other)
		}
		seen[got] = name
	}
	stored := digest(func(_ *harnessv1.Snapshot, c *harnessv1.PendingCall) {
		c.Arguments = &harnessv1.Content{Value: &harnessv1.Content_Blob{Blob: content.Ref([]byte(`{"command":"make"}`))}}
	})
	if seen[stored] != "the call" {
		t.Errorf("arguments in a blob have another digest")
	}
	for _, file := range []*harnessv1.FilePreview{{Path: "a", Hunks: "1"}, {Path: "b", Hunks: "1"}, {Path: "a", Hunks: "2"}, {Path: "a", Before: "1", Hunks: "1"}} {
		proposed = &harnessv1.CallPreview{Files: []*harnessv1.FilePreview{file}}
		got := digest(func(*harnessv1.Snapshot, *harnessv1.PendingCall) {})
		if other, ok := seen[got]; ok {
			t.Errorf("%v and %s have one digest", file, other)
		}
		seen[got] = file.String()
	}
}
