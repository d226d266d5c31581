package roledoor

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"time"
)

// tokenPrefix begins the token of a call, so that people and scanners for leaked secrets
// recognise one.
const tokenPrefix = "harness-mesh-"

// Token returns the bearer token of calls to one process: its name, and when it started.
// It is derived from the key of the mesh and admits to no other process, because a caller
// may send it to an address that another user has by then.
func Token(key, instance string, started time.Time) string {
	mac := hmac.New(sha256.New, []byte(key))
	_, _ = fmt.Fprintf(mac, "harness mesh call\n%s\n%d", instance, started.UnixNano()) // never fails
	return tokenPrefix + hex.EncodeToString(mac.Sum(nil))
}

// equal reports whether two texts are equal. Its run time does not depend on similar texts.
func equal(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}
