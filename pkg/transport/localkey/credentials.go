package localkey

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Credentials add the key that is noted for an address to every gRPC call. Without a note
// they add nothing, and each call looks again: a gateway may start later than its client.
type Credentials struct {
	notes   Notes
	address string
	plain   bool

	mu  sync.Mutex
	key string // empty: not found yet
}

// Dial returns the address to connect to for an address, and credentials with the key.
// plain: the connection has no TLS; then the returned address is that of the note,
// because a name such as localhost may lead to the process of another user. A note or a
// key that cannot be used is an error; that there is none is not.
func (n Notes) Dial(address string, plain bool) (string, *Credentials, error) {
	c := &Credentials{notes: n, address: address, plain: plain}
	note, err := c.find()
	switch {
	case err == nil && plain:
		c.address = note.Address
	case err != nil && !errors.Is(err, ErrNoNote):
		return "", nil, err
	}
	return c.address, c, nil
}

// find reads the note and its key.
func (c *Credentials) find() (Note, error) {
	note, err := c.notes.Find(c.address)
	if errors.Is(err, ErrNoNote) {
		return note, err
	}
	if err == nil {
		c.key, err = Read(note.KeyFile)
	}
	if err != nil {
		return note, fmt.Errorf("the key of the gateway at %s cannot be used: %w", c.address, err)
	}
	return note, nil
}

// GetRequestMetadata returns the header with the key, if there is one. A name is not
// looked up again, because the connection may have gone to another process.
func (c *Credentials) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.key == "" && !strings.HasPrefix(strings.ToLower(c.address), "localhost:") {
		if _, err := c.find(); err != nil && !errors.Is(err, ErrNoNote) {
			return nil, status.Error(codes.Unauthenticated, err.Error())
		}
	}
	if c.key == "" {
		return nil, nil
	}
	return map[string]string{"authorization": "Bearer " + c.key}, nil
}

// RequireTransportSecurity reports whether the connection must have TLS.
func (c *Credentials) RequireTransportSecurity() bool { return !c.plain }
