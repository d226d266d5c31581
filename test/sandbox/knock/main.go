// Knock tries to use a harness from inside a command of one of its runs. It knows all names:
//
//	knock RUN… -- ADDRESS… -- PATH…
//
// At each address it calls every method of every service for every run, sends HTTP requests,
// and greets as a client of NATS; it connects to the paths that are sockets and reads the
// others, which can hold keys, with which it tries again. It prints a line for each thing
// that works.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	_ "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1" // the services
)

// patience bounds each call, and parallel the calls at a time: most that work are streams, which
// last that long.
const (
	patience = 3 * time.Second
	parallel = 32
)

func main() {
	log.SetOutput(io.Discard) // net/http prints answers that are not HTTP/1
	runs, rest := until(os.Args[1:])
	addresses, paths := until(rest)
	tokens := []string{""}
	for _, path := range paths {
		if conn, err := net.Dial("unix", path); err == nil {
			_ = conn.Close()
			fmt.Println("connected to", path)
			addresses = append(addresses, "unix:"+path)
		}
		if data, err := os.ReadFile(path); err == nil {
			fmt.Println("read", path)
			first, _, _ := strings.Cut(strings.TrimSpace(string(data)), "\n")
			tokens = append(tokens, first)
		}
	}
	var calls errgroup.Group
	calls.SetLimit(parallel)
	for _, address := range addresses {
		for _, token := range tokens {
			knock(&calls, address, token, runs)
		}
	}
	_ = calls.Wait()
	fmt.Println("knocked")
}

// until splits arguments at "--".
func until(args []string) (first, rest []string) {
	i := slices.Index(args, "--")
	if i < 0 {
		return args, nil
	}
	return args[:i], args[i+1:]
}

func knock(calls *errgroup.Group, address, token string, runs []string) {
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		fmt.Println("no client:", err)
		return
	}
	protoregistry.GlobalFiles.RangeFiles(func(file protoreflect.FileDescriptor) bool {
		for i := range file.Services().Len() {
			methods := file.Services().Get(i).Methods()
			for j := range methods.Len() {
				for _, run := range runs {
					calls.Go(func() error { call(conn, token, methods.Get(j), run); return nil })
				}
			}
		}
		return true
	})
	if !strings.HasPrefix(address, "unix:") {
		calls.Go(func() error { web(address, token); return nil })
		calls.Go(func() error { bus(address); return nil })
	}
}

// refused are the codes of a call that did not work.
var refused = []codes.Code{codes.Unauthenticated, codes.PermissionDenied, codes.Unavailable, codes.Unimplemented}

func call(conn *grpc.ClientConn, token string, method protoreflect.MethodDescriptor, run string) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if token != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+token)
	}
	input, err := protoregistry.GlobalTypes.FindMessageByName(method.Input().FullName())
	if err != nil {
		return
	}
	output, err := protoregistry.GlobalTypes.FindMessageByName(method.Output().FullName())
	if err != nil {
		return
	}
	name := fmt.Sprintf("/%s/%s", method.Parent().FullName(), method.Name())
	stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, name)
	if err == nil {
		_ = stream.SendMsg(request(input, run))
		_ = stream.CloseSend()
		err = stream.RecvMsg(output.New().Interface())
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	if code := status.Code(err); !slices.Contains(refused, code) {
		fmt.Println("called", name, "for", run, "at", conn.Target(), code)
	}
}

// request names a run in the fields of a request that can.
func request(t protoreflect.MessageType, run string) proto.Message {
	m := t.New()
	fields := m.Descriptor().Fields()
	for name, value := range map[protoreflect.Name]string{"namespace": "default", "run_id": run, "call_id": "c1", "request_id": "knock", "workspace": "/tmp", "tool": "run_command"} {
		if f := fields.ByName(name); f != nil && f.Kind() == protoreflect.StringKind && !f.IsList() {
			m.Set(f, protoreflect.ValueOfString(value))
		}
	}
	return m.Interface()
}

// web sends HTTP requests.
func web(address, token string) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for _, line := range []string{"GET /v1/runs", "POST /v1/runs", "GET /v1/namespaces/default/runs", "GET /metrics"} {
		verb, path, _ := strings.Cut(line, " ")
		req, err := http.NewRequestWithContext(ctx, verb, "http://"+address+path, strings.NewReader("{}"))
		if err != nil {
			continue
		}
		if token != "" {
			req.Header.Set("Authorization", "Bearer "+token)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			continue
		}
		_ = resp.Body.Close()
		if resp.StatusCode < 300 {
			fmt.Println("got", line, "at", address, resp.Status)
		}
	}
}

// bus greets as a client of NATS without credentials.
func bus(address string) {
	conn, err := net.DialTimeout("tcp", address, patience)
	if err != nil {
		return
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(patience))
	lines := bufio.NewReader(conn)
	if greeting, err := lines.ReadString('\n'); err != nil || !strings.HasPrefix(greeting, "INFO ") {
		return
	}
	_, _ = conn.Write([]byte("CONNECT {\"verbose\":false}\r\nPING\r\n"))
	if answer, err := lines.ReadString('\n'); err == nil && strings.HasPrefix(answer, "PONG") {
		fmt.Println("connected to NATS at", address)
	}
}
