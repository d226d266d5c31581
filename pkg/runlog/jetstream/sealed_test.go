package jetstream

import (
	"fmt"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"google.golang.org/protobuf/proto"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runlog/seal"
)

func approvalOf(call string) *harnessv1.InboxItem {
	return &harnessv1.InboxItem{Id: "approve-" + call, Input: &harnessv1.InboxItem_Approval{Approval: &harnessv1.Approval{CallId: call, Decision: harnessv1.ApprovalDecision_APPROVAL_DECISION_ONCE}}}
}

// TestInputsAreSealed: an input that another log with the keys has stored is sealed. One without a seal, with
// the seal of another, with other content, or copied to another run or place is not, whatever client writes it.
func TestInputsAreSealed(t *testing.T) {
	t.Parallel()
	keys, err := seal.Parse(strings.Repeat("k", 32))
	if err != nil {
		t.Fatal(err)
	}
	e := start(t, EmbeddedConfig{})
	plain := open(t, e, Config{}, Layout{})
	gateway, repair := open(t, e, Config{Seal: keys}, Layout{}), open(t, e, Config{Seal: keys}, Layout{})
	run, other := runlog.Run{Namespace: "default", ID: "r"}, runlog.Run{Namespace: "default", ID: "s"}
	read := func(l *Log, run runlog.Run) (items []*harnessv1.InboxItem) {
		t.Helper()
		last, err := l.LastInbox(t.Context(), run)
		if err != nil {
			t.Fatal(err)
		}
		if items, err = l.Inbox(t.Context(), run, 0, last); err != nil {
			t.Fatal(err)
		}
		return items
	}
	give := func(l *Log, run runlog.Run, item *harnessv1.InboxItem) uint64 {
		t.Helper()
		item.Unsealed = true // a sender decides nothing
		sequence, _, err := l.AppendInbox(t.Context(), run, item, 0)
		if err != nil {
			t.Fatal(err)
		}
		return sequence
	}
	at := give(gateway, run, approvalOf("a"))
	if item := read(repair, run)[0]; item.GetUnsealed() {
		t.Fatal("what the gateway has stored is not sealed")
	}
	genuine, err := plain.at(t.Context(), run, at)
	if err != nil {
		t.Fatal(err)
	}
	sealed := genuine.Header.Get(headerSeal)
	if sealed == "" {
		t.Fatal("there is no seal")
	}
	changed := approvalOf("b")
	content := func(item *harnessv1.InboxItem, prev uint64) []byte {
		item = proto.CloneOf(item)
		item.PrevSequence = prev
		data, err := proto.MarshalOptions{Deterministic: true}.Marshal(item)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	// Each stores a message as a client that knows the bus and no key.
	for name, forge := range map[string]func(run runlog.Run, last uint64) *nats.Msg{
		"without a seal": func(_ runlog.Run, last uint64) *nats.Msg {
			return &nats.Msg{Data: content(changed, last), Header: nats.Header{}}
		},
		"with the seal of another": func(_ runlog.Run, last uint64) *nats.Msg {
			return &nats.Msg{Data: content(changed, last), Header: nats.Header{headerSeal: {sealed}}}
		},
		"with a seal that is none": func(_ runlog.Run, last uint64) *nats.Msg {
			return &nats.Msg{Data: content(changed, last), Header: nats.Header{headerSeal: {"zz", sealed}}}
		},
		"with headers of the server": func(_ runlog.Run, last uint64) *nats.Msg {
			return &nats.Msg{Data: content(changed, last), Header: nats.Header{natsSubject: {"hm.run.0.x.y.inbox"}, natsSequence: {"1"}, natsLast: {"1"}}}
		},
		"copied": func(runlog.Run, uint64) *nats.Msg {
			return &nats.Msg{Data: genuine.Data, Header: nats.Header{headerSeal: {sealed}}}
		},
	} {
		for _, to := range []runlog.Run{run, other} {
			for _, fence := range []bool{true, false} {
				last, err := plain.LastInbox(t.Context(), to)
				if err != nil {
					t.Fatal(err)
				}
				m := forge(to, last)
				m.Subject = runlog.InboxSubject(0, to)
				if fence {
					m.Header.Set(jetstream.ExpectedLastSubjSeqHeader, fmt.Sprint(last))
				}
				ack, err := plain.js.PublishMsg(t.Context(), m)
				if err != nil {
					t.Fatal(err)
				}
				var items []*harnessv1.InboxItem
				err = repair.walkInbox(t.Context(), to, ack.Sequence-1, ack.Sequence, func(item *harnessv1.InboxItem) bool {
					items = append(items, item)
					return true
				})
				if err != nil || len(items) != 1 || !items[0].GetUnsealed() {
					t.Errorf("%s, into %s, fence %v: %v, %v", name, to, fence, items, err)
				}
				if at, err := plain.LastInbox(t.Context(), to); err != nil || at != ack.Sequence {
					t.Errorf("%s, into %s: the newest is at %d, %v", name, to, at, err)
				}
				if err := plain.delete(t.Context(), runsStream(0), ack.Sequence); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	give(plain, run, approvalOf("c"))
	give(gateway, run, approvalOf("d"))
	for i, item := range read(repair, run) {
		if item.GetUnsealed() != (i == 1) {
			t.Errorf("%s: unsealed %v", item.GetId(), item.GetUnsealed())
		}
	}
	for _, item := range read(plain, run) {
		if item.GetUnsealed() {
			t.Errorf("%s is unsealed for a log that requires no seals", item.GetId())
		}
	}
}

// TestItemsThatNoGatewayStoresHideNone: a message in an inbox without a fence, whatever it contains, leaves the items
// before and after it readable, and has no seal.
func TestItemsThatNoGatewayStoresHideNone(t *testing.T) {
	t.Parallel()
	keys, err := seal.Parse(strings.Repeat("k", 32))
	if err != nil {
		t.Fatal(err)
	}
	l := open(t, start(t, EmbeddedConfig{}), Config{Seal: keys}, Layout{})
	for n, junk := range [][]byte{[]byte(`{"type":"io.nats.jetstream.api.v1.stream_info_response"}`), nil, {0x18, 0x01}, {0x0a, 0x01, 'x'}} {
		run := runlog.Run{Namespace: "default", ID: fmt.Sprint("r", n)}
		var last uint64
		for i, item := range []*harnessv1.InboxItem{approvalOf("a"), approvalOf("b"), nil, nil, approvalOf("c")} {
			if item == nil {
				ack, err := l.js.Publish(t.Context(), runlog.InboxSubject(0, run), junk)
				if err != nil {
					t.Fatal(i, err)
				}
				last = ack.Sequence
				continue
			}
			if last, _, err = l.AppendInbox(t.Context(), run, item, 0); err != nil {
				t.Fatal(i, err)
			}
		}
		items, err := l.Inbox(t.Context(), run, 0, last)
		var sealed []string
		for _, item := range items {
			if !item.GetUnsealed() {
				sealed = append(sealed, item.GetId())
			}
		}
		if err != nil || len(items) != 5 || strings.Join(sealed, " ") != "approve-a approve-b approve-c" {
			t.Errorf("%q: %d items, sealed %q, %v", junk, len(items), sealed, err)
		}
	}
}
