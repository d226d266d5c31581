package judgement

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/harnessmesh/harnessmesh/test/kit/live"

	"google.golang.org/grpc"
	"google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// TestDecideAcceptsStatesFromReflectionOnly posts the examples of docs/decide.md as a client that
// has nothing but the server's address and its key: the messages are made from its reflection.
func TestDecideAcceptsStatesFromReflectionOnly(t *testing.T) {
	t.Parallel()
	conn := live.At(t).Conn
	method := reflected(t, conn, "harness.v1.StopDecisionService").Methods().ByName("Decide")
	for file, want := range map[string]string{
		"next-turn.json":      "repair",
		"not-signalled.json":  "repair work_complete_not_called",
		"contract-asks.json":  "needs check:report",
		"contract-unmet.json": "repair contract_not_satisfied",
		"contract-met.json":   "DONE agent_done true",
		"items-open.json":     "repair work_items_incomplete",
		"doom-loop.json":      "STALLED doom_loop false",
		"last-turn.json":      "DONE max_turns false",
	} {
		text, err := os.ReadFile(filepath.Join("../../examples/decide", file))
		if err != nil {
			t.Fatal(err)
		}
		request, response := dynamicpb.NewMessage(method.Input()), dynamicpb.NewMessage(method.Output())
		if err := protojson.Unmarshal(text, request); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if err := conn.Invoke(t.Context(), "/harness.v1.StopDecisionService/Decide", request, response); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if got := decided(t, response); got != want {
			t.Errorf("%s: %s, want %s", file, got, want)
		}
	}
}

// decided is what an answer says, in a few words.
func decided(t *testing.T, answer proto.Message) string {
	t.Helper()
	raw, err := proto.Marshal(answer)
	if err != nil {
		t.Fatal(err)
	}
	response := &harnessv1.DecideResponse{}
	if err := proto.Unmarshal(raw, response); err != nil {
		t.Fatal(err)
	}
	if needs := response.GetOutput().GetNeeds(); needs != nil {
		return "needs " + needs.GetKeys()[0]
	}
	outcome := response.GetOutput().GetOutcome()
	if r := outcome.GetStep().GetResult(); r != nil {
		accepted := " false"
		if r.GetAccepted() {
			accepted = " true"
		}
		return r.GetStatus().String()[len("RUN_STATUS_"):] + " " + r.GetReason().GetKind() + accepted
	}
	for _, e := range outcome.GetEvents() {
		if e.GetStopRejected() != nil {
			return outcome.GetStep().GetTo() + " " + e.GetStopRejected().GetKind()
		}
	}
	return outcome.GetStep().GetTo()
}

// reflected describes a service as its server does.
func reflected(t *testing.T, conn *grpc.ClientConn, service string) protoreflect.ServiceDescriptor {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	stream, err := grpc_reflection_v1.NewServerReflectionClient(conn).ServerReflectionInfo(ctx)
	if err != nil {
		t.Fatal(err)
	}
	set := &descriptorpb.FileDescriptorSet{}
	have := map[string]bool{}
	take := func(ask *grpc_reflection_v1.ServerReflectionRequest) (missing []string) {
		if err := stream.Send(ask); err != nil && !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
		answer, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		for _, raw := range answer.GetFileDescriptorResponse().GetFileDescriptorProto() {
			file := &descriptorpb.FileDescriptorProto{}
			if err := proto.Unmarshal(raw, file); err != nil {
				t.Fatal(err)
			}
			if !have[file.GetName()] {
				have[file.GetName()] = true
				set.File = append(set.File, file)
				missing = append(missing, file.GetDependency()...)
			}
		}
		return missing
	}
	missing := take(&grpc_reflection_v1.ServerReflectionRequest{MessageRequest: &grpc_reflection_v1.ServerReflectionRequest_FileContainingSymbol{FileContainingSymbol: service}})
	for len(missing) > 0 {
		name := missing[0]
		missing = missing[1:]
		if !have[name] {
			missing = append(missing, take(&grpc_reflection_v1.ServerReflectionRequest{MessageRequest: &grpc_reflection_v1.ServerReflectionRequest_FileByFilename{FileByFilename: name}})...)
		}
	}
	files, err := protodesc.NewFiles(set)
	if err != nil {
		t.Fatal(err)
	}
	found, err := files.FindDescriptorByName(protoreflect.FullName(service))
	if err != nil {
		t.Fatal(err)
	}
	return found.(protoreflect.ServiceDescriptor)
}
