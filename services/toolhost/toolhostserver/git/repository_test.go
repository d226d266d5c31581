package git

import (
	"os"
	"syscall"
	"testing"
)

func TestRepositoryOfUnrelatedUserIsNotTrusted(t *testing.T) {
	t.Parallel()
	self := uint32(os.Geteuid())
	for name, c := range map[string]struct {
		workspace, git uint32
		trusted        bool
	}{
		"this user's":                       {workspace: self, git: self, trusted: true},
		"this user's, workspace of another": {workspace: 12345, git: self, trusted: true},
		"root's":                            {workspace: 12345, git: 0, trusted: true},
		"the workspace's owner's":           {workspace: 12345, git: 12345, trusted: true},
		"unrelated user's":                  {workspace: self, git: 12345},
	} {
		if got := isTrusted(fakeOwner{uid: c.workspace}, fakeOwner{uid: c.git}); got != c.trusted {
			t.Errorf("%s: trusted %v", name, got)
		}
	}
}

// fakeOwner is the file info of a user's file.
type fakeOwner struct {
	os.FileInfo
	uid uint32
}

func (o fakeOwner) Sys() any { return &syscall.Stat_t{Uid: o.uid} }
