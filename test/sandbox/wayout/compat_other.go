//go:build linux && !amd64

package wayout

// callsHere are ways that only this architecture has: none.
var callsHere []Way

// bitsHere returns no ways.
func bitsHere(string, uint32) []Way { return nil }
