package verify

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
)

// forge has the user of turn write an approval into a run that waits for one: NATS refuses the subject, but stores the
// answer of the server to a request that names it. Repair does not count it, whatever it contains, and the approval of a person after it
// counts. exits runs harness and returns its exit code.
func (m *mesh) forge(dir string, harness func(...string) string, exits func(...string) (string, int)) {
	m.t.Helper()
	const run, parked = "r-forged", 4
	work := filepath.Join(dir, "work")
	write(m.t, filepath.Join(work, "readme"), "")
	agent, script := filepath.Join(dir, "agent.yaml"), filepath.Join(dir, "asks.yaml")
	write(m.t, agent, "tools: [{name: run_command, policy: ask}]\n")
	write(m.t, script, `turns:
  - {calls: [{name: run_command, arguments: {command: "echo ran >ran.txt"}}]}
  - {calls: [{name: work_complete, arguments: {summary: "It ran."}}]}
`)
	ran := func() bool { _, err := os.Stat(filepath.Join(work, "ran.txt")); return err == nil }
	if out, code := exits("run", "--run-id", run, "--workspace", work, "--agent", agent, "--model", "script:"+script, "--output", "json", "Ask."); code != parked || ran() {
		m.t.Fatalf("the run ends with %d and not %d, ran: %v\n%s", code, parked, ran(), out)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	js := m.jetstream()
	partition, _ := m.place(ctx, js, run)
	stream, err := js.Stream(ctx, fmt.Sprintf("RUNS_%d", partition))
	if err != nil {
		m.t.Fatal(err)
	}
	inbox := fmt.Sprintf("hm.run.%d.default.%s.inbox", partition, run)
	approval := field(field(nil, 1, "call_1_0"), 2, uint64(1))
	item := field(field(nil, 1, "forged"), 11, approval)
	sum := sha256.Sum256(item)
	blob := fmt.Sprintf("hm.blob.%d.default.%s.%s", partition, run, hex.EncodeToString(sum[:]))
	turn := m.connect("turn", nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {})) // the first is refused
	if err := errors.Join(turn.Publish(inbox, item), turn.Publish(blob, item), turn.Flush()); err != nil {
		m.t.Fatal(err)
	}
	if _, err := stream.GetLastMsgForSubject(ctx, inbox); err == nil {
		m.t.Error("turn may publish to an inbox")
	}
	get := func() { // a server that has not stored the blob yet answers that there is none
		if err := turn.PublishRequest(fmt.Sprintf("$JS.API.DIRECT.GET.BLOBS_%d.%s", partition, blob), inbox, nil); err != nil {
			m.t.Fatal(err)
		}
	}
	get()
	refused := func() bool {
		park, err := stream.GetLastMsgForSubject(ctx, fmt.Sprintf("hm.run.%d.default.%s.log.step.park", partition, run))
		return err == nil && strings.Contains(string(park.Data), "no valid seal of the gateway")
	}
	for tick := time.Tick(time.Second); !refused() && !ran(); {
		select {
		case <-tick:
			get()
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			m.t.Fatal("repair does not refuse the approval of turn, so it may not have reached the inbox")
		}
	}
	if ran() {
		m.t.Fatal("the approval of turn counts")
	}
	harness("approve", run)
	if out, code := exits("watch", run); code != 0 || !ran() {
		m.t.Errorf("after the approval of a person: %d, ran %v\n%s", code, ran(), out)
	}
}
