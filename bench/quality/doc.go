// Package quality measures what judging work costs and what it changes. Its models fail as real
// ones do, and its judges are right, harsh, lenient, random or down. Each model works with each
// judge, and without judging.
//
//	go test ./bench/quality -run TestQuality      # all of them, compared with the page
//	make quality                                  # and the tables of docs/quality-bench.md written
//
// Runs are runs of the shipped binary, with a strict model server of a provider's protocol. Each
// attempt has a worth that its author has given it, from 0 to 1, so that the verdict of a judge and
// what is delivered can be compared with it.
package quality
