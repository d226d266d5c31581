// Command hooks is a custom HookService: it denies an agent write access to some
// folders, removes keys from the output of commands, and logs how runs end.
//
//	go run ./examples/hooks --listen 127.0.0.1:7700 --keep-out vendor,.git
//	harness run --agent examples/hooks/agent.yaml "Fix the program."
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"net"
	"path"
	"regexp"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// payload has the fields that this service reads, of all topics.
type payload struct {
	Arguments struct {
		Path string `json:"path"`
	} `json:"arguments"`
	Result   string `json:"result"`
	Status   string `json:"status"`
	Accepted bool   `json:"accepted"`
}

// service is the HookService. A request may be repeated with the same idempotency key.
// Its verdict is then the same, because it depends on nothing but the request.
type service struct {
	harnessv1.UnimplementedHookServiceServer
	keepOut []string
}

var key = regexp.MustCompile(`\b(sk|ghp|xox[bp])[-_][A-Za-z0-9_-]{16,}`)

// HandleHook implements harnessv1.HookServiceServer.
func (s *service) HandleHook(_ context.Context, r *harnessv1.HandleHookRequest) (*harnessv1.HandleHookResponse, error) {
	var p payload
	if err := json.Unmarshal([]byte(r.GetHook().GetPayload()), &p); err != nil {
		return nil, status.Errorf(codes.InvalidArgument, "payload: %v", err)
	}
	verdict := &harnessv1.HookVerdict{Action: harnessv1.HookAction_HOOK_ACTION_CONTINUE}
	switch r.GetHook().GetTopic() {
	case harnessv1.HookTopic_HOOK_TOPIC_BEFORE_TOOL_CALL:
		if folder := s.within(p.Arguments.Path); folder != "" {
			verdict.Action = harnessv1.HookAction_HOOK_ACTION_DENY
			verdict.Reason = fmt.Sprintf("Nothing in %s is changed by hand. Change what it is made from.", folder)
		}
	case harnessv1.HookTopic_HOOK_TOPIC_AFTER_TOOL_CALL:
		if !key.MatchString(p.Result) {
			break
		}
		changed, err := json.Marshal(map[string]string{"result": key.ReplaceAllString(p.Result, "[key]")})
		if err != nil {
			return nil, err
		}
		verdict.Action = harnessv1.HookAction_HOOK_ACTION_REPLACE
		verdict.Reason = "It held a key."
		verdict.Payload = string(changed)
		verdict.Context = "Keys are taken out of results. Do not look for them."
	case harnessv1.HookTopic_HOOK_TOPIC_SESSION_END:
		log.Printf("%s/%s ended %s, accepted: %v", r.GetHook().GetNamespace(), r.GetHook().GetRunId(), p.Status, p.Accepted)
	default: // other topics continue
	}
	return &harnessv1.HandleHookResponse{Verdict: verdict}, nil
}

// within returns the protected folder that contains name, or "".
func (s *service) within(name string) string {
	for _, folder := range s.keepOut {
		if name = path.Clean(name); name == folder || strings.HasPrefix(name, folder+"/") {
			return folder
		}
	}
	return ""
}

func main() {
	listen := flag.String("listen", "127.0.0.1:7700", "address to serve on")
	keepOut := flag.String("keep-out", "vendor,.git", "folders that tools must not write to, with commas between")
	flag.Parse()
	listener, err := net.Listen("tcp", *listen)
	if err != nil {
		log.Fatal(err)
	}
	server := grpc.NewServer()
	harnessv1.RegisterHookServiceServer(server, &service{keepOut: strings.Split(*keepOut, ",")})
	log.Printf("serving hooks on %s", listener.Addr())
	log.Fatal(server.Serve(listener))
}
