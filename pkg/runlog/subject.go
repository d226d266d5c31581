package runlog

import (
	"crypto/sha256"
	"fmt"
	"hash/fnv"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// Name matches valid namespaces, run ids, executor names and tool names.
var Name = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// Kind is the kind of a subject.
type Kind int

// Kinds of subjects of a run.
const (
	KindStep Kind = iota + 1
	KindJournal
	KindInbox
	KindBlob
	KindJob
	KindKeyedBlob
)

// IsRecord reports whether subjects of the kind belong to the log of a run.
func (k Kind) IsRecord() bool { return k == KindStep || k == KindJournal }

// Address is a parsed subject of a run.
type Address struct {
	Partition int
	Run       Run
	Kind      Kind
	// Executor is the addressee of a step.
	Executor string
	// Digest of a blob, and the number of its chunk or -1.
	Digest string
	Chunk  int
	// Key of a job or of a keyed blob.
	Key string
}

// Valid reports whether both names of r are valid.
func (r Run) Valid() bool { return Name.MatchString(r.Namespace) && Name.MatchString(r.ID) }

// String returns NAMESPACE/RUN.
func (r Run) String() string { return r.Namespace + "/" + r.ID }

// Partition returns the partition of a run among n, from 0: FNV-1a 32 of NAMESPACE/RUN
// modulo n. The result must never change for stored runs.
func Partition(r Run, n int) int {
	if n <= 1 {
		return 0
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(r.String()))
	return int(h.Sum32() % uint32(n)) //nolint:gosec // n is small and positive
}

// HashID returns the 8-byte hash, FNV-1a 64, that snapshots store for the ids of inbox
// items and of answered calls.
func HashID(id string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(id))
	return h.Sum64()
}

func prefix(tree string, partition int, r Run) string {
	return "hm." + tree + "." + strconv.Itoa(partition) + "." + r.Namespace + "." + r.ID + "."
}

// LogFilter returns the filter that matches every record of a run. It is the filter of
// every fence and must be spelled identically everywhere: on a replicated stream the
// server fences only between identical filters.
func LogFilter(partition int, r Run) string { return prefix("run", partition, r) + "log.>" }

// StepSubject returns the subject of the steps of a run to an executor.
func StepSubject(partition int, r Run, executor string) string {
	return prefix("run", partition, r) + "log.step." + executor
}

// JournalSubject returns the subject of the journal of a run.
func JournalSubject(partition int, r Run) string { return prefix("run", partition, r) + "log.journal" }

// InboxSubject returns the subject of the inputs of a run.
func InboxSubject(partition int, r Run) string { return prefix("run", partition, r) + "inbox" }

// BlobSubject returns the subject of a blob of a run, or with chunk >= 0 of one of its
// chunks.
func BlobSubject(partition int, r Run, digest string, chunk int) string {
	s := prefix("blob", partition, r) + digest
	if chunk >= 0 {
		s += "." + strconv.Itoa(chunk)
	}
	return s
}

// ValidKey reports whether a job or a blob can have the key: 1 to 64 characters of
// [a-z0-9-].
func ValidKey(key string) bool {
	for _, c := range []byte(key) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
			return false
		}
	}
	return len(key) >= 1 && len(key) <= 64
}

// JobSubject returns the subject of a job of a run; with the key *, the filter that
// matches all of them. It is not part of the log.
func JobSubject(partition int, r Run, key string) string {
	return prefix("run", partition, r) + "job." + key
}

// CallKey returns the key of the blob with the usage of the nth call for a job, from the second on. Those before
// the last one had a worker that died or stopped.
func CallKey(job string, n uint64) string {
	digest := sha256.Sum256([]byte(job))
	return fmt.Sprintf("call-%x-%d", digest[:16], n)
}

// KeyedBlobSubject returns the subject of the blob of a run that has a key; with the key
// *, the filter that matches all of them.
func KeyedBlobSubject(partition int, r Run, key string) string {
	return prefix("blob", partition, r) + "as." + key
}

// TimerSubject returns the subject on which a timer of a run is set, or with fired the
// one on which it fires.
func TimerSubject(partition int, r Run, parkVersion uint64, fired bool) string {
	s := prefix("timer", partition, r) + strconv.FormatUint(parkVersion, 10)
	if fired {
		s += ".fired"
	}
	return s
}

// ParseFired parses the subject of a fired timer.
func ParseFired(subject string) (r Run, parkVersion uint64, err error) {
	parts := strings.Split(subject, ".")
	if len(parts) != 7 || parts[0] != "hm" || parts[1] != "timer" || parts[6] != "fired" {
		return Run{}, 0, fmt.Errorf("subject %q is not that of a fired timer", subject)
	}
	r = Run{Namespace: parts[3], ID: parts[4]}
	parkVersion, err = strconv.ParseUint(parts[5], 10, 64)
	if err != nil || strconv.FormatUint(parkVersion, 10) != parts[5] || !r.Valid() {
		return Run{}, 0, fmt.Errorf("subject %q is not that of a fired timer", subject)
	}
	return r, parkVersion, nil
}

// LiveFilter returns the filter that matches the republished records of a run: the
// watch feed.
func LiveFilter(partition int, r Run) string { return prefix("live", partition, r) + ">" }

// DeltaSubject returns the subject of the model's text while the model writes it.
func DeltaSubject(r Run) string { return "hm.delta." + r.Namespace + "." + r.ID }

// ControlSubject returns the subject of pokes to the workers of a run.
func ControlSubject(r Run) string { return "hm.control." + r.Namespace + "." + r.ID }

// JobEndSubject returns the subject of the reports that a result is stored for a job.
func JobEndSubject(r Run, key string) string {
	return "hm.jobend." + r.Namespace + "." + r.ID + "." + key
}

// ParseJobEnd parses a subject that JobEndSubject returns.
func ParseJobEnd(subject string) (r Run, key string, err error) {
	parts := strings.Split(subject, ".")
	if len(parts) != 5 || parts[0] != "hm" || parts[1] != "jobend" {
		return Run{}, "", fmt.Errorf("subject %q is not that of the end of a job", subject)
	}
	r = Run{Namespace: parts[2], ID: parts[3]}
	if !r.Valid() || !ValidKey(parts[4]) {
		return Run{}, "", fmt.Errorf("subject %q contains an invalid name", subject)
	}
	return r, parts[4], nil
}

// HookSubject returns the subject of the hook calls that a client of a run answers.
func HookSubject(r Run) string { return "hm.hook." + r.Namespace + "." + r.ID }

// ParseControl parses a control subject.
func ParseControl(subject string) (Run, error) {
	parts := strings.Split(subject, ".")
	if len(parts) != 4 || parts[0] != "hm" || parts[1] != "control" {
		return Run{}, fmt.Errorf("subject %q is not a control subject", subject)
	}
	r := Run{Namespace: parts[2], ID: parts[3]}
	if !r.Valid() {
		return Run{}, fmt.Errorf("subject %q contains an invalid name", subject)
	}
	return r, nil
}

// ParseSubject parses a subject of the RUNS or BLOBS streams.
func ParseSubject(subject string) (Address, error) {
	bad := func(why string) (Address, error) {
		return Address{}, fmt.Errorf("subject %q: %s", subject, why)
	}
	parts := strings.Split(subject, ".")
	if len(parts) < 6 || parts[0] != "hm" {
		return bad("not of a run")
	}
	partition, err := strconv.Atoi(parts[2])
	if err != nil || partition < 0 || strconv.Itoa(partition) != parts[2] {
		return bad("invalid partition")
	}
	a := Address{Partition: partition, Run: Run{Namespace: parts[3], ID: parts[4]}, Chunk: -1}
	if !a.Run.Valid() {
		return bad("invalid name")
	}
	rest := parts[5:]
	switch {
	case parts[1] == "run" && len(rest) == 3 && rest[0] == "log" && rest[1] == "step" && Name.MatchString(rest[2]):
		a.Kind, a.Executor = KindStep, rest[2]
	case parts[1] == "run" && len(rest) == 2 && rest[0] == "log" && rest[1] == "journal":
		a.Kind = KindJournal
	case parts[1] == "run" && len(rest) == 1 && rest[0] == "inbox":
		a.Kind = KindInbox
	case parts[1] == "run" && len(rest) == 2 && rest[0] == "job" && ValidKey(rest[1]):
		a.Kind, a.Key = KindJob, rest[1]
	case parts[1] == "blob" && len(rest) == 2 && rest[0] == "as" && ValidKey(rest[1]):
		a.Kind, a.Key = KindKeyedBlob, rest[1]
	case parts[1] == "blob" && len(rest) <= 2 && digestShape().MatchString(rest[0]):
		a.Kind, a.Digest = KindBlob, rest[0]
		if len(rest) == 2 {
			a.Chunk, err = strconv.Atoi(rest[1])
			if err != nil || a.Chunk < 0 || strconv.Itoa(a.Chunk) != rest[1] {
				return bad("invalid chunk")
			}
		}
	default:
		return bad("unknown shape")
	}
	return a, nil
}

var digestShape = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[0-9a-f]{64}$`) })
