package cli

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// TestPrefixNamesARun: the beginning of an id names its run in each verb, with and without
// the prefix of generated ids, and one that fits two runs is an error of one line.
func TestPrefixNamesARun(t *testing.T) {
	f := serveFake(t)
	f.took = func(r *fakeRun, id string, input proto.Message) {
		if _, ok := input.(*harnessv1.Approval); ok {
			return
		}
		r.accept(id, "cancel")
		r.rest(&harnessv1.HarnessResult{Status: harnessv1.RunStatus_RUN_STATUS_CANCELLED, Reason: &harnessv1.StopReason{Kind: "cancelled"}})
	}
	f.add("r-abcd2345", "default", aSpec()).parked("c1")
	f.add("r-abxy2345", "default", aSpec()).done()
	f.add("r-ab", "default", aSpec()).done()
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
		got := call(t, nil, "", append(test.args, "--server", f.address)...)
		if got.code != test.code || !strings.Contains(got.out+got.err, test.want) || test.code == 1 && strings.Count(got.err, "\n") != 1 {
			t.Errorf("%q: want %q in %+v", test.args, test.want, got)
		}
	}
}

// TestResumeByPrefix: resume and run --continue act on the run that a prefix names.
func TestResumeByPrefix(t *testing.T) {
	f := serveFake(t)
	f.add("r-abcd2345", "default", aSpec()).parked("c1")
	f.took = func(r *fakeRun, id string, _ proto.Message) {
		r.accept(id, "message")
		r.done()
	}
	for _, args := range [][]string{{"resume", "abc"}, {"run", "--continue", "abc", "go"}} {
		if got := call(t, nil, "", append(args, "--server", f.address)...); got.code != 0 || !strings.Contains(got.out, "the answer") {
			t.Errorf("%q: %+v", args, got)
		}
	}
}

func TestGeneratedIDsAreShort(t *testing.T) {
	f := serveFake(t)
	if got := call(t, nil, "", "run", "--server", f.address, "go"); got.code != 0 {
		t.Fatalf("%+v", got)
	}
	if id := f.starts[0].GetRunId(); !generatedID().MatchString(id) {
		t.Errorf("the run is called %q", id)
	}
}

func TestLast(t *testing.T) {
	f := serveFake(t)
	if got := call(t, nil, "", "last", "--server", f.address); got.code != 1 || !strings.Contains(got.err, "harness run GOAL") {
		t.Errorf("%+v", got)
	}
	f.add("a", "default", aSpec()).parked("c1")
	f.add("b", "default", aSpec()).done()
	for want, args := range map[string][]string{"a\n": {"last"}, "b\n": {"last", "--status", "done"}} {
		if got := call(t, nil, "", append(args, "--server", f.address)...); got.code != 0 || got.out != want {
			t.Errorf("%q: %+v", args, got)
		}
	}
	for want, args := range map[string][]string{
		"no run has this status": {"last", "--status", "failed"}, "--status": {"last", "--status", "odd"}, "--namespace": {"last", "--namespace", "*"},
	} {
		if got := call(t, nil, "", append(args, "--server", f.address)...); got.code != 1 || !strings.Contains(got.err, want) {
			t.Errorf("%q: %+v", args, got)
		}
	}
	if got := call(t, nil, "", "last", "--data", t.TempDir()+"/none"); got.code != 1 || !strings.Contains(got.err, "harness run GOAL") {
		t.Errorf("%+v", got)
	}
}

func TestListLimit(t *testing.T) {
	f := serveFake(t)
	for _, id := range []string{"a", "b", "c"} {
		f.add(id, "default", aSpec()).done()
	}
	got := call(t, nil, "", "list", "--server", f.address, "--limit", "2")
	if got.code != 0 || strings.Count(got.out, "\n") != 3 || got.err != "harness: there are older runs; --limit 4 lists more\n" {
		t.Errorf("%+v", got)
	}
	if got := call(t, nil, "", "list", "--server", f.address, "--limit", "3"); got.code != 0 || strings.Count(got.out, "\n") != 4 || got.err != "" {
		t.Errorf("%+v", got)
	}
}

func TestTableWidths(t *testing.T) {
	fixed := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	var runs []*harnessv1.Run
	for _, id := range []string{"r", strings.Repeat("r", 26), strings.Repeat("r", 36)} {
		runs = append(runs, &harnessv1.Run{
			RunId: id, Status: harnessv1.RunStatus_RUN_STATUS_PARKED, Reason: &harnessv1.StopReason{Kind: "budget_exceeded:tool_calls"},
			TurnCount: 1000, MaxTurns: 1000, Model: strings.Repeat("m", 50), Goal: strings.Repeat("g", 50), UpdateTime: timestamppb.New(fixed),
		})
		for width := 80; width < 200; width++ {
			for line := range strings.Lines(newRunTable(runs, (*harnessv1.Run).GetRunId, fixed).text(width)) {
				if len(line)-1 > width {
					t.Errorf("%d columns, id of %d: a line of %d: %s", width, len(id), len(line)-1, line)
				}
				if runs := strings.Fields(line); !strings.HasPrefix(runs[0], "r") && runs[0] != "RUN" {
					t.Errorf("%d columns: %s", width, line)
				}
			}
		}
	}
}
