package inferenceserver

import (
	"context"
	"fmt"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// Bounds of the numbers of jobs.
const (
	// maxNumber is the number of all jobs that follow as many others of their purpose.
	maxNumber = 10_000
	// purposeKey is the length of the digest of a run and a purpose in a key.
	purposeKey = 16
)

// numberOf returns a function that counts the jobs of a purpose in a run: which number a
// job has is stored with the run, so that all workers return the same one, at each
// delivery. Jobs are numbered in the order in which the function is called for them.
// Only scripted models call it.
func (s *Server) numberOf(job *harnessv1.Job) func(context.Context) (uint32, error) {
	purpose := content.Digest(fmt.Appendf(nil, "%d %s", job.GetFirstSequence(), job.GetPurpose()))[:purposeKey]
	return func(ctx context.Context) (uint32, error) {
		for n := uint32(1); n < maxNumber; n++ {
			owner, err := s.ownerOf(ctx, job, fmt.Sprintf("script-%s-%d", purpose, n))
			if err != nil {
				return 0, fmt.Errorf("count the jobs of the purpose %s: %w", job.GetPurpose(), err)
			}
			if owner == job.GetKey() {
				return n, nil
			}
		}
		return maxNumber, nil
	}
}

// ownerOf returns the key of the job that has a number, which is job if it is free.
func (s *Server) ownerOf(ctx context.Context, job *harnessv1.Job, key string) (string, error) {
	log, run := s.cfg.Log, runOf(job)
	owner, err := log.BlobAs(ctx, run, key)
	if err != nil || owner != nil {
		return string(owner), err
	}
	stored, err := log.PutBlobAs(ctx, run, job.GetFirstSequence(), key, []byte(job.GetKey()))
	if err != nil || stored {
		return job.GetKey(), err
	}
	owner, err = log.BlobAs(ctx, run, key)
	return string(owner), err
}
