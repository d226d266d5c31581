package node

import (
	"errors"
	"fmt"
	"net"
	"syscall"
)

// listenOn listens at the address of a flag.
func listenOn(flag, address string) (net.Listener, error) {
	listener, err := net.Listen("tcp", address)
	if errors.Is(err, syscall.EADDRINUSE) {
		err = fmt.Errorf("%w; use another port, such as 127.0.0.1:0 for a free one", err)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flag, err)
	}
	return listener, nil
}

// CheckAddresses returns the error with which Start would fail because an address cannot be listened on.
// Another process can take the address afterwards.
func (c *Config) CheckAddresses() error {
	for _, at := range [][2]string{{"--listen", c.Listen}, {"--metrics", c.Metrics}, {"--probe", c.Probe}} {
		if at[1] == "" {
			continue
		}
		listener, err := listenOn(at[0], at[1])
		if err != nil {
			return err
		}
		if err := listener.Close(); err != nil {
			return fmt.Errorf("%s: %w", at[0], err)
		}
	}
	return nil
}
