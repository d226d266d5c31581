package gatewayserver_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"slices"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/services/gateway/gatewayserver"
)

// payload is an opaque part of a provider.
const payload = `{"type":"thinking","signature":"EqQBCgIYAhIkMDBkZW1v"}`

// answers records the messages that a client receives, by the full name of the method.
type answers struct {
	t        *testing.T
	received map[string][]proto.Message
}

func (a *answers) add(method string, m any) {
	message, ok := m.(proto.Message)
	if !ok {
		a.t.Errorf("%s returns a %T", method, m)
	}
	a.received[method] = append(a.received[method], proto.Clone(message))
}

// recordedStream records what it receives.
type recordedStream struct {
	grpc.ClientStream
	record func(m any)
}

// RecvMsg receives a message and records it.
func (s recordedStream) RecvMsg(m any) error {
	err := s.ClientStream.RecvMsg(m)
	if err == nil {
		s.record(m)
	}
	return err
}

// dialRecorded opens a connection to the gateway whose answers are recorded.
func (b *bed) dialRecorded(a *answers) harnessv1.GatewayServiceClient {
	b.t.Helper()
	conn, err := grpc.NewClient(b.address, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithUnaryInterceptor(func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, call grpc.UnaryInvoker, opts ...grpc.CallOption) error {
			err := call(ctx, method, req, reply, cc, opts...)
			if err == nil {
				a.add(method, reply)
			}
			return err
		}),
		grpc.WithStreamInterceptor(func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
			stream, err := open(ctx, desc, cc, method, opts...)
			return recordedStream{stream, func(m any) { a.add(method, m) }}, err
		}))
	b.must(err)
	b.t.Cleanup(func() { _ = conn.Close() })
	return harnessv1.NewGatewayServiceClient(conn)
}

// reasons appends the records of a turn whose response has opaque parts, inline and in a
// blob, and returns the digests of the blobs of the text and of the part.
func (h *hand) reasons(turn uint32) (text, part string) {
	h.b.t.Helper()
	stored, err := h.b.log.PutBlob(h.b.ctx, h.run, []byte(payload))
	h.b.must(err)
	shown, err := h.b.log.PutBlob(h.b.ctx, h.run, []byte("a long answer"))
	h.b.must(err)
	inline := &harnessv1.Opaque{Value: &harnessv1.Opaque_Inline{Inline: []byte(payload)}}
	blob := &harnessv1.Opaque{Value: &harnessv1.Opaque_Blob{Blob: &harnessv1.BlobRef{Digest: stored.GetDigest(), Size: stored.GetSize()}}}
	h.step("turn", nil)
	h.journal(&harnessv1.Journal{Entry: &harnessv1.Journal_TurnStarted{TurnStarted: &harnessv1.TurnStarted{TurnNumber: turn, Attempt: 1}}}, nil,
		&harnessv1.Event{TurnNumber: turn, Event: &harnessv1.Event_StepStart{StepStart: &harnessv1.StepStart{Attempt: 1}}})
	h.journal(&harnessv1.Journal{Entry: &harnessv1.Journal_ModelResponded{ModelResponded: &harnessv1.ModelResponded{}}},
		[]*harnessv1.Message{{
			Id: 1, Role: harnessv1.Role_ROLE_ASSISTANT, Content: &harnessv1.Content{Value: &harnessv1.Content_Blob{Blob: shown}},
			ToolCalls: []*harnessv1.ToolCall{{Id: "c1", Name: "read_file", Arguments: content.Inline("{}")}},
			Parts: []*harnessv1.Part{
				{Kind: &harnessv1.Part_Reasoning{Reasoning: &harnessv1.Reasoning{Text: content.Inline("for people")}}, Opaque: inline},
				{Opaque: blob},
				{Kind: &harnessv1.Part_Text{Text: shown.GetSize()}, Opaque: inline},
				{Kind: &harnessv1.Part_Call{Call: 0}, Opaque: blob},
			},
			Origin: &harnessv1.Origin{Wire: "messages", Endpoint: "e", Model: "m", RequestDigest: []byte("d")},
		}},
		&harnessv1.Event{TurnNumber: turn, Event: &harnessv1.Event_ModelResponse{ModelResponse: &harnessv1.ModelResponse{}}})
	return shown.GetDigest(), stored.GetDigest()
}

// callAll calls each method of the gateway about a run that is parked.
func (b *bed) callAll(client harnessv1.GatewayServiceClient, h *hand, text string) {
	b.t.Helper()
	namespace, id := b.namespace, h.run.ID
	ok := func(_ any, err error) {
		b.t.Helper()
		b.must(err)
	}
	drain := func(stream interface{ RecvMsg(any) error }, m proto.Message) {
		for stream.RecvMsg(m) == nil {
			if all, ok := m.(*harnessv1.WatchRunsResponse); ok && all.GetCaughtUp() != nil {
				return
			}
		}
	}
	watch, err := client.WatchRun(b.ctx, &harnessv1.WatchRunRequest{Namespace: namespace, RunId: id, Until: harnessv1.WatchUntil_WATCH_UNTIL_NOW})
	b.must(err)
	drain(watch, &harnessv1.WatchRunResponse{})
	runs, err := client.WatchRuns(b.ctx, &harnessv1.WatchRunsRequest{Namespace: namespace})
	b.must(err)
	drain(runs, &harnessv1.WatchRunsResponse{})
	blob, err := client.GetBlob(b.ctx, &harnessv1.GetBlobRequest{Namespace: namespace, RunId: id, Digest: text})
	b.must(err)
	drain(blob, &harnessv1.GetBlobResponse{})
	ok(client.StartRun(b.ctx, b.start(id, "do it")))
	ok(client.GetRun(b.ctx, &harnessv1.GetRunRequest{Namespace: namespace, RunId: id}))
	ok(client.GetState(b.ctx, &harnessv1.GetStateRequest{Namespace: namespace, RunId: id}))
	ok(client.GetConversation(b.ctx, &harnessv1.GetConversationRequest{Namespace: namespace, RunId: id}))
	ok(client.GetContext(b.ctx, &harnessv1.GetContextRequest{Namespace: namespace, RunId: id}))
	ok(client.ListRuns(b.ctx, &harnessv1.ListRunsRequest{Namespace: namespace}))
	ok(client.GetPrompts(b.ctx, &harnessv1.GetPromptsRequest{Namespace: namespace}))
	ok(client.SetPrompt(b.ctx, &harnessv1.SetPromptRequest{Namespace: namespace, Id: "healing", Text: "Again."}))
	ok(client.GetProfile(b.ctx, &harnessv1.GetProfileRequest{Namespace: namespace, Profile: "/w"}))
	ok(client.ResetProfile(b.ctx, &harnessv1.ResetProfileRequest{Namespace: namespace, Profile: "/w"}))
	ok(client.StartSignIn(b.ctx, &harnessv1.StartSignInRequest{Namespace: namespace, Subject: webSubject()}))
	ok(client.FinishSignIn(b.ctx, &harnessv1.FinishSignInRequest{Namespace: namespace, Returned: &harnessv1.SignInReturn{State: "s"}}))
	ok(client.GetSignIn(b.ctx, &harnessv1.GetSignInRequest{Namespace: namespace, Subject: webSubject()}))
	ok(client.SignOut(b.ctx, &harnessv1.SignOutRequest{Namespace: namespace, Subject: webSubject()}))
	ok(client.ListPending(b.ctx, &harnessv1.ListPendingRequest{Namespace: namespace}))
	ok(client.SendInput(b.ctx, &harnessv1.SendInputRequest{Namespace: namespace, RunId: id,
		Input: &harnessv1.SendInputRequest_UserMessage{UserMessage: &harnessv1.UserMessage{Content: content.Inline("go on")}}}))
	ok(client.InterruptRun(b.ctx, &harnessv1.InterruptRunRequest{Namespace: namespace, RunId: id}))
	ok(client.ResumeRun(b.ctx, &harnessv1.ResumeRunRequest{Namespace: namespace, RunId: id}))
	ok(client.CancelRun(b.ctx, &harnessv1.CancelRunRequest{Namespace: namespace, RunId: id}))
	h.end(harnessv1.RunStatus_RUN_STATUS_CANCELLED)
	session, err := client.Run(b.ctx)
	b.must(err)
	b.must(session.Send(b.attachAnswering(id, false)))
	b.must(session.CloseSend())
	drain(session, &harnessv1.RunResponse{})
	ok(client.DeleteRun(b.ctx, &harnessv1.DeleteRunRequest{Namespace: namespace, RunId: id}))
}

// TestNoAnswerHasOpaqueBytes calls each method of the gateway about a run whose
// conversation has opaque parts.
func TestNoAnswerHasOpaqueBytes(t *testing.T) {
	b := newBed(t, func(c *gatewayserver.Config) { c.SignIns = &signInHost{} })
	a := &answers{t: t, received: map[string][]proto.Message{}}
	h := b.started("r1")
	text, part := h.reasons(1)
	h.park("approval", approvalCall("c1"))
	b.callAll(b.dialRecorded(a), h, text)

	encoded := base64.StdEncoding.EncodeToString([]byte(payload))
	thoughts := 0
	for _, method := range gatewayMethods() {
		if len(a.received[method]) == 0 {
			t.Errorf("%s was not called", method)
		}
		for _, m := range a.received[method] {
			visit(m.ProtoReflect(), func(m protoreflect.Message) {
				switch m.Interface().(type) {
				case *harnessv1.Opaque:
					t.Errorf("%s returns an opaque part", method)
				case *harnessv1.Reasoning:
					thoughts++
				}
			})
			wire, err := proto.Marshal(m)
			b.must(err)
			for what, secret := range map[string]string{"a payload": payload, "an encoded payload": encoded, "the digest of a payload": part} {
				if bytes.Contains(wire, []byte(secret)) {
					t.Errorf("%s returns %s", method, what)
				}
			}
		}
	}
	if thoughts == 0 {
		t.Error("no answer has the reasoning for people")
	}
}

func gatewayMethods() []string {
	d := harnessv1.GatewayService_ServiceDesc
	var names []string
	for _, m := range d.Methods {
		names = append(names, m.MethodName)
	}
	for _, s := range d.Streams {
		names = append(names, s.StreamName)
	}
	slices.Sort(names)
	for i, name := range names {
		names[i] = "/" + d.ServiceName + "/" + name
	}
	return names
}

// visit calls see with m and all messages in it.
func visit(m protoreflect.Message, see func(protoreflect.Message)) {
	see(m)
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case f.Message() == nil:
		case f.IsMap():
			v.Map().Range(func(_ protoreflect.MapKey, v protoreflect.Value) bool {
				if f.MapValue().Message() != nil {
					visit(v.Message(), see)
				}
				return true
			})
		case f.IsList():
			for i := range v.List().Len() {
				visit(v.List().Get(i).Message(), see)
			}
		default:
			visit(v.Message(), see)
		}
		return true
	})
}
