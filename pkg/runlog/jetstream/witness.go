package jetstream

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"google.golang.org/protobuf/proto"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

var _ runlog.Witness = (*Log)(nil)

// workSubject is followed by EXECUTOR.NAMESPACE.RUN. A message with a reply subject is a
// question: the sequence of a step and the number of a delivery, as decimal text. A process that
// had it answers with nothing, one that has heard of it with the last StepWord. A
// message without a reply subject is a word.
const workSubject = "hm.work."

// livesWait bounds a question: a worker that lives answers immediately.
const livesWait = quietWait

// outages has the time at which the connection was last back; zero if it was never lost.
type outages struct {
	mu   sync.Mutex
	back time.Time
}

func (o *outages) over() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.back = time.Now()
}

// within reports whether the connection was back within d.
func (o *outages) within(d time.Duration) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return !o.back.IsZero() && time.Since(o.back) < d
}

// Testify answers the questions of other workers, and passes on words.
func (l *Log) Testify(executor string, t runlog.Testimony) (stop func(), err error) {
	prefix := workSubject + executor + "."
	sub, err := l.nc.Subscribe(prefix+"*.*", func(m *nats.Msg) {
		namespace, id, _ := strings.Cut(strings.TrimPrefix(m.Subject, prefix), ".")
		run := runlog.Run{Namespace: namespace, ID: id}
		if m.Reply == "" {
			word := &harnessv1.StepWord{}
			if len(m.Data) <= maxWord && proto.Unmarshal(m.Data, word) == nil && word.GetSequence() > 0 {
				t.Heard(run, word)
			}
			return
		}
		var sequence, delivery uint64
		if !toInbox(m) {
			return
		}
		var answer []byte
		if n, _ := fmt.Sscan(string(m.Data), &sequence, &delivery); n != 2 {
			return
		}
		if !t.Had(run, sequence, delivery) {
			last := t.LastWord(run, sequence, delivery)
			if last == nil || !strings.HasSuffix(string(m.Data), takesWords) {
				return
			}
			if answer, err = proto.Marshal(last); err != nil {
				return
			}
		}
		if err := m.Respond(answer); err != nil {
			l.logger.Debug("answer for a delivery", "executor", executor, "error", err)
		}
	})
	if err != nil {
		return nil, unavailable("listen to questions about "+executor, err)
	}
	_ = l.nc.FlushTimeout(l.timeout) // the server knows the subscription, or gets it with the connection
	unhook := l.hookReconnect(l.outages.over)
	return func() {
		unhook()
		_ = sub.Unsubscribe()
	}, nil
}

// maxWord bounds a word, in bytes.
const maxWord = 256

// takesWords ends the question of a worker that takes words as answers. A worker of an earlier
// version takes every answer for that of a worker that lives.
const takesWords = " words"

// sentWait bounds the wait for the server to have a word.
const sentWait = 100 * time.Millisecond

// PublishWord publishes whether a step waits.
func (l *Log) PublishWord(executor string, run runlog.Run, word *harnessv1.StepWord, sent bool) {
	data, err := proto.Marshal(word)
	if err == nil {
		err = l.nc.Publish(workSubject+executor+"."+run.Namespace+"."+run.ID, data)
	}
	if err == nil && sent && l.Connected() == nil {
		err = l.nc.FlushTimeout(sentWait)
	}
	if err != nil {
		l.logger.Debug("publish a word", "executor", executor, "run", run.ID, "error", err)
	}
}

// Lives asks all workers of an executor about a delivery. Without a worker that lives it takes
// the whole of livesWait: another may have heard a newer word.
func (l *Log) Lives(ctx context.Context, executor string, run runlog.Run, sequence, delivery uint64) (alive bool, last *harnessv1.StepWord, err error) {
	op := "ask about the worker of " + run.String()
	if err := l.Connected(); err != nil {
		return false, nil, unavailable(op, err)
	}
	// The server delivers again what workers could not extend meanwhile. They are back
	// about when this one is.
	if l.outages.within(3 * l.AckWait()) {
		return false, nil, fmt.Errorf("%s: %w: the connection was lost within the last %s", op, runlog.ErrUnavailable, 3*l.AckWait())
	}
	ctx, cancel := context.WithTimeout(ctx, livesWait)
	defer cancel()
	inbox := l.nc.NewInbox()
	answers, err := l.nc.SubscribeSync(inbox)
	if err != nil {
		return false, nil, unavailable(op, err)
	}
	defer func() { _ = answers.Unsubscribe() }()
	question := fmt.Appendf(nil, "%d %d%s", sequence, delivery, takesWords)
	if err := l.nc.PublishRequest(workSubject+executor+"."+run.Namespace+"."+run.ID, inbox, question); err != nil {
		return false, nil, unavailable(op, err)
	}
	for {
		m, err := answers.NextMsgWithContext(ctx)
		switch {
		case errors.Is(err, context.DeadlineExceeded), errors.Is(err, nats.ErrNoResponders):
			return false, last, nil
		case err != nil:
			return false, nil, unavailable(op, err)
		case len(m.Data) == 0:
			return true, nil, nil
		}
		word := &harnessv1.StepWord{}
		if proto.Unmarshal(m.Data, word) == nil && word.GetSequence() == sequence && word.GetDelivery() == delivery && word.GetNumber() > last.GetNumber() {
			last = word
		}
	}
}
