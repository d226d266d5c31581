//go:build !amd64

package sandbox

// changesModesHere and makesFilesHere are the calls that only this architecture has.
var changesModesHere, makesFilesHere map[string]int
