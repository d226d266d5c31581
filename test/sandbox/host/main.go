//go:build linux

// Host runs the attacking program at a level of the sandbox, as a tool host would, and
// reports which ways out were open. It reads jobs from standard input, a line of JSON each,
// and writes a result a line. Its working folder must hold the program attack.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/harnessmesh/harnessmesh/test/sandbox/job"
)

func main() {
	if err := serve(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "host:", err)
		os.Exit(1)
	}
}

func serve(r io.Reader, w io.Writer) error {
	base, err := os.Getwd()
	if err != nil {
		return err
	}
	h, err := newHost(base)
	if err != nil {
		return err
	}
	defer h.close()
	jobs, results := json.NewDecoder(r), json.NewEncoder(w)
	for {
		var j job.Job
		switch err := jobs.Decode(&j); err {
		case nil:
		case io.EOF:
			return nil
		default:
			return err
		}
		result, err := h.run(j)
		if err != nil {
			result.Error = err.Error()
		}
		if err := results.Encode(result); err != nil {
			return err
		}
	}
}
