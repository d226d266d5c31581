package ledger

import (
	"encoding/binary"
	"strings"

	"github.com/harnessmesh/harnessmesh/pkg/fault"
)

const (
	// checkPrefix begins the keys of checks, which are commands of the harness. No key of a
	// call begins with it, because no namespace is empty. After it comes the key of a call
	// whose id is the check's key.
	checkPrefix = "\x00"
	// backgroundSuffix ends the keys of background commands. Before it comes the key of the
	// call; no id of a call has a NUL.
	backgroundSuffix = "\x00background"
)

// RunKey returns the key of a run. NUL separates its parts; no name has one.
func RunKey(namespace, run string, firstSequence uint64) (string, error) {
	for field, value := range map[string]string{"namespace": namespace, "run_id": run} {
		if err := CheckName(field, value); err != nil {
			return "", err
		}
	}
	key := make([]byte, 0, len(namespace)+len(run)+10)
	key = append(key, namespace...)
	key = append(key, 0)
	key = append(key, run...)
	key = append(key, 0)
	return string(binary.BigEndian.AppendUint64(key, firstSequence)), nil
}

// RunName returns NAMESPACE/RUN of a run's key.
func RunName(key string) string {
	namespace, run := RunParts(key)
	return namespace + "/" + run
}

// RunParts returns the namespace and the id of a run's key.
func RunParts(key string) (namespace, run string) {
	namespace, rest, _ := strings.Cut(key, "\x00")
	run, _, _ = strings.Cut(rest, "\x00")
	return namespace, run
}

// CallKey returns the key of a call, given the key of its run.
func CallKey(run, id string) string { return run + "\x00" + id }

// CheckKey returns the key of the check whose key is the id of a call.
func CheckKey(call string) string { return checkPrefix + call }

// IsCheck reports whether a key is that of a check.
func IsCheck(key string) bool { return strings.HasPrefix(key, checkPrefix) }

// CallOfCheck returns the key of the call whose id is the key of a check.
func CallOfCheck(key string) string { return strings.TrimPrefix(key, checkPrefix) }

// BackgroundKey returns the key of the background command of a call.
func BackgroundKey(call string) string { return call + backgroundSuffix }

// isBackground reports whether a key is that of a background command.
func isBackground(key string) bool { return strings.HasSuffix(key, backgroundSuffix) }

// CheckName returns an error for a value that no part of a key may have.
func CheckName(field, value string) error {
	if value == "" || len(value) > 1024 || strings.ContainsRune(value, 0) {
		return fault.Invalid(field, "must be 1 to 1024 bytes without NUL")
	}
	return nil
}
