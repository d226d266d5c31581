package judge

import (
	"strings"
	"testing"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/sandbox"
)

// TestHostsThatCommandsAskFor by the level of the call and the network of the run.
func TestHostsThatCommandsAskFor(t *testing.T) {
	const asks = `{"command":"curl","hosts":["a.org","b.org:8443"]}`
	network := func(mode harnessv1.SandboxNetworkMode, hosts ...string) *harnessv1.SandboxConfig {
		return &harnessv1.SandboxConfig{Network: &harnessv1.SandboxNetwork{Mode: mode, Hosts: hosts}}
	}
	some := network(harnessv1.SandboxNetworkMode_SANDBOX_NETWORK_MODE_HOSTS, "a.org")
	trusted := network(harnessv1.SandboxNetworkMode_SANDBOX_NETWORK_MODE_HOSTS, "a.org")
	trusted.Unconfined = true
	for name, c := range map[string]struct {
		reaches   harnessv1.SandboxLevel
		cfg       *harnessv1.SandboxConfig
		arguments string
		level     harnessv1.SandboxLevel
		confined  bool
		ask       string
		hosts     string
		refused   string
	}{
		"without network":       {sandbox.Full, nil, asks, sandbox.Full, false, "it wants to reach a.org, b.org:8443", "a.org b.org:8443", ""},
		"one more":              {sandbox.Full, some, asks, sandbox.Full, false, "it wants to reach b.org:8443", "b.org:8443", ""},
		"one of the run":        {sandbox.Full, some, `{"command":"curl","hosts":["a.org"]}`, sandbox.Full, false, "", "", ""},
		"none":                  {sandbox.Full, some, `{"command":"curl"}`, sandbox.Full, false, "", "", ""},
		"with all":              {sandbox.Full, network(harnessv1.SandboxNetworkMode_SANDBOX_NETWORK_MODE_ALL), asks, sandbox.Full, false, "", "", ""},
		"a person has allowed":  {sandbox.Full, trusted, asks, sandbox.Full, true, "", "b.org:8443", ""},
		"at kernel":             {sandbox.Kernel, nil, asks, 0, false, "", "", "ask with unconfined"},
		"the run's, at kernel":  {sandbox.Kernel, some, `{"command":"curl"}`, 0, false, "", "", "needs the level full"},
		"without a sandbox":     {sandbox.Off, nil, asks, sandbox.Off, false, "", "", ""},
		"an address":            {sandbox.Full, nil, `{"command":"curl","hosts":["1.2.3.4"]}`, 0, false, "", "", "is an address"},
		"together with leaving": {sandbox.Full, nil, `{"command":"curl","hosts":["a.org"],"unconfined":"why"}`, sandbox.Off, false, "it wants to run outside of the sandbox: why", "", ""},
		"every host":            {sandbox.Full, nil, `{"command":"curl","hosts":["*"]}`, 0, false, "", "", "network all"},
	} {
		j := &Calls{t: Turn{
			Snapshot: &harnessv1.Snapshot{Config: &harnessv1.LoopConfig{Sandbox: c.cfg}},
			Sandbox:  &harnessv1.SandboxSupport{Level: c.reaches, Least: sandbox.Off},
		}}
		spec := &harnessv1.ToolSpec{Name: "run_command", Origin: harnessv1.ToolOrigin_TOOL_ORIGIN_TOOL_HOST, Annotations: &harnessv1.ToolAnnotations{Executes: true}}
		got, err := j.command(spec, c.arguments)
		if c.refused != "" {
			if err == nil || !strings.Contains(err.Error(), c.refused) {
				t.Errorf("%s: %v lacks %q", name, err, c.refused)
			}
			continue
		}
		if err != nil || got.level != c.level || got.confined != c.confined || got.ask != c.ask || strings.Join(got.hosts, " ") != c.hosts {
			t.Errorf("%s: got %+v, %v", name, got, err)
		}
	}
}

// TestHowCommandsAreConfined by what the host can do, what the run wants, and what the call
// asks for.
func TestHowCommandsAreConfined(t *testing.T) {
	const leave = `{"command":"docker ps","unconfined":"it needs the engine"}`
	all := &harnessv1.SandboxConfig{Network: &harnessv1.SandboxNetwork{Mode: harnessv1.SandboxNetworkMode_SANDBOX_NETWORK_MODE_ALL}}
	for name, c := range map[string]struct {
		reaches, least harnessv1.SandboxLevel
		cfg            *harnessv1.SandboxConfig
		arguments      string
		level          harnessv1.SandboxLevel
		confined, asks bool
		refused        string
	}{
		"completely":                {sandbox.Full, sandbox.Off, nil, `{"command":"ls"}`, sandbox.Full, true, false, ""},
		"with network":              {sandbox.Full, sandbox.Off, all, `{"command":"ls"}`, sandbox.Full, false, false, ""},
		"by the kernel":             {sandbox.Kernel, sandbox.Off, nil, `{"command":"ls"}`, sandbox.Kernel, false, false, ""},
		"not at all":                {sandbox.Off, sandbox.Off, nil, `{"command":"ls"}`, sandbox.Off, false, false, ""},
		"as the run wants":          {sandbox.Full, sandbox.Off, &harnessv1.SandboxConfig{Level: sandbox.Kernel}, `{"command":"ls"}`, sandbox.Kernel, false, false, ""},
		"switched off":              {sandbox.Full, sandbox.Off, &harnessv1.SandboxConfig{Level: sandbox.Off}, `{"command":"ls"}`, sandbox.Off, false, false, ""},
		"less than the operator":    {sandbox.Full, sandbox.Kernel, &harnessv1.SandboxConfig{Level: sandbox.Off}, `{"command":"ls"}`, 0, false, false, "operator"},
		"less than demanded":        {sandbox.Kernel, sandbox.Off, &harnessv1.SandboxConfig{Level: sandbox.Full}, `{"command":"ls"}`, 0, false, false, "reaches only kernel"},
		"it wants out":              {sandbox.Full, sandbox.Off, nil, leave, sandbox.Off, false, true, ""},
		"a person has allowed it":   {sandbox.Full, sandbox.Off, &harnessv1.SandboxConfig{Unconfined: true}, leave, sandbox.Off, true, false, ""},
		"the operator has not":      {sandbox.Full, sandbox.Kernel, &harnessv1.SandboxConfig{Unconfined: true}, leave, 0, false, false, "operator"},
		"a token's run wants out":   {sandbox.Full, sandbox.Off, &harnessv1.SandboxConfig{Least: sandbox.Kernel}, leave, 0, false, false, "started with a token"},
		"with a word in advance":    {sandbox.Full, sandbox.Off, &harnessv1.SandboxConfig{Least: sandbox.Kernel, Unconfined: true}, leave, 0, false, false, "started with a token"},
		"a token's run, off":        {sandbox.Full, sandbox.Off, &harnessv1.SandboxConfig{Least: sandbox.Kernel, Level: sandbox.Off}, `{"command":"ls"}`, 0, false, false, "started with a token"},
		"a token's run, auto":       {sandbox.Full, sandbox.Off, &harnessv1.SandboxConfig{Least: sandbox.Kernel}, `{"command":"ls"}`, sandbox.Full, true, false, ""},
		"a token's run, no sandbox": {sandbox.Off, sandbox.Off, &harnessv1.SandboxConfig{Least: sandbox.Kernel}, `{"command":"ls"}`, 0, false, false, "reaches only off"},
		"there is nothing to leave": {sandbox.Off, sandbox.Off, nil, leave, sandbox.Off, false, false, ""},
	} {
		j := &Calls{t: Turn{
			Snapshot: &harnessv1.Snapshot{Config: &harnessv1.LoopConfig{Sandbox: c.cfg}},
			Sandbox:  &harnessv1.SandboxSupport{Level: c.reaches, Least: c.least},
		}}
		spec := &harnessv1.ToolSpec{Name: "run_command", Origin: harnessv1.ToolOrigin_TOOL_ORIGIN_TOOL_HOST, Annotations: &harnessv1.ToolAnnotations{Executes: true}}
		got, err := j.command(spec, c.arguments)
		if c.refused != "" {
			if err == nil || !strings.Contains(err.Error(), c.refused) {
				t.Errorf("%s: %v lacks %q", name, err, c.refused)
			}
			continue
		}
		if err != nil || got.level != c.level || got.confined != c.confined || (got.ask != "") != c.asks {
			t.Errorf("%s: got %+v, %v", name, got, err)
		}
		if c.asks && !strings.Contains(got.ask, "it needs the engine") {
			t.Errorf("%s: a person reads %q", name, got.ask)
		}
	}
}
