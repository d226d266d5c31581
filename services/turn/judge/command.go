package judge

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/sandbox"
)

// maxWhy bounds what an approval shows of the reason of a model, in bytes.
const maxWhy = 400

// commandCall is how a call that runs a command is confined.
type commandCall struct {
	// level is that of the call, Auto for other tools.
	level harnessv1.SandboxLevel
	// confined is true if the command needs no approval unless a rule wants one.
	confined bool
	// hosts are those that this call alone reaches.
	hosts []string
	// ask is why a person has to approve this call; empty if it needs no approval.
	ask string
}

// command returns how a call of a tool is confined. The error is why it cannot be, for the
// model.
func (j *Calls) command(spec *harnessv1.ToolSpec, arguments string) (commandCall, error) {
	if !spec.GetAnnotations().GetExecutes() || spec.GetOrigin() != harnessv1.ToolOrigin_TOOL_ORIGIN_TOOL_HOST {
		return commandCall{}, nil
	}
	cfg := j.t.Snapshot.GetConfig().GetSandbox()
	level, err := sandbox.Choose(j.t.Sandbox, cfg)
	if err != nil {
		return commandCall{}, err
	}
	wants := wantsOf(arguments)
	why := wants.Unconfined
	switch {
	case why == "" && len(wants.Hosts) > 0 && level > sandbox.Off:
		return j.withHosts(level, cfg, wants.Hosts)
	case why == "":
		return commandCall{level: level, confined: !sandbox.Asks(level, cfg)}, nil
	case level == sandbox.Off: // there is nothing to leave
		return commandCall{level: level}, nil
	case sandbox.LeastOf(j.t.Sandbox, cfg).Level > sandbox.Off:
		return commandCall{}, fmt.Errorf("%s lets no command leave the sandbox", sandbox.LeastOf(j.t.Sandbox, cfg).Demander())
	case cfg.GetUnconfined():
		return commandCall{level: sandbox.Off, confined: true}, nil
	}
	return commandCall{level: sandbox.Off, ask: fmt.Sprintf("it wants to run outside of the sandbox: %s", content.Clip(why, maxWhy))}, nil
}

// withHosts returns how a call is confined that wants to reach hosts.
func (j *Calls) withHosts(level harnessv1.SandboxLevel, cfg *harnessv1.SandboxConfig, hosts []string) (commandCall, error) {
	missing, err := sandbox.Missing(cfg, hosts)
	switch {
	case err != nil:
		return commandCall{}, fmt.Errorf("hosts: %w", err)
	case len(missing) == 0:
		return commandCall{level: level, confined: !sandbox.Asks(level, cfg)}, nil
	case level < sandbox.Full:
		return commandCall{}, fmt.Errorf("the level %s cannot let a command reach single hosts; ask with unconfined: \"why\"", sandbox.Name(level))
	case cfg.GetUnconfined():
		return commandCall{level: level, confined: true, hosts: missing}, nil
	}
	return commandCall{level: level, hosts: missing, ask: "it wants to reach " + content.Clip(strings.Join(missing, ", "), maxWhy)}, nil
}

// commandWants is what a call of a command asks for, beyond what its run allows.
type commandWants struct {
	// Unconfined is why it wants to run outside of the sandbox; empty if it does not.
	Unconfined string   `json:"unconfined"`
	Hosts      []string `json:"hosts"`
}

func wantsOf(arguments string) commandWants {
	var w commandWants
	_ = json.Unmarshal([]byte(arguments), &w) // its schema was checked
	return w
}
