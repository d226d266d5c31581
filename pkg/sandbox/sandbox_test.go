package sandbox_test

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/sandbox"
)

func TestNamesAndParse(t *testing.T) {
	for _, level := range []harnessv1.SandboxLevel{sandbox.Auto, sandbox.Off, sandbox.Kernel, sandbox.Full} {
		if got, err := sandbox.Parse(sandbox.Name(level)); err != nil || got != level {
			t.Errorf("%s: got %v, %v", sandbox.Name(level), got, err)
		}
	}
	if _, err := sandbox.Parse("strict"); err == nil || !strings.Contains(err.Error(), "full, kernel or off") {
		t.Errorf("got %v", err)
	}
}

// TestValidateNamesTheField of each mistake.
func TestValidateNamesTheField(t *testing.T) {
	for want, c := range map[string]*harnessv1.SandboxConfig{
		"level: unknown level 9":            {Level: 9},
		"network.mode: unknown mode 7":      {Network: &harnessv1.SandboxNetwork{Mode: 7}},
		"read[1]: data is relative":         {Read: []string{"/srv", "data"}},
		"write[0]: the root":                {Write: []string{"/../"}},
		"read: 65 paths exceed":             {Read: strings.Split(strings.Repeat("/a ", 64)+"/a", " ")},
		"hide[0]: /srv hides /srv/data":     {Write: []string{"/srv/data"}, Hide: []string{"/srv"}},
		"env[0]: \"A=1\" is no name":        {Env: []string{"A=1"}},
		"limits.open_files: 10 is below 64": {Limits: &harnessv1.SandboxLimits{OpenFiles: 10}},
		"limits.cpu: must be":               {Limits: &harnessv1.SandboxLimits{Cpu: durationpb.New(-time.Second)}},
	} {
		if err := sandbox.Validate(c); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v, want %s…", err, want)
		}
	}
	fine := &harnessv1.SandboxConfig{Read: []string{"/srv"}, Write: []string{"/srv/data"}, Hide: []string{".env"}, Env: []string{"A"}}
	if err := sandbox.Validate(fine); err != nil {
		t.Error(err)
	}
}

// TestHiddenPathsNeedNamespaces, because Landlock cannot take back what a folder allows.
func TestHiddenPathsNeedNamespaces(t *testing.T) {
	c := &harnessv1.SandboxConfig{Hide: []string{".env"}}
	if _, err := sandbox.Choose(&harnessv1.SandboxSupport{Level: sandbox.Kernel, Reason: "bubblewrap is not installed"}, c); err == nil || !strings.Contains(err.Error(), "bubblewrap is not installed") {
		t.Errorf("got %v", err)
	}
	if level, err := sandbox.Choose(&harnessv1.SandboxSupport{Level: sandbox.Full}, c); err != nil || level != sandbox.Full {
		t.Errorf("got %v, %v", level, err)
	}
}

// TestHostsBeforeTheSandbox: a host that says nothing about it confines nothing.
func TestHostsBeforeTheSandbox(t *testing.T) {
	if level, err := sandbox.Choose(nil, nil); err != nil || level != sandbox.Off {
		t.Errorf("got %v, %v", level, err)
	}
	if _, err := sandbox.Choose(nil, &harnessv1.SandboxConfig{Level: sandbox.Kernel}); err == nil {
		t.Error("it reaches the level kernel")
	}
}

// TestTheStricterLeastHolds has every level of a host, of its operator and of the run, and every
// wish: what Choose returns is never below either least.
func TestTheStricterLeastHolds(t *testing.T) {
	levels := []harnessv1.SandboxLevel{sandbox.Auto, sandbox.Off, sandbox.Kernel, sandbox.Full}
	for _, reached := range levels {
		for _, operator := range levels {
			for _, run := range append(levels, 9) { // 9: of a newer program
				for _, wanted := range levels {
					host := &harnessv1.SandboxSupport{Level: reached, Least: operator, Reason: "reason"}
					level, err := sandbox.Choose(host, &harnessv1.SandboxConfig{Level: wanted, Least: run})
					strictest := max(operator, run, sandbox.Off)
					switch possible := reached >= strictest || strictest == sandbox.Off; {
					case err == nil && (level < strictest || level > max(reached, sandbox.Off)):
						t.Errorf("host %s of %s, run %s, level %s: runs at %s", sandbox.Name(reached), sandbox.Name(operator), sandbox.Name(run), sandbox.Name(wanted), sandbox.Name(level))
					case err != nil && possible && wanted == sandbox.Auto:
						t.Errorf("host %s of %s, run %s: %v", sandbox.Name(reached), sandbox.Name(operator), sandbox.Name(run), err)
					case err != nil && run > max(operator, sandbox.Off) && wanted <= sandbox.Off && !strings.Contains(err.Error(), "started with a token"):
						t.Errorf("the error does not name the operator of the gateway: %v", err)
					}
				}
			}
		}
	}
}
