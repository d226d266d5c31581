package show_test

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/harnesstest"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// TestPrefixNamesARun: the beginning of an id names its run in each verb, with and without
// the prefix of generated ids, and one that fits two runs is an error of one line.
func TestPrefixNamesARun(t *testing.T) {
	t.Parallel()
	f := harnesstest.ServeGateway(t)
	f.Took = func(r *harnesstest.Run, id string, input proto.Message) {
		if _, ok := input.(*harnessv1.Approval); ok {
			return
		}
		r.Accept(id, "cancel")
		r.Rest(&harnessv1.HarnessResult{Status: harnessv1.RunStatus_RUN_STATUS_CANCELLED, Reason: &harnessv1.StopReason{Kind: "cancelled"}})
	}
	f.Add("r-abcd2345", "default", harnesstest.ASpec()).Parked("c1")
	f.Add("r-abxy2345", "default", harnesstest.ASpec()).Done()
	f.Add("r-ab", "default", harnesstest.ASpec()).Done()
	for _, test := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"show", "r-abc"}, 0, "run         default/r-abcd2345\n"},
		{[]string{"show", "abx"}, 0, "run         default/r-abxy2345\n"},
		{[]string{"show", "r-ab"}, 0, "run         default/r-ab\n"}, // an id is never a prefix
		{[]string{"watch", "abx"}, 0, "the answer"},
		{[]string{"delete", "abx"}, 0, "r-abxy2345 deleted"},
		{[]string{"show", "last"}, 0, "run         default/r-ab\n"}, // the first of the list
		{[]string{"show", "r-a"}, 1, `harness: RUN: "r-a" is the beginning of 3 ids (r-ab, r-abcd2345, r-abxy2345): add letters`},
		{[]string{"show", "ab"}, 1, "of 3 ids"},
		{[]string{"resume", "r-a"}, 1, "of 3 ids"},
		{[]string{"cancel", "r-a"}, 1, "of 3 ids"},
		{[]string{"approve", "r-a"}, 1, "of 3 ids"},
		{[]string{"run", "--continue", "r-a", "go"}, 1, "of 3 ids"},
		{[]string{"show", "r-z"}, 1, "run default/r-z not found"},
		{[]string{"approve", "abc"}, 0, "harness watch r-abcd2345"},
		{[]string{"cancel", "abc"}, 0, "r-abcd2345 CANCELLED"},
	} {
		got := harnesstest.Call(t, nil, "", append(test.args, "--server", f.Address)...)
		if got.Code != test.code || !strings.Contains(got.Out+got.Err, test.want) || test.code == 1 && strings.Count(got.Err, "\n") != 1 {
			t.Errorf("%q: want %q in %+v", test.args, test.want, got)
		}
	}
}

func TestLast(t *testing.T) {
	t.Parallel()
	f := harnesstest.ServeGateway(t)
	if got := harnesstest.Call(t, nil, "", "last", "--server", f.Address); got.Code != 1 || !strings.Contains(got.Err, "harness run GOAL") {
		t.Errorf("%+v", got)
	}
	f.Add("a", "default", harnesstest.ASpec()).Parked("c1")
	f.Add("b", "default", harnesstest.ASpec()).Done()
	for want, args := range map[string][]string{"a\n": {"last"}, "b\n": {"last", "--status", "done"}} {
		if got := harnesstest.Call(t, nil, "", append(args, "--server", f.Address)...); got.Code != 0 || got.Out != want {
			t.Errorf("%q: %+v", args, got)
		}
	}
	for want, args := range map[string][]string{
		"no run has this status": {"last", "--status", "failed"}, "--status": {"last", "--status", "odd"}, "--namespace": {"last", "--namespace", "*"},
	} {
		if got := harnesstest.Call(t, nil, "", append(args, "--server", f.Address)...); got.Code != 1 || !strings.Contains(got.Err, want) {
			t.Errorf("%q: %+v", args, got)
		}
	}
	if got := harnesstest.Call(t, nil, "", "last", "--data", t.TempDir()+"/none"); got.Code != 1 || !strings.Contains(got.Err, "harness run GOAL") {
		t.Errorf("%+v", got)
	}
}

func TestListLimit(t *testing.T) {
	t.Parallel()
	f := harnesstest.ServeGateway(t)
	for _, id := range []string{"a", "b", "c"} {
		f.Add(id, "default", harnesstest.ASpec()).Done()
	}
	got := harnesstest.Call(t, nil, "", "list", "--server", f.Address, "--limit", "2")
	if got.Code != 0 || strings.Count(got.Out, "\n") != 3 || got.Err != "harness: there are older runs; --limit 4 lists more\n" {
		t.Errorf("%+v", got)
	}
	if got := harnesstest.Call(t, nil, "", "list", "--server", f.Address, "--limit", "3"); got.Code != 0 || strings.Count(got.Out, "\n") != 4 || got.Err != "" {
		t.Errorf("%+v", got)
	}
}
