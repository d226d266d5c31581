package verify

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"google.golang.org/protobuf/encoding/protowire"
)

// job gives the inference worker a job of a run, as compaction does, and waits for its
// result: so the worker sends NATS every kind of request that it makes.
func (m *mesh) job(run, dir string) {
	m.t.Helper()
	script := filepath.Join(dir, "jobs.yaml")
	write(m.t, script, "jobs: {summarize: [{text: It was written.}]}\n")
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	js := m.jetstream()
	partition, first := m.place(ctx, js, run)

	message := field(field(nil, 2, uint64(2)), 4, field(nil, 1, "Sum up.")) // a message of the user
	request := field(nil, 2, message)
	sum := sha256.Sum256(request)
	digest := hex.EncodeToString(sum[:])
	var job []byte
	for n, value := range []any{"default", run, first, "k1", "summarize", "script:" + script, field(nil, 1, digest)} {
		job = field(job, protowire.Number(n+1), value)
	}
	blobs := fmt.Sprintf("hm.blob.%d.default.%s.", partition, run)
	for subject, data := range map[string][]byte{blobs + digest: request, fmt.Sprintf("hm.run.%d.default.%s.job.k1", partition, run): job} {
		msg := &nats.Msg{Subject: subject, Data: data, Header: nats.Header{"Hm-First": {fmt.Sprint(first)}}}
		if _, err := js.PublishMsg(ctx, msg); err != nil {
			m.t.Fatal(err)
		}
	}
	stream, err := js.Stream(ctx, fmt.Sprintf("BLOBS_%d", partition))
	if err != nil {
		m.t.Fatal(err)
	}
	for {
		result, err := stream.GetLastMsgForSubject(ctx, blobs+"as.k1")
		if err == nil {
			if !strings.Contains(string(result.Data), "It was written.") {
				m.t.Errorf("the result of the job is %q", result.Data)
			}
			return
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			m.t.Fatalf("the job has no result: %v", err)
		}
	}
}

// place returns the partition of a run and the sequence of its first record.
func (m *mesh) place(ctx context.Context, js jetstream.JetStream, run string) (partition int, first uint64) {
	m.t.Helper()
	for ; ; partition++ {
		stream, err := js.Stream(ctx, fmt.Sprintf("RUNS_%d", partition))
		if err != nil {
			m.t.Fatalf("no partition has the run %s: %v", run, err)
		}
		record, err := stream.GetMsg(ctx, 1, jetstream.WithGetMsgSubject(fmt.Sprintf("hm.run.%d.default.%s.log.>", partition, run)))
		if err == nil {
			return partition, record.Sequence
		}
	}
}

// field appends a field to a protobuf message: these tests are a module without the
// generated types.
func field(to []byte, number protowire.Number, value any) []byte {
	switch v := value.(type) {
	case uint64:
		return protowire.AppendVarint(protowire.AppendTag(to, number, protowire.VarintType), v)
	case string:
		return protowire.AppendString(protowire.AppendTag(to, number, protowire.BytesType), v)
	case []byte:
		return protowire.AppendBytes(protowire.AppendTag(to, number, protowire.BytesType), v)
	}
	panic("a type of field that these tests do not write")
}
