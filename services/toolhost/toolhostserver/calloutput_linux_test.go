package toolhostserver

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/durationpb"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/services/toolhost"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/tools"
)

// outputRequest asks for the output of a call, and waits for it.
func outputRequest(of *harnessv1.ExecuteToolRequest, offset int) *harnessv1.ReadCallOutputRequest {
	return &harnessv1.ReadCallOutputRequest{
		Namespace: of.GetNamespace(), RunId: of.GetRunId(), CallId: of.GetCallId(), FirstSequence: of.GetFirstSequence(),
		Offset: uint64(offset), Wait: durationpb.New(20 * time.Second),
	}
}

func TestOutputOfARunningCallIsRead(t *testing.T) {
	t.Parallel()
	h := newHost(t, Config{})
	req := h.request(tools.RunCommand, "", map[string]any{"command": "printf one; until [ -e more ]; do sleep 0.02; done; " +
		"head -c 100000 /dev/zero | tr '\\0' x; until [ -e end ]; do sleep 0.02; done"})
	read := func(offset int) *harnessv1.ReadCallOutputResponse {
		t.Helper()
		resp, err := h.ReadCallOutput(context.Background(), outputRequest(req, offset))
		if err != nil {
			t.Fatal(err)
		}
		return resp
	}
	if resp := read(0); resp.GetRunning() || resp.GetText() != "" {
		t.Errorf("before the call: %v", resp)
	}
	ended := make(chan error, 1)
	go func() {
		_, err := h.ExecuteTool(context.Background(), req)
		ended <- err
	}()
	resp := read(0)
	for !resp.GetRunning() { // it has not begun
		resp = read(0)
	}
	if resp.GetOffset() != 0 || resp.GetText() != "one" {
		t.Errorf("%v", resp)
	}
	h.write("more", "")
	at := 3
	for at < 100_003 {
		resp = read(at)
		if !resp.GetRunning() || int(resp.GetOffset()) < at || resp.GetText() == "" || len(resp.GetText()) > toolhost.RecentBytes || strings.Trim(resp.GetText(), "x") != "" {
			t.Fatalf("after %d: %v", at, resp)
		}
		at = int(resp.GetOffset()) + len(resp.GetText())
	}
	if at != 100_003 {
		t.Errorf("the output has %d bytes", at)
	}
	waiting := make(chan *harnessv1.ReadCallOutputResponse, 1)
	go func() { waiting <- read(at) }()
	h.write("end", "")
	if resp := <-waiting; resp.GetText() != "" || resp.GetRunning() && len(ended) > 0 {
		t.Errorf("at the end: %v", resp)
	}
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if resp := read(0); resp.GetRunning() || resp.GetText() != "" {
		t.Errorf("after the call: %v", resp)
	}
	if got, _ := filepath.Glob(filepath.Join(h.dir, "more")); len(got) != 1 {
		t.Error("the command ran elsewhere")
	}
}

func TestInvalidRequestsForOutput(t *testing.T) {
	t.Parallel()
	h := newHost(t, Config{})
	of := h.request(tools.RunCommand, "", map[string]any{"command": "true"})
	for name, spoil := range map[string]func(*harnessv1.ReadCallOutputRequest){
		"no run":          func(r *harnessv1.ReadCallOutputRequest) { r.RunId = "" },
		"no call":         func(r *harnessv1.ReadCallOutputRequest) { r.CallId = "" },
		"a long wait":     func(r *harnessv1.ReadCallOutputRequest) { r.Wait = durationpb.New(31 * time.Second) },
		"a negative wait": func(r *harnessv1.ReadCallOutputRequest) { r.Wait = durationpb.New(-1) },
	} {
		r := outputRequest(of, 0)
		spoil(r)
		if _, err := h.ReadCallOutput(context.Background(), r); code(err) != codes.InvalidArgument {
			t.Errorf("%s: %v", name, err)
		}
	}
}
