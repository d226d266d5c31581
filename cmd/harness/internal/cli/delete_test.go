package cli

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"
)

func TestDeleteSeveralRuns(t *testing.T) {
	f := serveFake(t)
	for _, id := range []string{"r-aa", "r-ab", "r-b", "r-c"} {
		f.add(id, "default", aSpec()).done()
	}
	f.add("working", "default", aSpec())
	if got := call(t, nil, "", "delete", "r-b", "r-a", "--server", f.address); got.code != 1 || got.out != "" || !strings.Contains(got.err, "of 2 ids") || f.runs["r-b"].deleted {
		t.Errorf("%+v", got)
	}
	got := call(t, nil, "", "delete", "r-b", "work", "c", "--server", f.address)
	want := saidByProgram{1, "r-b deleted\nr-c deleted\n", "harness: working: the run works; cancel it first\nharness: 1 of 3 runs were not deleted\n"}
	if got != want {
		t.Errorf("%+v", got)
	}
}

func TestDeleteOlderThan(t *testing.T) {
	f := serveFake(t)
	for id, days := range map[string]int{"old": 31, "young": 29, "parked": 40, "working": 50} {
		r := f.add(id, "default", aSpec())
		switch id {
		case "parked":
			r.parked("c1")
		case "working":
		default:
			r.done()
		}
		r.run.UpdateTime = timestamppb.New(time.Now().AddDate(0, 0, -days))
	}
	if got := call(t, nil, "", "delete", "--older-than", "30d", "--server", f.address); got.code != 0 || got.out != "old deleted\n" {
		t.Errorf("%+v", got)
	}
	if got := call(t, nil, "", "delete", "--older-than", "2000h", "--server", f.address); got.code != 0 || got.out != "" || !strings.Contains(got.err, "no run ended longer than 2000h ago") {
		t.Errorf("%+v", got)
	}
	for args, want := range map[string]string{
		"--older-than 0d": "--older-than", "--older-than soon": "such as 12h or 30d", "--older-than 1d old": "--older-than and RUN", "": "missing RUN",
	} {
		got := call(t, nil, "", append([]string{"delete", "--server", f.address}, strings.Fields(args)...)...)
		if got.code != 1 || strings.Count(got.err, "\n") != 1 || !strings.Contains(got.err, want) {
			t.Errorf("%q: %+v", args, got)
		}
	}
}
