package judge

import (
	"encoding/json"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/sandbox"
)

// maxGuardedPath bounds what an approval shows of a path, in bytes.
const maxGuardedPath = 200

// guardedPlace returns why a call of a tool that writes files needs an approval: by its path
// programs run outside of the sandbox, or agents are set up. It is empty for other calls. The
// tool host refuses paths that lead to such a place by links.
func guardedPlace(spec *harnessv1.ToolSpec, arguments string) string {
	a := spec.GetAnnotations()
	if !a.GetWrites() || a.GetExecutes() || spec.GetOrigin() != harnessv1.ToolOrigin_TOOL_ORIGIN_TOOL_HOST {
		return ""
	}
	var given struct {
		Path string `json:"path"`
	}
	_ = json.Unmarshal([]byte(arguments), &given) // its schema was checked
	if what := sandbox.Guarded(given.Path); given.Path != "" && what != "" {
		return "it writes " + content.Clip(given.Path, maxGuardedPath) + ": " + what
	}
	return ""
}

// restores reports whether the run has guarded places put back, so that only a person changes them.
func (j *Calls) restores() bool {
	return j.t.Snapshot.GetConfig().GetSandbox().GetGuarded() == harnessv1.GuardedMode_GUARDED_MODE_RESTORE
}
