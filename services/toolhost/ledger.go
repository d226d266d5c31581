package toolhost

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// The id of a ledger is PLACE-RANDOM. PLACE identifies the machine and the folder, so the
// id of a new ledger shows that it replaces a lost one. Ledgers of earlier versions have
// ids of 32 hexadecimal digits, without a place.
const (
	placeDigits = 12
	// RandomDigits is the number of hexadecimal digits in the random part of an id.
	RandomDigits = 16
)

// PlaceOf returns the place of a ledger: 12 hexadecimal digits of the SHA-256 of the
// machine's host name, NUL, and the ledger's folder, absolute and without links.
func PlaceOf(hostname, folder string) string {
	sum := sha256.Sum256([]byte(hostname + "\x00" + folder))
	return hex.EncodeToString(sum[:])[:placeDigits]
}

// LedgerID returns the id of a ledger with a place and a random part.
func LedgerID(place, random string) string { return place + "-" + random }

// Place returns the place in the id of a ledger, or "" if the id has another form.
func Place(ledgerID string) string {
	place, random, _ := strings.Cut(ledgerID, "-")
	if len(place) != placeDigits || len(random) != RandomDigits || !isHex(place) || !isHex(random) {
		return ""
	}
	return place
}

// Replaces reports whether a ledger replaced another one, which is lost: both have the same
// place and different ids.
func Replaces(newID, oldID string) bool {
	place := Place(newID)
	return place != "" && place == Place(oldID) && newID != oldID
}

func isHex(text string) bool {
	return strings.Trim(text, "0123456789abcdef") == ""
}
