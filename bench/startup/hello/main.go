// Command hello is the floor of a start: the least that a Go program does.
package main

import "os"

func main() { _, _ = os.Stdout.WriteString("hello\n") }
