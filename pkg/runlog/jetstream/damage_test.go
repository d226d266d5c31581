package jetstream

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

// put stores a message that the log would not write.
func put(t *testing.T, js jetstream.JetStream, subject string, data []byte, headers ...string) uint64 {
	t.Helper()
	m := &nats.Msg{Subject: subject, Data: data, Header: nats.Header{}}
	for i := 0; i < len(headers); i += 2 {
		m.Header.Set(headers[i], headers[i+1])
	}
	ack, err := js.PublishMsg(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	return ack.Sequence
}

var damagedRun = runlog.Run{Namespace: "default", ID: "r"}

// TestUnreadableInput checks that inputs that cannot be decoded are returned without an
// input and do not hide others.
func TestUnreadableInput(t *testing.T) {
	t.Parallel()
	e := start(t, EmbeddedConfig{})
	l, js := open(t, e, Config{}, Layout{}), admin(t, e)
	subject := runlog.InboxSubject(0, damagedRun)
	send := func(id string, after uint64) uint64 {
		t.Helper()
		sequence, _, err := l.AppendInbox(t.Context(), damagedRun, &harnessv1.InboxItem{Id: id}, after)
		if err != nil {
			t.Fatal(err)
		}
		return sequence
	}
	first := send("first", 0)
	bad := put(t, js, subject, []byte("\xff\xff"), jetstream.ExpectedLastSubjSeqHeader, strconv.FormatUint(first, 10))
	last := send("last", 0)
	items, err := l.Inbox(t.Context(), damagedRun, 0, last)
	if err != nil || len(items) != 3 {
		t.Fatalf("%d items, %v", len(items), err)
	}
	for i, want := range []struct {
		id             string
		prev, sequence uint64
	}{{"first", 0, first}, {fmt.Sprint("unreadable-", bad), first, bad}, {"last", bad, last}} {
		if it := items[i]; it.GetId() != want.id || it.GetPrevSequence() != want.prev || it.GetSequence() != want.sequence || it.GetInput() != nil {
			t.Errorf("item %d is %v, want %v", i, it, want)
		}
	}
	// An item that names itself as the one before, which no gateway stores, hides none.
	data, err := proto.Marshal(&harnessv1.InboxItem{Id: "circle", PrevSequence: last + 1})
	if err != nil {
		t.Fatal(err)
	}
	circle := put(t, js, subject, data)
	if items, err := l.Inbox(t.Context(), damagedRun, 0, circle); err != nil || len(items) != 4 || items[3].GetPrevSequence() != last {
		t.Errorf("after a circle: %v, %v", items, err)
	}
}

// TestInputAfterMissing checks that an item can be stored if an earlier one is gone, as
// while a run is erased.
func TestInputAfterMissing(t *testing.T) {
	t.Parallel()
	e := start(t, EmbeddedConfig{})
	l, js := open(t, e, Config{}, Layout{}), admin(t, e)
	var sequences []uint64
	for i := range 4 {
		sequence, existed, err := l.AppendInbox(t.Context(), damagedRun, &harnessv1.InboxItem{Id: fmt.Sprint(i)}, 0)
		if err != nil || existed {
			t.Fatalf("item %d existed is %v, %v", i, existed, err)
		}
		if sequences = append(sequences, sequence); i == 2 {
			runs, err := js.Stream(t.Context(), "RUNS_0")
			if err == nil {
				err = runs.DeleteMsg(t.Context(), sequences[1])
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	sequence, existed, err := l.AppendInbox(t.Context(), damagedRun, &harnessv1.InboxItem{Id: "2"}, 0)
	if err != nil || !existed || sequence != sequences[2] {
		t.Errorf("an item that is still there: at %d, existed is %v, %v", sequence, existed, err)
	}
}

// TestUnreadableRecord checks that a record that cannot be decoded is delivered, viewed
// and read with its header, fences other writers, and is never resolved as the writer's
// own.
func TestUnreadableRecord(t *testing.T) {
	t.Parallel()
	e := start(t, EmbeddedConfig{})
	l, js := open(t, e, Config{}, Layout{}), admin(t, e)
	rec := first("r")
	sequence, err := l.Append(t.Context(), rec)
	if err != nil {
		t.Fatal(err)
	}
	subject := runlog.StepSubject(0, damagedRun, "turn")
	newer := put(t, js, subject, []byte("from the future"), headerVersion, "2", headerSchema, fmt.Sprint(runlog.Schema+1), headerCursor, "9")
	want := runlog.Header{Version: 2, Schema: runlog.Schema + 1, InboxCursor: 9}
	check := func(e runlog.Entry, err error) {
		t.Helper()
		if err != nil || e.Sequence != newer || e.Header != want || e.Record != nil || !errors.Is(e.Err, runlog.ErrSchemaTooNew) {
			t.Errorf("%+v, %v", e, err)
		}
	}
	check(l.Read(t.Context(), damagedRun, newer))
	view, err := l.View(t.Context(), damagedRun, newer)
	check(view.Newest, err)
	deliveries(t, l, 2, func(d runlog.Delivery) {
		if d.Entry().Header.Version == 2 {
			check(d.Entry(), nil)
		}
	})
	if _, err := l.Append(t.Context(), after(rec, sequence, 5)); !errors.Is(err, runlog.ErrFenced) {
		t.Errorf("after a record that cannot be read: %v", err)
	}
	if _, err := runlog.Back(t.Context(), l, view.Newest, 0); !errors.Is(err, runlog.ErrSchemaTooNew) {
		t.Errorf("back from it: %v", err)
	}
	for _, headers := range [][]string{nil, {headerVersion, "x", headerSchema, "1", headerCursor, "0"}, {headerVersion, "3", headerSchema, "1", headerCursor, ""}} {
		at := put(t, js, subject, []byte("no headers"), headers...)
		e, err := l.Read(t.Context(), damagedRun, at)
		if err != nil || e.Record != nil {
			t.Fatalf("%+v, %v", e, err)
		}
		oneLine(t, e.Err)
	}
}

func TestDamagedBlob(t *testing.T) {
	t.Parallel()
	e := start(t, EmbeddedConfig{})
	l, js := open(t, e, Config{}, Layout{}), admin(t, e)
	digest := content.Digest([]byte("what it was"))
	for name, c := range map[string]struct {
		run     runlog.Run
		data    string
		headers []string
		says    string
	}{
		"other bytes":      {runlog.Run{Namespace: "a", ID: "1"}, "what it is", nil, "damaged"},
		"parts missing":    {runlog.Run{Namespace: "a", ID: "2"}, "", []string{headerChunks, "2"}, "not found"},
		"number of chunks": {runlog.Run{Namespace: "a", ID: "3"}, "", []string{headerChunks, "many"}, "chunks"},
		"less than none":   {runlog.Run{Namespace: "a", ID: "4"}, "", []string{headerChunks, "-5"}, "damaged"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			put(t, js, runlog.BlobSubject(0, c.run, digest, -1), []byte(c.data), c.headers...)
			_, err := l.Blob(t.Context(), c.run, digest)
			contains(t, err, c.says)
		})
	}
}

// TestServerTakesLess checks that a server that takes only smaller messages is reported
// immediately.
func TestServerTakesLess(t *testing.T) {
	t.Parallel()
	e := start(t, EmbeddedConfig{})
	l := open(t, e, Config{}, Layout{})
	rec := first("r")
	rec.GetStep().Snapshot.GoalPreview = strings.Repeat("x", runlog.MaxRecord-1000)
	if _, err := l.Append(t.Context(), rec); err != nil {
		t.Fatal(err) // the largest record fits into a message of a default server
	}
	msg := &nats.Msg{Subject: "hm.run.0.a.b.log.journal", Data: make([]byte, l.nc.MaxPayload()+1)}
	_, err := l.js.PublishMsg(t.Context(), msg)
	if undecided(err) || !errors.Is(refused("append", err), runlog.ErrTooLarge) {
		t.Errorf("got %v", err)
	}
}

// TestIncompleteBatch checks that a batch with a lost part is not used as a view.
func TestIncompleteBatch(t *testing.T) {
	message := func(sequence, last string) *nats.Msg {
		return &nats.Msg{Header: nats.Header{natsSequence: {sequence}, natsLast: {last}}}
	}
	end := func(last, pending string) *nats.Msg {
		return &nats.Msg{Header: nats.Header{natsStatus: {"204"}, natsLast: {last}, natsPending: {pending}, natsUpTo: {"50"}}}
	}
	for name, c := range map[string]struct {
		answers []*nats.Msg
		want    error
	}{
		"whole":          {[]*nats.Msg{message("3", "0"), message("9", "3"), end("9", "0")}, nil},
		"first lost":     {[]*nats.Msg{message("9", "3"), end("9", "0")}, errIncomplete},
		"middle lost":    {[]*nats.Msg{message("3", "0"), message("12", "9"), end("12", "0")}, errIncomplete},
		"last lost":      {[]*nats.Msg{message("3", "0"), end("9", "0")}, errIncomplete},
		"cut off":        {[]*nats.Msg{message("3", "0"), end("3", "1")}, errIncomplete},
		"nothing there":  {[]*nats.Msg{{Header: nats.Header{natsStatus: {"404"}}}}, errMissing},
		"nobody answers": {[]*nats.Msg{{Header: nats.Header{natsStatus: {"503"}}}}, nats.ErrNoResponders},
	} {
		b := &batch{last: "0"}
		over := false
		for i, m := range c.answers {
			if over {
				t.Errorf("%s: over before answer %d", name, i)
			}
			if over = b.add(m); over {
				break
			}
		}
		if !over || !errors.Is(b.err, c.want) || (c.want == nil && (len(b.messages) != 2 || b.upTo != 50)) {
			t.Errorf("%s: over %v, %v, %d messages", name, over, b.err, len(b.messages))
		}
	}
}

func TestCache(t *testing.T) {
	t.Parallel()
	const size = 1000
	c := newCache(10 * (size + 512))
	entry := func(sequence uint64) runlog.Entry { return runlog.Entry{Run: damagedRun, Sequence: sequence} }
	for i := range uint64(20) {
		c.put(entry(i), 0, size)
		if i >= 5 {
			c.get(0, 5) // the entry is in use
		}
	}
	kept := 0
	for i := range uint64(20) {
		if e, ok := c.get(0, i); ok {
			kept++
			if e.Sequence != i {
				t.Errorf("at %d is %d", i, e.Sequence)
			}
		}
		if _, ok := c.get(1, i); ok {
			t.Errorf("%d is in another partition too", i)
		}
	}
	if _, ok := c.get(0, 5); !ok || kept != 10 || c.records.Used() > c.records.Limit() {
		t.Errorf("kept %d of 10, %d of %d bytes", kept, c.records.Used(), c.records.Limit())
	}
	c.put(entry(100), 0, 100*size) // larger than the limit: it is in use now
	if _, ok := c.get(0, 100); !ok || c.records.Used() != 100*size+512 {
		t.Errorf("%d bytes", c.records.Used())
	}
	var wg sync.WaitGroup
	for w := range uint64(4) {
		wg.Go(func() {
			for i := range uint64(1000) {
				c.put(entry(w*i), int(w%2), size)
				c.get(int(w%2), i)
			}
		})
	}
	wg.Wait()
	if c.records.Used() > c.records.Limit() {
		t.Errorf("%d of %d bytes", c.records.Used(), c.records.Limit())
	}
}
