package repair_test

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/services/repair"
)

// TestAnotherFolderAtThePath: a message continues the run in a folder that was cloned, restored or
// mounted again, with guidance. After the machine has started again only the inode counts.
func TestAnotherFolderAtThePath(t *testing.T) {
	before := &harnessv1.WorkspaceFolder{Path: "/w", Device: 1, Inode: 2, Boot: "b", Roots: []string{"/"}}
	for name, c := range map[string]struct {
		change func(now, before *harnessv1.WorkspaceFolder)
		told   bool
	}{
		"the same":                          {func(_, _ *harnessv1.WorkspaceFolder) {}, false},
		"cloned again":                      {func(now, _ *harnessv1.WorkspaceFolder) { now.Inode = 3 }, true},
		"mounted":                           {func(now, _ *harnessv1.WorkspaceFolder) { now.Device = 9 }, true},
		"after a boot":                      {func(now, _ *harnessv1.WorkspaceFolder) { now.Device, now.Boot = 9, "c" }, false},
		"cloned again, after a boot":        {func(now, _ *harnessv1.WorkspaceFolder) { now.Device, now.Inode, now.Boot = 9, 3, "c" }, true},
		"a machine that counts no boots":    {func(now, before *harnessv1.WorkspaceFolder) { now.Device, now.Boot, before.Boot = 9, "", "" }, false},
		"a link, which the tool host names": {func(now, _ *harnessv1.WorkspaceFolder) { proto.Reset(now) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			was, now := proto.CloneOf(before), proto.CloneOf(before)
			now.Roots = nil
			c.change(now, was)
			seen := &harnessv1.Environment{Folder: now}
			if now.GetPath() == "" {
				seen.Folder = nil
			}
			s := waitingIn(was)
			o := decide(t, messaged(s, seen))
			told := strings.Contains(proto.CloneOf(o).String(), "another folder")
			got := o.GetStep().GetSnapshot()
			want := proto.CloneOf(was)
			if seen.GetFolder() != nil {
				want = proto.CloneOf(seen.GetFolder())
				want.Roots = was.GetRoots()
			}
			if told != c.told || verdict(o) != "compaction" || !proto.Equal(got.GetFolder(), want) || got.GetWorkspace() != "/w" {
				t.Errorf("told %v, %s, in %v", told, verdict(o), got.GetFolder())
			}
		})
	}
}

// TestRunOfAnEarlierVersionGetsItsFolder: its workspace was stored as the user wrote it, and is the path
// without links from then on.
func TestRunOfAnEarlierVersionGetsItsFolder(t *testing.T) {
	s := waitingIn(nil)
	s.Workspace = "/link"
	in := messaged(s, nil)
	if out, err := repair.Decide(in); err != nil || !strings.Contains(out.GetNeeds().String(), repair.NeedFolder) {
		t.Fatalf("it does not look: %v, %v", out, err)
	}
	o := decide(t, messaged(s, &harnessv1.Environment{Folder: &harnessv1.WorkspaceFolder{Path: "/w", Inode: 2}}))
	if got := o.GetStep().GetSnapshot(); got.GetWorkspace() != "/w" || got.GetFolder().GetInode() != 2 || strings.Contains(o.String(), "another folder") {
		t.Errorf("got %s, %v", got.GetWorkspace(), got.GetFolder())
	}
}

// waitingIn is a run that a message continues.
func waitingIn(folder *harnessv1.WorkspaceFolder) *harnessv1.Snapshot {
	s := parked("awaiting_input")
	s.Workspace, s.Folder = "/w", folder
	return s
}

// messaged is a message to a run; seen describes its workspace, nil before the tool host was called.
func messaged(s *harnessv1.Snapshot, seen *harnessv1.Environment) *harnessv1.StepInput {
	item := &harnessv1.InboxItem{
		Id: "m", Sequence: s.GetInboxCursor() + 1, Input: &harnessv1.InboxItem_UserMessage{UserMessage: &harnessv1.UserMessage{Content: content.Inline("Go on.")}},
	}
	in := &harnessv1.StepInput{
		Now: timestamppb.New(noon), Sequence: 99,
		Step: &harnessv1.Step{Snapshot: s, Message: &harnessv1.Step_RepairTrigger{RepairTrigger: &harnessv1.RepairTrigger{Cause: harnessv1.TriggerCause_TRIGGER_CAUSE_WAKE}}},
		Observed: []*harnessv1.Observation{{Key: repair.NeedInbox, Value: &harnessv1.Observation_Inbox{Inbox: &harnessv1.InboxBatch{
			Cursor: item.GetSequence(), Items: []*harnessv1.InboxItem{item},
		}}}},
	}
	if seen != nil {
		in.Observed = append(in.Observed, &harnessv1.Observation{Key: repair.NeedFolder, Value: &harnessv1.Observation_Environment{Environment: seen}})
	}
	return in
}
