package repair

import (
	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/agent"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// seeFolder looks at the folder of the workspace when a message comes, and tells the model if another
// one has come to its path. A run of an earlier version gets the path without links that it has been
// working in.
func (d *decision) seeFolder() error {
	if starts(d.trigger) || d.s.GetWorkspace() == "" || d.s.GetFolder() != nil && d.resumed != causeMessage {
		return nil
	}
	seen := agent.Observation(d.in, NeedFolder)
	if seen == nil {
		return &agent.NeedsError{Keys: []string{NeedFolder}}
	}
	now, before := proto.CloneOf(seen.GetEnvironment().GetFolder()), d.s.GetFolder()
	switch {
	case now == nil: // there is none: the calls report it
		return nil
	case before == nil:
		d.s.Workspace = now.GetPath()
	case isAnother(before, now):
		d.Guide("workspace", "", anotherFolder)
	}
	now.Roots = before.GetRoots()
	d.s.Folder = now
	return nil
}

// anotherFolder is the guidance for the model.
const anotherFolder = "The workspace is another folder than before, at the same path: it was cloned, restored or mounted " +
	"again. Files, uncommitted changes and results of commands that you remember may be gone. Look at what is there before you go on."

// isAnother reports whether two folders found at one path are different. Devices have new numbers
// after the machine has started again.
func isAnother(before, now *harnessv1.WorkspaceFolder) bool {
	sameBoot := before.GetBoot() != "" && before.GetBoot() == now.GetBoot()
	return before.GetInode() != now.GetInode() || sameBoot && before.GetDevice() != now.GetDevice()
}
