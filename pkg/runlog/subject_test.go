package runlog

import (
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/pkg/content"

	"pgregory.net/rapid"
)

var digestOfNothing = content.Digest(nil)

// build returns the subject of an address.
func build(a Address) string {
	switch a.Kind {
	case KindStep:
		return StepSubject(a.Partition, a.Run, a.Executor)
	case KindJournal:
		return JournalSubject(a.Partition, a.Run)
	case KindInbox:
		return InboxSubject(a.Partition, a.Run)
	case KindJob:
		return JobSubject(a.Partition, a.Run, a.Key)
	case KindKeyedBlob:
		return KeyedBlobSubject(a.Partition, a.Run, a.Key)
	default:
		return BlobSubject(a.Partition, a.Run, a.Digest, a.Chunk)
	}
}

func drawRun(t *rapid.T) Run {
	name := rapid.StringMatching(`[A-Za-z0-9_-]{1,64}`)
	return Run{Namespace: name.Draw(t, "namespace"), ID: name.Draw(t, "run")}
}

func TestSubjectsRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := Address{Partition: rapid.IntRange(0, 1000).Draw(t, "partition"), Run: drawRun(t), Chunk: -1}
		want.Kind = rapid.SampledFrom([]Kind{KindStep, KindJournal, KindInbox, KindBlob, KindJob, KindKeyedBlob}).Draw(t, "kind")
		switch want.Kind {
		case KindStep:
			want.Executor = rapid.StringMatching(`[A-Za-z0-9_-]{1,64}`).Draw(t, "executor")
		case KindJob, KindKeyedBlob:
			want.Key = rapid.StringMatching(`[a-z0-9-]{1,64}`).Draw(t, "key")
		case KindBlob:
			want.Digest = content.Digest([]byte(rapid.String().Draw(t, "data")))
			want.Chunk = rapid.IntRange(-1, 5000).Draw(t, "chunk")
		}
		subject := build(want)
		got, err := ParseSubject(subject)
		if err != nil || got != want {
			t.Fatalf("%s: got %+v (%v), want %+v", subject, got, err, want)
		}
		logged := want.Kind.IsRecord()
		filter := strings.TrimSuffix(LogFilter(want.Partition, want.Run), ">")
		if strings.HasPrefix(subject, filter) != logged {
			t.Fatalf("%s and the filter %s>", subject, filter)
		}
		if (want.Kind == KindStep || want.Kind == KindJournal) != logged {
			t.Fatalf("kind %d belongs to the log: %v", want.Kind, logged)
		}
	})
}

func TestTimersRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		run, version := drawRun(t), rapid.Uint64().Draw(t, "version")
		r, v, err := ParseFired(TimerSubject(3, run, version, true))
		if err != nil || r != run || v != version {
			t.Fatalf("got %v %d (%v), want %v %d", r, v, err, run, version)
		}
		if _, _, err := ParseFired(TimerSubject(3, run, version, false)); err == nil {
			t.Fatal("a timer that was set has fired")
		}
		r, err = ParseControl(ControlSubject(run))
		if err != nil || r != run {
			t.Fatalf("got %v (%v), want %v", r, err, run)
		}
		key := rapid.StringMatching(`[a-z0-9-]{1,64}`).Draw(t, "key")
		r, k, err := ParseJobEnd(JobEndSubject(run, key))
		if err != nil || r != run || k != key {
			t.Fatalf("got %v %s (%v), want %v %s", r, k, err, run, key)
		}
		if _, err := ParseControl(JobEndSubject(run, key)); err == nil {
			t.Fatal("the end of a job was taken for a poke")
		}
	})
}

// TestPartitionIsFixed checks that the partition of a run never changes. The figures
// are from an independent implementation of FNV-1a.
func TestPartitionIsFixed(t *testing.T) {
	for id, want := range map[string]int{"r1": 0, "r2": 2, "run-with-a-long-name_7": 5, "x": 1} {
		if got := Partition(Run{"default", id}, 7); got != want {
			t.Errorf("run %s is in partition %d of 7, was in %d", id, got, want)
		}
	}
	if got := HashID("message-1"); got != 0xf071ea3c14cb82ce {
		t.Errorf("the id's hash is %#x", got)
	}
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(-1, 64).Draw(t, "n")
		if p := Partition(drawRun(t), n); p < 0 || p >= max(n, 1) {
			t.Fatalf("partition %d of %d", p, n)
		}
	})
}

func TestSubjectsRefused(t *testing.T) {
	for _, subject := range []string{
		"", "hm", "hm.run.0.ns.r", "hm.run.0.ns.r.", "hm.run.0.ns.r.log", "hm.run.0.ns.r.log.", "hm.run.0.ns.r.log.step",
		"hm.run.0.ns.r.log.step.", "hm.run.0.ns.r.log.step.a.b", "hm.run.0.ns.r.log.step.*", "hm.run.0.ns.r.log.>",
		"hm.run.00.ns.r.inbox", "hm.run.-1.ns.r.inbox", "hm.run.+1.ns.r.inbox", "hm.run.x.ns.r.inbox",
		"hm.run.0..r.inbox", "hm.run.0.ns.*.inbox", "hm.run.0.n s.r.inbox", "hm.run.0.ns.r.inbox.x", "xx.run.0.ns.r.inbox",
		"hm.run.0." + strings.Repeat("n", 65) + ".r.inbox", "hm.live.0.ns.r.inbox",
		"hm.blob.0.ns.r.abc", "hm.blob.0.ns.r." + strings.ToUpper(digestOfNothing), "hm.blob.0.ns.r." + digestOfNothing + ".01",
		"hm.blob.0.ns.r." + digestOfNothing + ".-1", "hm.blob.0.ns.r." + digestOfNothing + ".1.2", "hm.run.0.ns.r." + digestOfNothing,
		"hm.run.0.ns.r.job", "hm.run.0.ns.r.job.", "hm.run.0.ns.r.job.*", "hm.run.0.ns.r.job.A", "hm.run.0.ns.r.job.a_b", "hm.run.0.ns.r.job.a.b",
		"hm.run.0.ns.r.as.a", "hm.run.0.ns.r.job." + strings.Repeat("k", 65), "hm.blob.0.ns.r.as", "hm.blob.0.ns.r.as.", "hm.blob.0.ns.r.as.*",
		"hm.blob.0.ns.r.as.a.1", "hm.blob.0.ns.r.job.a", "hm.blob.0.ns.r.as." + strings.Repeat("k", 65),
	} {
		if a, err := ParseSubject(subject); err == nil {
			t.Errorf("%q was taken for %+v", subject, a)
		}
	}
}

func TestJobEndsRefused(t *testing.T) {
	for _, subject := range []string{
		"", "hm.jobend.ns.r", "hm.jobend.ns.r.", "hm.jobend.ns.r.k.l", "hm.jobend.ns.r.K", "hm.jobend.*.r.k", "xx.jobend.ns.r.k", "hm.control.ns.r.k",
		"hm.jobend.ns.r." + strings.Repeat("k", 65),
	} {
		if r, key, err := ParseJobEnd(subject); err == nil {
			t.Errorf("%q was taken for the end of job %s of %v", subject, key, r)
		}
	}
}

func FuzzParseSubject(f *testing.F) {
	r := Run{"ns", "r"}
	for _, s := range []string{
		StepSubject(0, r, "turn"), JournalSubject(12, r), InboxSubject(3, r), BlobSubject(1, r, digestOfNothing, -1),
		BlobSubject(1, r, digestOfNothing, 7), TimerSubject(0, r, 7, true), ControlSubject(r), "hm.run.0.ns.r.log.>",
		JobSubject(2, r, "summary-1"), KeyedBlobSubject(2, r, "summary-1"), JobEndSubject(r, "summary-1"), "hm.run.0.ns.r.job.*", "hm.blob.0.ns.r.as.>",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, subject string) {
		if a, err := ParseSubject(subject); err == nil && (build(a) != subject || !a.Run.Valid()) {
			t.Errorf("%q was taken for %+v, which is %q", subject, a, build(a))
		}
		if r, version, err := ParseFired(subject); err == nil {
			partition := strings.Split(subject, ".")[2]
			if got := TimerSubject(0, r, version, true); strings.Replace(got, ".0.", "."+partition+".", 1) != subject {
				t.Errorf("%q was taken for %q", subject, got)
			}
		}
		if r, err := ParseControl(subject); err == nil && ControlSubject(r) != subject {
			t.Errorf("%q was taken for the control subject of %v", subject, r)
		}
		if r, key, err := ParseJobEnd(subject); err == nil && JobEndSubject(r, key) != subject {
			t.Errorf("%q was taken for the end of job %s of %v", subject, key, r)
		}
	})
}
