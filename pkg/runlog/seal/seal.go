// Package seal has the seals of inputs: message authentication codes with a key that gateway and repair
// share. Every process that can write to a bus could otherwise store an approval.
//
// A seal is HMAC-SHA256 over the run and the bytes that are stored. These contain the id of the input, all
// of its content, and the sequence of the input before it, which the server has compared with the inbox when
// it stored the input. So a seal is valid for one input, at one place of one inbox: it can be copied neither
// to another run or call nor to a later place. What it does not bind is which of two runs of the same name
// it is, if one was deleted: the first input of the earlier one is valid as the first of the later one.
//
// Keys are replaced with an overlap: the first one seals, and all of them are valid.
package seal

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

// minKey is the least length of a key, in characters: 128 bits as hexadecimal digits.
const minKey = 32

// Keys seal inputs and check seals. The zero value has no key.
type Keys struct{ all [][]byte }

// Parse parses a file of keys, one a line: at least 32 characters without spaces. Lines that begin with #,
// and empty ones, do not count. Errors name the line and contain no key.
func Parse(text string) (Keys, error) {
	var k Keys
	number := 0
	for line := range strings.Lines(text) {
		number++
		switch line = strings.TrimSpace(line); {
		case line == "" || strings.HasPrefix(line, "#"):
			continue
		case len(line) < minKey || strings.ContainsAny(line, " \t"):
			return Keys{}, fmt.Errorf("line %d: expected a key of at least %d characters without spaces; `openssl rand -hex 32` creates one", number, minKey)
		}
		k.all = append(k.all, []byte(line))
	}
	if len(k.all) == 0 {
		return Keys{}, errors.New("missing key: write one on a line; `openssl rand -hex 32` creates one")
	}
	return k, nil
}

// Derive returns the key that follows from another secret, which it does not disclose.
func Derive(secret string) Keys {
	mac := hmac.New(sha256.New, []byte(secret))
	_, _ = mac.Write([]byte("harness input key\n")) // never fails
	return Keys{all: [][]byte{mac.Sum(nil)}}
}

// Seal returns the seal of an input of a run, as it is stored; empty without a key.
func (k Keys) Seal(run runlog.Run, stored []byte) string {
	if len(k.all) == 0 {
		return ""
	}
	return hex.EncodeToString(code(k.all[0], run, stored))
}

// Valid reports whether seal is that of an input with one of the keys. Its run time does not depend on how
// similar the seals are.
func (k Keys) Valid(run runlog.Run, stored []byte, seal string) bool {
	given, err := hex.DecodeString(seal)
	if err != nil {
		return false
	}
	valid := false
	for _, key := range k.all {
		valid = hmac.Equal(given, code(key, run, stored)) || valid
	}
	return valid
}

// code returns the authentication code. Names of runs contain neither / nor line feeds.
func code(key []byte, run runlog.Run, stored []byte) []byte {
	mac := hmac.New(sha256.New, key)
	_, _ = mac.Write([]byte("harness input\n" + run.String() + "\n"))
	_, _ = mac.Write(stored)
	return mac.Sum(nil)
}
