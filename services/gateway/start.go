package gateway

import (
	"bytes"
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
)

// Writer is the writer's name in the gateway's records.
const Writer = workflow.Gateway

const alphabet = "abcdefghijklmnopqrstuvwxyz234567"

var encoding = base32.NewEncoding(alphabet).WithPadding(base32.NoPadding)

// RunID returns the id of the run that r requests: the caller's, or derived from its
// request id. Without either, generated is true and the id, such as
// r-20261121-103015-x7k2q, consists of the time and 25 random bits.
func RunID(r *harnessv1.StartRunRequest, now time.Time, random uint64) (id string, generated bool) {
	switch {
	case r.GetRunId() != "":
		return r.GetRunId(), false
	case r.GetRequestId() != "":
		sum := sha256.Sum256([]byte(r.GetRequestId()))
		return "r-" + encoding.EncodeToString(sum[:15]), false
	}
	return "r-" + now.UTC().Format("20060102-150405") + "-" + letters(random, 5), true
}

// InputID returns a generated id for an input without one.
func InputID(random uint64) string { return "in-" + letters(random, 12) }

func letters(random uint64, n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = alphabet[random&31]
		random >>= 5
	}
	return string(b)
}

// Same reports whether two requests are for the same run: whether everything that they
// request is equal, texts by their bytes wherever they are stored.
func Same(run runlog.Run, a, b *harnessv1.RunSpec) bool {
	return bytes.Equal(canonical(run, a), canonical(run, b))
}

// canonical returns a request as bytes: equal for equal requests. The tool services and the least
// level that the gateway has added are no part of a request.
func canonical(run runlog.Run, spec *harnessv1.RunSpec) []byte {
	spec = proto.CloneOf(spec)
	removeServices(spec)
	removeLeast(spec)
	if goal := spec.GetGoal(); goal != nil {
		ref := goal.GetBlob()
		if ref == nil {
			ref = content.Ref([]byte(goal.GetInline()))
		}
		goal.Value = &harnessv1.Content_Blob{Blob: &harnessv1.BlobRef{Digest: ref.GetDigest(), Size: ref.GetSize()}}
	}
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(&harnessv1.StartRunRequest{
		Namespace: run.Namespace, RunId: run.ID, Spec: spec,
	})
	if err != nil {
		panic(fmt.Sprintf("a valid request cannot be encoded: %v", err)) // every message that was decoded can be
	}
	return data
}

// StartRecord returns the first record of a run. spec is valid, and its goal is inline
// or a reference; caller starts the run; tools refers to the tools that the client runs, nil for none. Repair,
// the first executor, fills in the settings that the spec leaves open.
func StartRecord(run runlog.Run, requestID, caller string, spec *harnessv1.RunSpec, tools *harnessv1.Content, now time.Time, writer *harnessv1.Writer) *harnessv1.Record {
	step := runstate.FirstStep(Writer, spec, tools, caller, now)
	step.GetRepairTrigger().RequestId = requestID
	return &harnessv1.Record{
		Namespace:  run.Namespace,
		RunId:      run.ID,
		Version:    1,
		Schema:     runlog.Schema,
		CommitTime: timestamppb.New(now),
		Writer:     writer,
		Body:       &harnessv1.Record_Step{Step: step},
	}
}
