package workitem_test

import (
	"testing"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/workitem"
)

func FuzzApply(f *testing.F) {
	for _, tool := range []string{workitem.Add, workitem.Update, workitem.List, workitem.SetArtifact, workitem.FlagRevision} {
		f.Add(tool, `{"id":"w1","title":"T","status":"DONE","content":"Here is the report:\n\nSums.","role":"DELIVERABLE","reason":"r"}`)
		f.Add(tool, `{"id":"w1","content":`+failing+`,"role":"CONTROL","title":7,"reason":null}`)
		f.Add(tool, "{\"id\":\"w1\",\"title\":\"\\ud800\",\"notes\":\"\\u0000\",\"content\":\"\xff\",\"reason\":\"\\n\"}")
	}
	f.Fuzz(func(t *testing.T, tool, arguments string) {
		l := with(t, "A", "B")
		before := proto.CloneOf(l)
		out := applyTool(l, tool, arguments)
		if out.Result == "" || !utf8.ValidString(out.Result) || len(out.Result) > 8<<10 {
			t.Errorf("answered %q", out.Result)
		}
		if out.IsError && !proto.Equal(l, before) {
			t.Errorf("refused with %q, and changed", out.Result)
		}
		workitem.Upsert(before, out.Changed)
		if !proto.Equal(l, before) {
			t.Errorf("put back: %v, was %v", before, l)
		}
		if _, err := proto.Marshal(l); err != nil {
			t.Errorf("cannot be stored: %v", err)
		}
	})
}
