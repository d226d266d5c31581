package jetstream

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"
)

// announcements are answered on hm.where.ROLE by every process that has the role.
const announcements = "hm.where."

// Announce answers those who look for a role with an address until stop.
func (l *Log) Announce(role, address string) (stop func(), err error) {
	sub, err := l.nc.Subscribe(announcements+role, func(m *nats.Msg) {
		if err := m.Respond([]byte(address)); err != nil {
			l.logger.Debug("announce", "role", role, "error", err)
		}
	})
	if err != nil {
		return nil, unavailable("announce "+role, err)
	}
	return func() { _ = sub.Unsubscribe() }, nil
}

// Locate asks for the address of a role; the first answer counts.
func (l *Log) Locate(ctx context.Context, role string) (address string, err error) {
	ctx, cancel := l.bounded(ctx)
	defer cancel()
	m, err := l.nc.RequestWithContext(ctx, announcements+role, nil)
	switch {
	case errors.Is(err, nats.ErrNoResponders):
		return "", fmt.Errorf("no process with the role %s has announced itself: start `harness serve --roles %s`", role, role)
	case err != nil:
		return "", unavailable("look for "+role, err)
	}
	return string(m.Data), nil
}
