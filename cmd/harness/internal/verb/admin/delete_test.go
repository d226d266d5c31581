package admin_test

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/harnesstest"
)

func TestDelete(t *testing.T) {
	t.Parallel()
	f := harnesstest.ServeGateway(t)
	f.Add("r", "default", harnesstest.ASpec()).Done()
	f.Add("busy", "default", harnesstest.ASpec())
	for _, test := range []struct {
		run  string
		code int
		out  string
		err  string
	}{
		{"r", 0, "r deleted\n", ""},
		{"r", 0, "r deleted before\n", ""},
		{"busy", 1, "", "harness: the run works; cancel it first\n"},
		{"none", 1, "", "harness: run default/none not found\n"},
	} {
		if got := harnesstest.Call(t, nil, "", "delete", test.run, "--server", f.Address); got.Code != test.code || got.Out != test.out || got.Err != test.err {
			t.Errorf("%s: %+v", test.run, got)
		}
	}
}

// TestDeleteTakesTheHandlesOfOtherVerbs: last, and the beginning of an id.
func TestDeleteTakesTheHandlesOfOtherVerbs(t *testing.T) {
	t.Parallel()
	f := harnesstest.ServeGateway(t)
	f.Add("r-aa", "default", harnesstest.ASpec()).Done()
	newest := harnesstest.Call(t, nil, "", "last", "--server", f.Address).Out
	if got := harnesstest.Call(t, nil, "", "delete", "last", "--server", f.Address); got.Code != 0 || newest == "" || got.Out != strings.TrimSpace(newest)+" deleted\n" {
		t.Errorf("%q: %+v", newest, got)
	}
}

func TestDeleteSeveralRuns(t *testing.T) {
	t.Parallel()
	f := harnesstest.ServeGateway(t)
	for _, id := range []string{"r-aa", "r-ab", "r-b", "r-c"} {
		f.Add(id, "default", harnesstest.ASpec()).Done()
	}
	f.Add("working", "default", harnesstest.ASpec())
	if got := harnesstest.Call(t, nil, "", "delete", "r-b", "r-a", "--server", f.Address); got.Code != 1 || got.Out != "" || !strings.Contains(got.Err, "of 2 ids") || f.Runs["r-b"].Deleted {
		t.Errorf("%+v", got)
	}
	got := harnesstest.Call(t, nil, "", "delete", "r-b", "work", "c", "--server", f.Address)
	want := harnesstest.Outcome{Code: 1, Out: "r-b deleted\nr-c deleted\n", Err: "harness: working: the run works; cancel it first\nharness: 1 of 3 runs were not deleted\n"}
	if got != want {
		t.Errorf("%+v", got)
	}
}

func TestDeleteOlderThan(t *testing.T) {
	t.Parallel()
	f := harnesstest.ServeGateway(t)
	for id, days := range map[string]int{"old": 31, "young": 29, "parked": 40, "working": 50} {
		r := f.Add(id, "default", harnesstest.ASpec())
		switch id {
		case "parked":
			r.Parked("c1")
		case "working":
		default:
			r.Done()
		}
		r.Run.UpdateTime = timestamppb.New(time.Now().AddDate(0, 0, -days))
	}
	if got := harnesstest.Call(t, nil, "", "delete", "--older-than", "30d", "--server", f.Address); got.Code != 0 || got.Out != "old deleted\n" {
		t.Errorf("%+v", got)
	}
	if got := harnesstest.Call(t, nil, "", "delete", "--older-than", "2000h", "--server", f.Address); got.Code != 0 || got.Out != "" || !strings.Contains(got.Err, "no run ended longer than 2000h ago") {
		t.Errorf("%+v", got)
	}
	for args, want := range map[string]string{
		"--older-than 0d": "--older-than", "--older-than soon": "such as 12h or 30d", "--older-than 1d old": "--older-than and RUN", "": "missing RUN",
	} {
		got := harnesstest.Call(t, nil, "", append([]string{"delete", "--server", f.Address}, strings.Fields(args)...)...)
		if got.Code != 1 || strings.Count(got.Err, "\n") != 1 || !strings.Contains(got.Err, want) {
			t.Errorf("%q: %+v", args, got)
		}
	}
}
