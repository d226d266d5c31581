// Package keytest presents the key of a gateway that a test has started, as a client on
// the same machine would.
package keytest

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"

	"google.golang.org/grpc"

	"github.com/harnessmesh/harnessmesh/pkg/transport/localkey"
)

// With returns the option of a connection to the gateway of a data directory. The key is
// read for each call, because the gateway may start later or with another directory.
func With(data string) grpc.DialOption {
	return grpc.WithPerRPCCredentials(keyOf(data))
}

// Header returns the header of an HTTP request to the gateway of a data directory.
func Header(data string) (name, value string, err error) {
	key, err := localkey.Read(File(data))
	return "Authorization", "Bearer " + key, err
}

// File returns the key file of a data directory.
func File(data string) string { return filepath.Join(data, "gateway.key") }

// keyOf is a data directory whose key is added to calls.
type keyOf string

func (k keyOf) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	key, err := localkey.Read(File(string(k)))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return map[string]string{"authorization": "Bearer " + key}, nil
}

func (keyOf) RequireTransportSecurity() bool { return false }
