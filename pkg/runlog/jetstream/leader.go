package jetstream

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

// codeNoMessage is the leader's error code for a subject without a message.
const codeNoMessage jetstream.ErrorCode = 10037

// newest returns the sequence of the newest message on any of the subjects, as the
// stream's leader knows it; 0 if there is none.
func (l *Log) newest(ctx context.Context, stream string, subjects []string) (uint64, error) {
	var newest uint64
	for _, subject := range subjects {
		sequence, err := asked(ctx, func(ctx context.Context) (uint64, error) {
			return l.leading(ctx, getMessage+stream, fmt.Sprintf(`{"last_by_subj":%q}`, subject))
		})
		if err != nil {
			return 0, err
		}
		newest = max(newest, sequence)
	}
	return newest, nil
}

// Requests about one message of a stream, which its leader answers.
const (
	getMessage    = "$JS.API.STREAM.MSG.GET."
	deleteMessage = "$JS.API.STREAM.MSG.DELETE."
)

// leading makes one request about a message and returns the message's sequence; 0 if
// the leader has none.
func (l *Log) leading(ctx context.Context, subject, request string) (uint64, error) {
	m, err := l.leadingMessage(ctx, subject, request)
	return m.Sequence, err
}

// leaderMessage is a message as the leader of its stream returns it.
type leaderMessage struct {
	Subject  string `json:"subject"`
	Sequence uint64 `json:"seq"` // 0 if the leader has no such message
	Encoded  []byte `json:"hdrs"`
	Data     []byte `json:"data"`
}

// header returns the headers; those that cannot be decoded are missing.
func (m leaderMessage) header() nats.Header {
	h, err := nats.DecodeHeadersMsg(m.Encoded)
	if err != nil {
		return nil
	}
	return h
}

// leadingMessage makes one request about a message and returns the message.
func (l *Log) leadingMessage(ctx context.Context, subject, request string) (leaderMessage, error) {
	ctx, cancel := context.WithTimeout(ctx, l.timeout/tries)
	defer cancel()
	m, err := l.request(ctx, &nats.Msg{Subject: subject, Data: []byte(request)})
	if err != nil {
		return leaderMessage{}, err
	}
	var answer struct {
		Error   *jetstream.APIError `json:"error"`
		Message leaderMessage       `json:"message"`
	}
	if err := json.Unmarshal(m.Data, &answer); err != nil {
		return leaderMessage{}, err
	}
	if answer.Error != nil && answer.Error.ErrorCode != codeNoMessage {
		return leaderMessage{}, answer.Error
	}
	return answer.Message, nil
}

// leaderRead returns the message of a stream that a request matches, as the stream's
// leader knows it.
func (l *Log) leaderRead(ctx context.Context, stream, request string) (leaderMessage, error) {
	ctx, cancel := l.bounded(ctx)
	defer cancel()
	return asked(ctx, func(ctx context.Context) (leaderMessage, error) {
		return l.leadingMessage(ctx, getMessage+stream, request)
	})
}

// following returns the sequence of the first message of a filter at or after sequence,
// as the stream's leader knows it; 0 if there is none.
func (l *Log) following(ctx context.Context, stream, filter string, sequence uint64) (uint64, error) {
	return asked(ctx, func(ctx context.Context) (uint64, error) {
		return l.leading(ctx, getMessage+stream, fmt.Sprintf(`{"seq":%d,"next_by_subj":%q}`, sequence, filter))
	})
}

// askWait bounds one request to the leader of a stream or consumer: between two leaders
// there is no answer.
const askWait = time.Second

// askLong is how long a stream or consumer may be without a leader.
const askLong = 30 * time.Second

func asked[T any](ctx context.Context, ask func(context.Context) (T, error)) (T, error) {
	for end := time.Now().Add(askLong); ; {
		one, cancel := context.WithTimeout(ctx, askWait)
		v, err := ask(one)
		cancel()
		if err == nil || ctx.Err() != nil || !starting(err) || time.Now().After(end) || !pause(ctx, dialPause) {
			return v, err
		}
	}
}

// Newest reads from the stream's leader. A replica may lag, and nothing would show it.
func (l *Log) Newest(ctx context.Context, run runlog.Run) (uint64, error) {
	ctx, cancel := l.bounded(ctx)
	defer cancel()
	p := l.partition(run)
	sequence, err := l.newest(ctx, runsStream(p), []string{runlog.LogFilter(p, run), runlog.InboxSubject(p, run)})
	if err != nil {
		return 0, unavailable("newest of "+run.String(), err)
	}
	return sequence, nil
}
