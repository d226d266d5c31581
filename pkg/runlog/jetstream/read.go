package jetstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"google.golang.org/protobuf/proto"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/telemetry/runtrace"
)

// lagPause is the wait before another request after the answer of a replica that lags.
const lagPause = 2 * time.Millisecond

// Headers of the answers to direct gets.
const (
	natsSubject  = "Nats-Subject"
	natsSequence = "Nats-Sequence"
	natsUpTo     = "Nats-UpTo-Sequence"
	natsLast     = "Nats-Last-Sequence"
	natsPending  = "Nats-Num-Pending"
	natsStatus   = "Status"
)

var errMissing = errors.New("no message")

func directSubject(stream string) string { return "$JS.API.DIRECT.GET." + stream }

func runsStream(p int) string   { return "RUNS_" + strconv.Itoa(p) }
func blobsStream(p int) string  { return "BLOBS_" + strconv.Itoa(p) }
func timersStream(p int) string { return "TIMERS_" + strconv.Itoa(p) }

// get requests one message. It returns errMissing if the replica that answers has none.
func (l *Log) get(ctx context.Context, subject string, request []byte) (*nats.Msg, error) {
	var m *nats.Msg
	err := l.present(func() error {
		return l.retry(ctx, func(ctx context.Context) (err error) {
			m, err = l.request(ctx, &nats.Msg{Subject: subject, Data: request})
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	switch m.Header.Get(natsStatus) {
	case "":
		return m, nil
	case "404":
		return nil, errMissing
	default:
		return nil, fmt.Errorf("direct get: %s %s", m.Header.Get(natsStatus), m.Header.Get("Description"))
	}
}

// present reads until the connection was the same before and after: an answer that was received
// through an earlier one may be of a history that the bus has lost.
func (l *Log) present(read func() error) error {
	for {
		connection := l.reconnects()
		if err := read(); err != nil || l.reconnects() == connection {
			return err
		}
	}
}

// retry makes a request that may be repeated. One try uses only a part of the time, so
// that a request that was lost with a server reaches another one.
func (l *Log) retry(ctx context.Context, try func(context.Context) error) error {
	for {
		bounded, cancel := context.WithTimeout(ctx, l.timeout/tries)
		err := try(bounded)
		cancel()
		if errors.Is(err, nats.ErrReconnectBufExceeded) && l.established(ctx) == nil {
			continue
		}
		lost := errors.Is(err, context.DeadlineExceeded) || errors.Is(err, nats.ErrNoResponders) || errors.Is(err, nats.ErrTimeout)
		if err == nil || !lost || !pause(ctx, retryPause) {
			return err
		}
	}
}

// Read returns the record with the given sequence.
func (l *Log) Read(ctx context.Context, run runlog.Run, sequence uint64) (runlog.Entry, error) {
	p := l.partition(run)
	if e, ok := l.cache.get(p, sequence); ok && e.Run == run {
		return e, nil
	}
	ctx, cancel := l.bounded(ctx)
	defer cancel()
	m, err := l.at(ctx, run, sequence)
	if err != nil {
		return runlog.Entry{}, err
	}
	e, kind, err := l.decode(m)
	if err != nil || e.Run != run || !kind.IsRecord() {
		return runlog.Entry{}, fmt.Errorf("sequence %d is not a record of %s: %w", sequence, run, runlog.ErrNotFound)
	}
	return e, nil
}

// at returns the message with the given sequence in the partition of run, which may
// belong to another run. It retries until a replica has the message or the message is
// known to be deleted.
func (l *Log) at(ctx context.Context, run runlog.Run, sequence uint64) (*nats.Msg, error) {
	p := l.partition(run)
	missing := fmt.Errorf("sequence %d of %s: %w", sequence, run, runlog.ErrNotFound)
	if sequence == 0 {
		return nil, missing
	}
	request := []byte(`{"seq":` + strconv.FormatUint(sequence, 10) + `}`)
	for wait := lagPause; ; wait = min(2*wait, 50*lagPause) {
		m, err := l.get(ctx, directSubject(runsStream(p)), request)
		if err == nil {
			return m, nil
		}
		if !errors.Is(err, errMissing) {
			return nil, unavailable("read "+run.String(), err)
		}
		// Either this replica lags, or the message was deleted with its run.
		if gone, gerr := l.deleted(ctx, p, sequence); gerr == nil && gone {
			return nil, missing
		}
		l.counts.stale.Add(1)
		if !pause(ctx, wait) {
			return nil, unavailable("read "+run.String(), err)
		}
	}
}

// deleted reports whether the stream's leader is past sequence and does not have it.
func (l *Log) deleted(ctx context.Context, p int, sequence uint64) (bool, error) {
	// Between two leaders there is no answer, but the replicas may answer meanwhile.
	ctx, cancel := context.WithTimeout(ctx, l.timeout/(3*tries))
	defer cancel()
	stream, err := l.js.Stream(ctx, runsStream(p))
	if err != nil {
		return false, err
	}
	info := stream.CachedInfo()
	if info.Config.Replicas > 1 && (info.Cluster == nil || info.Cluster.Leader == "") {
		return false, nil // a replica without a leader has answered and may lag
	}
	if info.State.LastSeq < sequence {
		return true, nil
	}
	if info.Config.Replicas == 1 || info.State.FirstSeq > sequence {
		return true, nil
	}
	// The first message from sequence on: the same answer shows how far the server is.
	next, err := l.following(ctx, runsStream(p), ">", sequence)
	return err == nil && next != sequence, err
}

func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

// decode returns the entry of a stored record from a direct get or the feed.
func (l *Log) decode(m *nats.Msg) (runlog.Entry, runlog.Kind, error) {
	subject := ofServer(m.Header, natsSubject)
	address, err := runlog.ParseSubject(subject)
	if err != nil {
		return runlog.Entry{}, 0, err
	}
	sequence, err := strconv.ParseUint(ofServer(m.Header, natsSequence), 10, 64)
	if err != nil {
		return runlog.Entry{}, 0, fmt.Errorf("message without a sequence on %s", subject)
	}
	l.saw(address.Partition, sequence, subject, m.Data)
	return l.entry(address, sequence, m.Header, m.Data), address.Kind, nil
}

// entry returns the entry of a stored message. A cached record is not decoded again:
// stored records never change.
func (l *Log) entry(a runlog.Address, sequence uint64, header nats.Header, data []byte) runlog.Entry {
	e := l.glance(a, sequence, header, data)
	if e.Record != nil && l.verified(l.histories[a.Partition]) {
		l.cache.put(e, a.Partition, len(data))
	}
	return e
}

// glance is entry without caching, for a record that will hardly be read again.
func (l *Log) glance(a runlog.Address, sequence uint64, header nats.Header, data []byte) runlog.Entry {
	if e, ok := l.cache.get(a.Partition, sequence); ok && e.Run == a.Run {
		return e
	}
	e := runlog.Entry{Run: a.Run, Sequence: sequence}
	if !a.Kind.IsRecord() {
		return e
	}
	if e.Header, e.Err = parseHeader(header); e.Err == nil {
		e.Record, e.Err = runlog.Decode(data, e.Header)
	}
	return e
}

func parseHeader(h nats.Header) (runlog.Header, error) {
	version, err1 := strconv.ParseUint(h.Get(headerVersion), 10, 64)
	schema, err2 := strconv.ParseUint(h.Get(headerSchema), 10, 32)
	cursor, err3 := strconv.ParseUint(h.Get(headerCursor), 10, 64)
	for _, err := range []error{err1, err2, err3} {
		if err != nil {
			return runlog.Header{}, fmt.Errorf("headers of a record: %w", err)
		}
	}
	return runlog.Header{Version: version, Schema: uint32(schema), InboxCursor: cursor, Traceparent: single(h[runtrace.Header])}, nil
}

// itemBefore returns the sequence of the newest item in (after, sequence) of an inbox; after if there is none.
// It visits all of them.
func (l *Log) itemBefore(ctx context.Context, run runlog.Run, after, sequence uint64) (uint64, error) {
	p := l.partition(run)
	for before := after; ; {
		next, err := l.following(ctx, runsStream(p), runlog.InboxSubject(p, run), before+1)
		if err != nil {
			return 0, unavailable("inbox of "+run.String(), err)
		}
		if next == 0 || next >= sequence {
			return before, nil
		}
		before = next
	}
}

// ofServer returns a header that the server has added to a message that it sends. It adds it at the end: the
// message may have been stored with the same header, as the copy of another one.
func ofServer(h nats.Header, key string) string {
	values := h[key]
	if len(values) == 0 {
		return ""
	}
	return values[len(values)-1]
}

func single(values []string) string {
	if len(values) == 0 {
		return ""
	}
	return values[0]
}

// View reads the newest message of every subject of a run in one batch.
func (l *Log) View(ctx context.Context, run runlog.Run, contains uint64) (runlog.View, error) {
	messages, err := l.newestOf(ctx, run, contains, 0)
	if err != nil {
		return runlog.View{}, err
	}
	return l.viewOf(run, messages)
}

// Newer requests what View does, without the messages up to sequence.
func (l *Log) Newer(ctx context.Context, run runlog.Run, sequence uint64) (bool, error) {
	messages, err := l.newestOf(ctx, run, sequence, sequence+1)
	if err != nil {
		return false, err
	}
	return len(messages) > 0, nil
}

// newestOf requests the newest messages of a run that have a sequence of at least from,
// one of each subject. The answer counts only if the replica's last sequence is at least
// contains.
func (l *Log) newestOf(ctx context.Context, run runlog.Run, contains, from uint64) (messages []*nats.Msg, err error) {
	ctx, cancel := l.bounded(ctx)
	defer cancel()
	p := l.partition(run)
	request, err := json.Marshal(struct {
		Subjects []string `json:"multi_last"`
		From     uint64   `json:"seq,omitempty"`
	}{[]string{runlog.InboxSubject(p, run), runlog.LogFilter(p, run)}, from})
	if err != nil {
		return nil, err
	}
	epoch := l.histories[p].epoch.Load()
	for began := time.Now(); ; {
		var upTo uint64
		err := l.present(func() error {
			return l.retry(ctx, func(ctx context.Context) (err error) {
				messages, upTo, err = l.replies.multi(ctx, directSubject(runsStream(p)), request)
				return err
			})
		})
		if err == nil {
			// A loss that this finds is of use to later calls, and contains decides here.
			_ = l.suspect(ctx, p, upTo)
		}
		switch {
		case err == nil && upTo >= contains:
			return messages, nil
		case errors.Is(err, errMissing) && contains == 0:
			switch err := l.absent(ctx, run); {
			case !errors.Is(err, errLags):
				return nil, err
			case time.Since(began) > lagWait:
				return nil, unreadable(run)
			}
		case err != nil && !errors.Is(err, errMissing) && !errors.Is(err, errIncomplete):
			return nil, unavailable("view "+run.String(), err)
		}
		if lost, lerr := l.lost(ctx, run, contains, epoch, began); lerr == nil && lost {
			return nil, fmt.Errorf("sequence %d of %s: %w", contains, run, runlog.ErrLost)
		}
		l.counts.stale.Add(1)
		if !pause(ctx, lagPause) {
			return nil, unavailable("view "+run.String(), fmt.Errorf("replica at %d, need %d", upTo, contains))
		}
	}
}

// errLags means that a replica without a run has answered, and the leader has the run.
var errLags = errors.New("the replica lags")

// absent returns why a replica has found nothing of a run: ErrNotFound if its stream has no
// subject of it, and ErrLost if the stream has messages of it that cannot be read.
func (l *Log) absent(ctx context.Context, run runlog.Run) error {
	p := l.partition(run)
	info, err := asked(ctx, func(ctx context.Context) (*jetstream.StreamInfo, error) {
		stream, err := l.js.Stream(ctx, runsStream(p))
		if err != nil {
			return nil, err
		}
		return stream.Info(ctx, jetstream.WithSubjectFilter(runlog.LogFilter(p, run)))
	})
	switch {
	case err != nil:
		return unavailable("view "+run.String(), err)
	case len(info.State.Subjects) == 0:
		return fmt.Errorf("run %s: %w", run, runlog.ErrNotFound)
	case l.replicas > 1:
		return errLags
	}
	return unreadable(run)
}

func unreadable(run runlog.Run) error {
	return fmt.Errorf("run %s is stored, and NATS cannot read its newest record: a block of its stream is damaged (docs/operate.md): %w", run, runlog.ErrLost)
}

// lost reports whether the leader does not have the message of a run with sequence,
// because the stream has lost messages. Replicas have answered since began without it;
// the history had the given epoch then.
func (l *Log) lost(ctx context.Context, run runlog.Run, sequence, epoch uint64, began time.Time) (bool, error) {
	if l.replicas > 1 && time.Since(began) < lagWait {
		return false, nil
	}
	p := l.partition(run)
	stream, err := l.js.Stream(ctx, runsStream(p))
	if err != nil {
		return false, err
	}
	if last := stream.CachedInfo().State.LastSeq; last < sequence {
		return true, l.suspect(ctx, p, last)
	}
	if l.histories[p].epoch.Load() == 0 && epoch == 0 {
		return false, nil
	}
	newest, err := l.newest(ctx, runsStream(p), []string{runlog.LogFilter(p, run), runlog.InboxSubject(p, run)})
	return err == nil && newest == 0, err
}

func (l *Log) viewOf(run runlog.Run, messages []*nats.Msg) (runlog.View, error) {
	var v runlog.View
	for _, m := range messages {
		e, kind, err := l.decode(m)
		if err != nil {
			return v, fmt.Errorf("view %s: %w", run, err)
		}
		switch kind {
		case runlog.KindInbox:
			v.InboxSequence = e.Sequence
			continue
		case runlog.KindStep:
			if e.Sequence > v.Step.Sequence {
				v.Step = e
			}
		default: // the journal
		}
		if e.Sequence > v.Newest.Sequence {
			v.Newest = e
		}
	}
	if v.Newest.Sequence == 0 {
		return v, fmt.Errorf("run %s: %w", run, runlog.ErrNotFound)
	}
	return v, nil
}

// LastInbox returns the sequence of the newest inbox item.
func (l *Log) LastInbox(ctx context.Context, run runlog.Run) (uint64, error) {
	ctx, cancel := l.bounded(ctx)
	defer cancel()
	p := l.partition(run)
	m, err := l.get(ctx, directSubject(runsStream(p))+"."+runlog.InboxSubject(p, run), nil)
	switch {
	case errors.Is(err, errMissing):
		return 0, nil
	case err != nil:
		return 0, unavailable("inbox of "+run.String(), err)
	}
	return strconv.ParseUint(ofServer(m.Header, natsSequence), 10, 64)
}

// Inbox follows the links between items back from upTo, so that it never scans the
// messages of other runs.
func (l *Log) Inbox(ctx context.Context, run runlog.Run, after, upTo uint64) ([]*harnessv1.InboxItem, error) {
	ctx, cancel := l.bounded(ctx)
	defer cancel()
	var newestFirst []*harnessv1.InboxItem
	err := l.walkInbox(ctx, run, after, upTo, func(item *harnessv1.InboxItem) bool {
		newestFirst = append(newestFirst, item)
		if len(newestFirst) > 2*runlog.MaxDrainItems { // only the oldest are returned
			newestFirst = append(newestFirst[:0], newestFirst[runlog.MaxDrainItems:]...)
		}
		return true
	})
	if err != nil {
		return nil, err
	}
	items := make([]*harnessv1.InboxItem, 0, min(len(newestFirst), runlog.MaxDrainItems))
	size := 0
	for i := len(newestFirst) - 1; i >= 0; i-- {
		size += proto.Size(newestFirst[i])
		if len(items) == runlog.MaxDrainItems || (len(items) > 0 && size > runlog.MaxDrainBytes) {
			break
		}
		items = append(items, newestFirst[i])
	}
	return items, nil
}

// walkInbox visits the items in (after, upTo], newest first, until visit returns false.
func (l *Log) walkInbox(ctx context.Context, run runlog.Run, after, upTo uint64, visit func(*harnessv1.InboxItem) bool) error {
	subject := runlog.InboxSubject(l.partition(run), run)
	for sequence := upTo; sequence > after; {
		m, err := l.at(ctx, run, sequence)
		if err != nil {
			return fmt.Errorf("inbox: %w", err)
		}
		if ofServer(m.Header, natsSubject) != subject {
			return fmt.Errorf("sequence %d is not an input of %s: %w", sequence, run, runlog.ErrNotFound)
		}
		item := &harnessv1.InboxItem{}
		if err := proto.Unmarshal(m.Data, item); err != nil {
			// The item cannot be decoded. It is returned without an input, so that the
			// cursor moves past it.
			item = &harnessv1.InboxItem{Id: "unreadable-" + strconv.FormatUint(sequence, 10)}
		}
		item.Unsealed = l.unsealed(run, m, item.GetPrevSequence())
		// The fence, which the server has checked, links to the item before, also for
		// an item that cannot be decoded. No program of ours stores one without a fence,
		// so what that one contains must not hide the items before it.
		prev, err := strconv.ParseUint(m.Header.Get(jetstream.ExpectedLastSubjSeqHeader), 10, 64)
		if err != nil {
			if prev, err = l.itemBefore(ctx, run, after, sequence); err != nil {
				return fmt.Errorf("inbox: %w", err)
			}
		}
		item.PrevSequence = prev
		if item.GetPrevSequence() >= sequence {
			return fmt.Errorf("input at sequence %d of %s links to %d, which is not before it", sequence, run, item.GetPrevSequence())
		}
		item.Sequence = sequence
		if !visit(item) {
			return nil
		}
		sequence = item.GetPrevSequence()
	}
	return nil
}
