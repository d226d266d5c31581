package toolhost

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// The id of a ledger is PLACE-RANDOM. PLACE names the machine and the folder, so
// that a ledger that is begun anew where another was lost says so by its id.
// Ledgers of earlier versions have ids of 32 hexadecimal digits, without a place.
const (
	placeDigits = 12
	// RandomDigits is how many hexadecimal digits the random part of a ledger's
	// id has.
	RandomDigits = 16
)

// PlaceOf is the place of a ledger: 12 hexadecimal digits of the SHA-256 of the
// machine's host name, NUL, and the ledger's folder, absolute and without links.
func PlaceOf(hostname, folder string) string {
	sum := sha256.Sum256([]byte(hostname + "\x00" + folder))
	return hex.EncodeToString(sum[:])[:placeDigits]
}

// LedgerID is the id of a ledger with a place and a random part.
func LedgerID(place, random string) string { return place + "-" + random }

// Place is the place of a ledger by its id; empty when the id has another form.
func Place(ledgerID string) string {
	place, random, _ := strings.Cut(ledgerID, "-")
	if len(place) != placeDigits || len(random) != RandomDigits || !hexadecimal(place) || !hexadecimal(random) {
		return ""
	}
	return place
}

// Replaces says that a ledger took the place of another, which is lost: both
// have the same place and different ids.
func Replaces(newID, oldID string) bool {
	place := Place(newID)
	return place != "" && place == Place(oldID) && newID != oldID
}

func hexadecimal(text string) bool {
	return strings.Trim(text, "0123456789abcdef") == ""
}
