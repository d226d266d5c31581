//go:build !linux

package console

import "os"

// Keys are the keys that a user types while a run is shown. Here they are not dropped.
type Keys struct{}

// Keys returns nil: keys are dropped on Linux only.
func (a *Console) Keys() *Keys { return nil }

// Asking does nothing.
func (*Keys) Asking(bool) {}

// Typed returns nil: no keys are dropped.
func (*Keys) Typed() <-chan struct{} { return nil }

// Read returns an error: no prompt reads from it.
func (*Keys) Read([]byte) (int, error) { return 0, os.ErrClosed }

// Stop does nothing.
func (*Keys) Stop() {}
