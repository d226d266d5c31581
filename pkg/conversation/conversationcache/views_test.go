package conversationcache

import (
	"testing"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/conversation"
	"github.com/harnessmesh/harnessmesh/pkg/conversation/view"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

// TestViewsAreBoundInBytes: views keep the messages of their conversations, so few of large
// ones are kept.
func TestViewsAreBoundInBytes(t *testing.T) {
	c := &conversation.Conversation{}
	c.Fold(&harnessv1.Record{Version: 1, Appended: []*harnessv1.Message{
		{Id: 1, Role: harnessv1.Role_ROLE_USER, Content: content.Inline("hello")},
	}})
	runs := []runlog.Run{{ID: "a"}, {ID: "b"}, {ID: "c"}}
	views := NewViews(2 * (c.Bytes + IndexBytes))
	for _, run := range runs {
		v := &view.View{}
		v.Update(c, nil, nil)
		views.Put(run, 1, v)
		views.Put(run, 1, v) // instead of the one before
	}
	for run, kept := range map[runlog.Run]bool{runs[0]: false, runs[1]: true, runs[2]: true} {
		if got := views.Take(run, 1, c).Index.Entry(1) != nil; got != kept {
			t.Errorf("the view of %s is kept: %t", run, got)
		}
	}
	if used := views.views.Used(); used != 0 {
		t.Errorf("without views %d bytes are counted", used)
	}
}
