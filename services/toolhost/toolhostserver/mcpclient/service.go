package mcpclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/tool/mcptool"
	"github.com/harnessmesh/harnessmesh/pkg/transport/remote"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/mcpclient/signin"
)

// maxToolName bounds the name of a tool of a ToolService, in bytes.
const maxToolName = 256

// service is the connection to a ToolService. It is gone when its server is; calls that run then
// can still end, because a server that stops in order finishes them.
type service struct {
	conn   *grpc.ClientConn
	client harnessv1.ToolServiceClient
	// headers are the metadata of each call.
	headers metadata.MD
	// calls is locked for reading by each call, and for writing by what closes conn.
	calls sync.RWMutex
}

var errConnectionLost = errors.New("its connection was lost")

// connectService connects to a ToolService and lists its tools.
func (s *session) connectService(ctx context.Context, stop context.CancelCauseFunc) (*connection, []*harnessv1.McpDefinition, []*harnessv1.McpLeftOut, error) {
	fail := func(err error) (*connection, []*harnessv1.McpDefinition, []*harnessv1.McpLeftOut, error) {
		stop(err)
		return nil, nil, nil, err
	}
	headers, err := s.metadata()
	if err != nil {
		return fail(err)
	}
	grpcConn, err := s.servers.config.Dial(s.server)
	if err != nil {
		return fail(err)
	}
	to := &service{conn: grpcConn, client: harnessv1.NewToolServiceClient(grpcConn), headers: headers}
	conn := &connection{stop: stop, gone: make(chan struct{}), noted: make(chan struct{}), unauthorized: &atomic.Bool{}, service: to}
	bounded, cancel := context.WithTimeoutCause(ctx, startTimeout, fmt.Errorf("it did not answer within %v", startTimeout))
	defer cancel()
	tools, leftOut, err := to.describe(bounded, s.run.Namespace)
	if err != nil {
		if cause := context.Cause(bounded); cause != nil {
			err = cause
		}
		_ = grpcConn.Close()
		return fail(err)
	}
	tools, leftOut = s.secrets.without(tools, leftOut)
	s.servers.running.Go(func() {
		for state := connectivity.Ready; state == connectivity.Ready; state = grpcConn.GetState() {
			if !grpcConn.WaitForStateChange(ctx, state) {
				break
			}
		}
		if context.Cause(ctx) == nil {
			conn.cause = errConnectionLost
		}
		stop(errEnded)
		close(conn.gone)
		to.calls.Lock()
		defer to.calls.Unlock()
		_ = grpcConn.Close()
	})
	return conn, tools, leftOut, nil
}

// metadata returns the headers of the settings, with the values of their variables.
func (s *session) metadata() (metadata.MD, error) {
	headers := metadata.MD{}
	for _, name := range slices.Sorted(maps.Keys(s.server.GetHeaders())) {
		value, err := s.expand(s.server.GetHeaders()[name])
		if err != nil {
			return nil, err
		}
		s.secrets.addHeader(name, value)
		headers.Set(name, value)
	}
	return headers, nil
}

// describe lists the tools of the service. Those whose definitions cannot be taken are returned
// apart.
func (c *service) describe(ctx context.Context, namespace string) ([]*harnessv1.McpDefinition, []*harnessv1.McpLeftOut, error) {
	ctx = metadata.NewOutgoingContext(ctx, c.headers)
	l, token, remembers := &toolList{}, "", false
	for range maxPages {
		page, err := c.client.Describe(ctx, &harnessv1.ToolServiceDescribeRequest{Namespace: namespace, PageToken: token}, grpc.MaxCallRecvMsgSize(maxMessage))
		if err != nil {
			return nil, nil, describeError(err)
		}
		remembers = remembers || page.GetRemembersKeys() && token == ""
		for _, t := range page.GetTools() {
			d, reason := serviceDefinition(t, remembers)
			l.add(t.GetName(), d, reason)
		}
		if page.GetNextPageToken() == "" || page.GetNextPageToken() == token || l.full() {
			break
		}
		token = page.GetNextPageToken()
	}
	slices.SortFunc(l.tools, func(a, b *harnessv1.McpDefinition) int { return strings.Compare(a.GetTool(), b.GetTool()) })
	return l.tools, l.leftOut, nil
}

// describeError returns why a service cannot be used.
func describeError(err error) error {
	switch reason := remote.Reason(err); status.Code(err) {
	case codes.Unauthenticated:
		return signin.ErrNeeded
	case codes.Unavailable:
		return fmt.Errorf("it cannot be reached: %s", reason)
	case codes.Unimplemented:
		return errors.New("it does not serve harness.v1.ToolService")
	default:
		return fmt.Errorf("list its tools: %s", reason)
	}
}

// serviceDefinition returns a tool as it is recorded; reason is why it cannot be.
func serviceDefinition(t *harnessv1.ToolServiceTool, remembers bool) (d *harnessv1.McpDefinition, reason string) {
	if t.GetName() == "" || len(t.GetName()) > maxToolName {
		return nil, "its name does not have 1 to 256 bytes"
	}
	h := mcptool.Hints{
		ReadOnly: t.GetHints().GetReadOnly(), Idempotent: t.GetHints().GetIdempotent(), ParallelSafe: t.GetHints().GetParallelSafe(),
		Explores: t.GetHints().GetExplores(), Remembers: remembers,
	}
	if hints := t.GetHints(); hints != nil {
		h.Destructive = hints.Destructive
	}
	if durability := t.GetHints().GetDurability(); durability != harnessv1.Durability_DURABILITY_UNSPECIFIED {
		h.Durability = durability.String()
	}
	d = &harnessv1.McpDefinition{Tool: t.GetName(), Description: t.GetDescription(), Schema: t.GetParametersSchema()}
	if strings.TrimSpace(d.GetSchema()) == "" {
		d.Schema = `{"type":"object","additionalProperties":false}`
	}
	hints, err := json.Marshal(h)
	if err != nil {
		return nil, "its hints are not JSON"
	}
	d.Hints = string(hints)
	return finished(d)
}
