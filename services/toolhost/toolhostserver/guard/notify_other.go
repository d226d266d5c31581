//go:build !linux

package guard

import "errors"

// notifier is for Linux; elsewhere changes are found by reading again.
type notifier struct{}

type subscription struct{ ready chan struct{} }

func (*notifier) subscribe() (*subscription, error) { return nil, errors.ErrUnsupported }

func (*notifier) close() {}

func (*subscription) watch(map[string]*place) (added bool, err error) { return false, nil }

func (*subscription) take() news { return nothing }

func (*subscription) close() {}
