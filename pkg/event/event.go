// Package event builds the events that observers of a run see: one constructor
// for each case of harness.v1.Event, in files by topic.
//
// A constructor fills in the payload. The turn, the limit of turns and the fields that
// are filled on delivery are left unset: runstate.Draft stamps an event when a
// decision emits it. Contents that the caller keeps are copied.
package event
