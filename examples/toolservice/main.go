// Command toolservice is a tool service in Go: notes that agents add and read.
//
//	go run ./examples/toolservice --listen 127.0.0.1:9000 --file notes.txt
//	harness run --tool-service notes=127.0.0.1:9000 "Note that the build is green."
//
// Its keys outlive the process: a note whose answer was lost is not added a second time.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"net"
	"os"

	"google.golang.org/grpc"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/toolservice"
)

// tools returns the tools of a file of notes.
func tools(file string) []toolservice.Tool {
	return []toolservice.Tool{
		{
			Name: "add_note", Description: "Adds a note.",
			Schema: `{"type":"object","properties":{"text":{"type":"string"}},"required":["text"],"additionalProperties":false}`,
			Run: func(_ context.Context, c *toolservice.Call) (toolservice.Result, error) {
				var in struct{ Text string }
				if err := json.Unmarshal(c.Arguments, &in); err != nil {
					return toolservice.Result{}, err
				}
				c.Output(fmt.Sprintf("adding %q\n", in.Text))
				f, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
				if err != nil {
					return toolservice.Result{}, err
				}
				defer f.Close()
				_, err = fmt.Fprintln(f, in.Text)
				return toolservice.Result{Text: "noted"}, err
			},
		},
		{
			Name: "read_notes", Description: "Returns all notes.", Hints: &harnessv1.ToolServiceHints{ReadOnly: true, ParallelSafe: true},
			Run: func(context.Context, *toolservice.Call) (toolservice.Result, error) {
				data, err := os.ReadFile(file)
				if os.IsNotExist(err) {
					err = nil
				}
				return toolservice.Result{Text: string(data)}, err
			},
		},
	}
}

func main() {
	listen := flag.String("listen", "127.0.0.1:9000", "address to serve on")
	file := flag.String("file", "notes.txt", "file of the notes")
	flag.Parse()
	memory, err := toolservice.Folder(*file + ".calls")
	if err != nil {
		log.Fatal(err)
	}
	service, err := toolservice.New(toolservice.Config{Tools: tools(*file), Memory: memory})
	if err != nil {
		log.Fatal(err)
	}
	listener, err := net.Listen("tcp", *listen)
	if err != nil {
		log.Fatal(err)
	}
	server := grpc.NewServer()
	service.Register(server)
	fmt.Printf("{\"listening\": %q}\n", listener.Addr())
	log.Fatal(server.Serve(listener))
}
