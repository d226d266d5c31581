package sim

import (
	"cmp"
	"slices"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

// keyedBlob is a blob with a key, of the run whose first record has the sequence first.
type keyedBlob struct {
	first uint64
	data  []byte
}

// Jobs returns the stored jobs of the run, in the order of their creation. They are
// shared and must not be changed.
func (l *Log) Jobs() []*harnessv1.Job {
	var messages []*message
	for _, m := range l.jobs {
		messages = append(messages, m)
	}
	slices.SortFunc(messages, func(a, b *message) int { return cmp.Compare(a.sequence, b.sequence) })
	jobs := make([]*harnessv1.Job, len(messages))
	for i, m := range messages {
		jobs[i] = m.job
	}
	return jobs
}

// BlobAs returns the blob of the run under a key; nil if there is none. It must not be
// changed.
func (l *Log) BlobAs(key string) []byte { return l.keyed[key].data }

// putBlobAs stores a blob unless there is one under its key, and reports whether it
// did. A blob of an earlier run was left by a process that died.
func (s *store) putBlobAs(run runlog.Run, name string, blob keyedBlob) bool {
	l := s.of(run)
	if have, ok := l.keyed[name]; ok && have.first >= blob.first {
		return false
	}
	l.keyed[name], l.first[name] = blob, blob
	return true
}

// overwriteBlobAs is putBlobAs with the fault that the second blob of a key replaces the first
// one.
func (s *store) overwriteBlobAs(run runlog.Run, name string, blob keyedBlob) bool {
	if s.putBlobAs(run, name, blob) {
		return true
	}
	s.of(run).keyed[name] = blob
	return true
}

// removeBlobAs deletes a blob of a run whose first record has a sequence in [from, to].
func (s *store) removeBlobAs(run runlog.Run, name string, from, to uint64) {
	l := s.of(run)
	if blob := l.keyed[name]; blob.first >= from && blob.first <= to {
		delete(l.keyed, name)
	}
}

// createJob stores a job and returns its message; nil if there is one under its key. A
// job of an earlier run was left by a process that died.
func (s *store) createJob(run runlog.Run, job *harnessv1.Job) *message {
	l := s.of(run)
	if have := l.jobs[job.GetKey()]; have != nil && have.job.GetFirstSequence() >= job.GetFirstSequence() {
		return nil
	}
	s.removeJob(run, job.GetKey(), 0, job.GetFirstSequence())
	m := &message{sequence: uint64(len(s.all)) + 1, log: l, job: job}
	m.entry = runlog.Entry{Run: run, Sequence: m.sequence}
	s.all = append(s.all, m)
	l.jobs[job.GetKey()] = m
	return m
}

// removeJob deletes a job of a run whose first record has a sequence in [from, to].
func (s *store) removeJob(run runlog.Run, name string, from, to uint64) {
	l := s.of(run)
	m := l.jobs[name]
	if m == nil || m.job.GetFirstSequence() < from || m.job.GetFirstSequence() > to {
		return
	}
	m.gone = true
	delete(l.jobs, name)
}

// eraseKeyed deletes the jobs and keyed blobs of runs of a name whose first record is at
// or before last.
func (s *store) eraseKeyed(run runlog.Run, last uint64) {
	l := s.of(run)
	for name := range l.jobs {
		s.removeJob(run, name, 0, last)
	}
	for name := range l.keyed {
		s.removeBlobAs(run, name, 0, last)
	}
}

// completed reports whether a job may be acknowledged: its result is stored, or its run
// is gone.
func (m *message) completed() bool {
	first := m.job.GetFirstSequence()
	result, ok := m.log.keyed[m.job.GetKey()]
	return m.gone || ok && result.first == first || len(m.log.records) == 0 || m.log.records[0].sequence != first
}
