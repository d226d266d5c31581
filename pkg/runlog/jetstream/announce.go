package jetstream

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"google.golang.org/protobuf/proto"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

// Subjects on which processes report their presence. Processes that have a role and are
// ready answer the first, all processes the second.
const (
	whereSubject = "hm.where."
	hereSubject  = "hm.here"
)

// Announce answers searches for a role, under its name and the aliases, until stop. A
// role that is not ready answers only searches for all processes. presence returns the
// answer and is called on other goroutines.
func (l *Log) Announce(role string, aliases []string, presence func() *harnessv1.Presence) (stop func(), err error) {
	var subs []*nats.Subscription
	stop = func() {
		for _, sub := range subs {
			_ = sub.Unsubscribe()
		}
	}
	listen := func(subject string, always bool) error {
		sub, err := l.nc.Subscribe(subject, func(m *nats.Msg) {
			if !toInbox(m) {
				return
			}
			p := presence()
			if !p.GetReady() && !always {
				return
			}
			data, err := proto.Marshal(p)
			if err == nil {
				err = m.Respond(data)
			}
			if err != nil {
				l.logger.Debug("announce", "role", role, "error", err)
			}
		})
		if err != nil {
			return unavailable("announce "+role, err)
		}
		subs = append(subs, sub)
		return nil
	}
	err = listen(hereSubject, true)
	for _, name := range append([]string{role}, aliases...) {
		if err == nil {
			err = listen(whereSubject+name, false)
		}
	}
	if err != nil {
		stop()
		return nil, err
	}
	return stop, nil
}

// locateWait bounds a search: a process that has the role and is ready answers
// immediately.
const locateWait = time.Second

// Locate returns the presence of a process that has a role, or an alias of one, and is
// ready. The first answer counts. An alias is ROLE.NAME; errors name the role, which is what
// can be started.
func (l *Log) Locate(ctx context.Context, role string) (*harnessv1.Presence, error) {
	ctx, cancel := context.WithTimeout(ctx, locateWait)
	defer cancel()
	m, err := l.nc.RequestWithContext(ctx, whereSubject+role, nil)
	switch {
	case errors.Is(err, nats.ErrNoResponders):
		return nil, fmt.Errorf("no process with %s is ready: start `harness serve --roles %s`", described(role), roleOf(role))
	case errors.Is(err, context.DeadlineExceeded):
		return nil, fmt.Errorf("no process with %s answers: it is not ready, or NATS is slow (%w)", described(role), runlog.ErrUnavailable)
	case err != nil:
		return nil, unavailable("look for "+described(role), err)
	}
	p := &harnessv1.Presence{}
	if err := proto.Unmarshal(m.Data, p); err != nil {
		return nil, fmt.Errorf("decode the presence of %s: %w", described(role), err)
	}
	return p, nil
}

// roleOf returns the role of an alias, or the role itself.
func roleOf(alias string) string {
	role, _, _ := strings.Cut(alias, ".")
	return role
}

// described returns a role or an alias for an error.
func described(alias string) string {
	role, name, named := strings.Cut(alias, ".")
	if !named {
		return "the role " + role
	}
	return fmt.Sprintf("the role %s and the name %s", role, name)
}

// quietWait is the silence after which no further answer is expected.
const quietWait = 250 * time.Millisecond

// Presences returns the presence of all processes of the mesh, in the order of their
// answers. It takes a quarter of a second longer than the answers.
func (l *Log) Presences(ctx context.Context) ([]*harnessv1.Presence, error) {
	ctx, cancel := l.bounded(ctx)
	defer cancel()
	inbox := l.nc.NewInbox()
	sub, err := l.nc.SubscribeSync(inbox)
	if err != nil {
		return nil, unavailable("look around", err)
	}
	defer func() { _ = sub.Unsubscribe() }()
	if err := l.nc.PublishRequest(hereSubject, inbox, nil); err != nil {
		return nil, unavailable("look around", err)
	}
	var all []*harnessv1.Presence
	for {
		wait, stop := context.WithTimeout(ctx, quietWait)
		m, err := sub.NextMsgWithContext(wait)
		stop()
		switch {
		case ctx.Err() != nil:
			return nil, unavailable("look around", ctx.Err())
		case errors.Is(err, context.DeadlineExceeded):
			return all, nil
		case errors.Is(err, nats.ErrNoResponders), err == nil && m.Header.Get(natsStatus) == "503":
			return nil, nil // no process
		case err != nil:
			return nil, unavailable("look around", err)
		}
		p := &harnessv1.Presence{}
		if proto.Unmarshal(m.Data, p) == nil {
			all = append(all, p)
		}
	}
}
