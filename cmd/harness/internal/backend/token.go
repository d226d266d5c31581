package backend

import (
	"fmt"
	"os"
	"strings"

	"google.golang.org/grpc/credentials"

	"github.com/harnessmesh/harnessmesh/pkg/transport/access"
	"github.com/harnessmesh/harnessmesh/pkg/transport/localkey"
)

// findToken returns what calls to a target present: the token of --token-file, else the
// key that a gateway of this user has noted for an address of this machine, else nothing.
// address is where to connect.
func findToken(opts Options, target string, plain bool) (address string, credential credentials.PerRPCCredentials, err error) {
	if opts.TokenFile != "" {
		if plain && !isLocal(target) {
			return "", nil, fmt.Errorf("--token-file: the token would be sent to %s in clear text; use https:// or --tls", target)
		}
		token, err := readToken(opts.TokenFile)
		if err != nil {
			return "", nil, fmt.Errorf("--token-file: %w", err)
		}
		return target, access.Bearer(token, plain), nil
	}
	if !isLocal(target) || opts.Env == nil {
		return target, nil, nil
	}
	notes, err := localkey.UserNotes(opts.Env)
	if err != nil {
		return target, nil, nil //nolint:nilerr // a user without a home has no notes
	}
	address, key, err := notes.Dial(target, plain)
	if err != nil {
		return "", nil, fmt.Errorf("--server: %w; or pass --token-file", err)
	}
	return address, key, nil
}

func readToken(path string) (string, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	token := strings.TrimSpace(string(raw))
	if token == "" || strings.ContainsAny(token, "\r\n") {
		return "", fmt.Errorf("%s must contain one line with a token", path)
	}
	return token, nil
}
