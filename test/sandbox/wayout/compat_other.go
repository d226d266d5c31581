//go:build linux && !amd64

package wayout

// callsHere are ways that only this architecture has: none.
var callsHere []Way
