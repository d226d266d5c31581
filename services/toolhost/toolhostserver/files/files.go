// Package files is what a host does with the files of workspaces apart from the tools: it opens them,
// describes them, reads their instructions and skills, and decides what a call must not write.
//
// These promises hold:
//
//   - No access leaves the workspace or the root of its repository, whatever links there are.
//     Package workspace does that. Skills of the user and of named folders are the exception.
//   - The harness's own data is in no workspace, wherever its folder is moved.
//   - A call writes no file that programs run by, or that agents are set up by, unless a person
//     or a rule has allowed the path that the call names. What it writes counts as accepted only if
//     a person has approved the call.
//   - Reads are bounded. A file that cannot be read, or is too large, is left out.
//
// A workspace that cannot be used is an error, INVALID_ARGUMENT, or a reason in the response. Files
// stores nothing and needs no lock.
package files

import (
	"context"
	"runtime"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/services/toolhost"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/git"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/guard"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/workspace"
)

// Files are the files of workspaces. Many goroutines may use it.
type Files struct {
	limits toolhost.Limits
	hidden *workspace.PrivateFolder
	Records
}

// Records know which files runs have changed.
type Records struct {
	// Waits reports whether the content of a file, by its digest, does not count until a person accepts it.
	Waits func(path, digest string) bool
	// Named reports whether a person has named a file by which agents are set up.
	Named func(path string) bool
	// ReadAs is Waits for a file of any name that instructs an agent. One that counts is compared from then on.
	ReadAs func(path string, data []byte) bool
}

// New returns Files. data is the harness's folder for data, without links, which no workspace has.
func New(data string, limits toolhost.Limits, records Records) (*Files, error) {
	hidden, err := workspace.OpenPrivate(data)
	if err != nil {
		return nil, err
	}
	return &Files{limits: limits, hidden: hidden, Records: records}, nil
}

// Close releases the harness's folder.
func (f *Files) Close() error { return f.hidden.Close() }

// Open opens a workspace without the harness's own data.
func (f *Files) Open(dir string) (*workspace.Workspace, error) {
	w, err := workspace.Open(dir)
	if err != nil {
		return nil, err
	}
	w.Hide(f.hidden)
	return w, nil
}

// Right is what a call may write apart from ordinary files.
type Right struct {
	// Guarded reports that a person or a rule has allowed the call to write the guarded file that it names.
	Guarded bool
	// Approved reports that it was a person.
	Approved bool
}

// OpenForCall opens the workspace of a call with a right, which watch guards.
func (f *Files) OpenForCall(dir string, watch *guard.Watch, r Right) (*workspace.Workspace, error) {
	w, err := f.Open(dir)
	if err != nil {
		return nil, err
	}
	w.Above = func() []workspace.Rules { return f.rulesAbove(w.Dir) }
	w.Refuse = func(path, name string) error { return f.refuseWrite(w, watch, r, path, name) }
	return w, nil
}

// Describe describes a workspace, without tools. The error is INVALID_ARGUMENT.
func (f *Files) Describe(ctx context.Context, req *harnessv1.DescribeWorkspaceRequest) (*harnessv1.Environment, error) {
	if err := workspace.CheckPath(req.GetWorkspace()); err != nil {
		return nil, err
	}
	folder, err := findFolder(req)
	if err != nil {
		return nil, workspace.Unusable(req.GetWorkspace(), err)
	}
	w, err := f.Open(folder.GetPath())
	if err != nil {
		return nil, workspace.Unusable(req.GetWorkspace(), err)
	}
	defer w.Close()
	listing, err := w.Listing(f.limits.ListingEntries)
	if err != nil {
		return nil, workspace.Unusable(req.GetWorkspace(), err)
	}
	r, err := git.Find(w.Dir)
	if err != nil {
		return nil, workspace.Unusable(req.GetWorkspace(), err)
	}
	instructions, unaccepted := f.Instructions(ctx, r)
	skills, more := f.skills(r, SkillFolders{Named: req.GetSkillFolders(), Roots: req.GetRoots(), Own: req.GetUserSkills()})
	unaccepted = append(unaccepted, more...)
	return &harnessv1.Environment{
		WorkingDirectory: w.Dir,
		Folder:           folder,
		Platform:         runtime.GOOS + "/" + runtime.GOARCH,
		Listing:          listing,
		InstructionFiles: instructions,
		Skills:           skills,
		Unaccepted:       unaccepted[:min(len(unaccepted), maxUnaccepted)],
	}, nil
}

func findFolder(req *harnessv1.DescribeWorkspaceRequest) (*harnessv1.WorkspaceFolder, error) {
	if req.GetWithoutLinks() {
		return workspace.At(req.GetWorkspace())
	}
	return workspace.Find(req.GetWorkspace(), req.GetRoots())
}
