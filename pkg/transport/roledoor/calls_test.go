package roledoor_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/harnessmesh/harnessmesh/pkg/transport/roledoor"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
)

// everyRole are the roles that a certificate may name.
func everyRole() []string { return append(workflow.Roles(), workflow.Bridge, "unknown", "") }

// toolHostMethods returns the callers of each method of a tool host.
func toolHostMethods() map[string]string {
	return map[string]string{
		"DescribeHost":      "gateway repair turn",
		"DescribeWorkspace": "gateway repair",
		"ExecuteTool":       "turn",
		"ReadCallOutput":    "turn",
		"InspectWorkspace":  "stopdecision turn",
		"CheckFile":         "stopdecision",
		"CheckCommand":      "repair stopdecision turn",
		"CancelTools":       "repair stopdecision turn",
		"MakeWorktree":      "repair",
		"EndWorktree":       "repair",
		"DescribeServers":   "repair",
		"CheckAddress":      "repair",

		"StartServerSignIn":    "gateway",
		"FinishServerSignIn":   "gateway",
		"DescribeServerSignIn": "gateway",
		"EndServerSignIn":      "gateway",
	}
}

// methods returns every method of the services of harness.v1.
func methods(t *testing.T) []string {
	t.Helper()
	var all []string
	protoregistry.GlobalFiles.RangeFilesByPackage("harness.v1", func(file protoreflect.FileDescriptor) bool {
		for i := range file.Services().Len() {
			service := file.Services().Get(i)
			for j := range service.Methods().Len() {
				all = append(all, "/"+string(service.FullName())+"/"+string(service.Methods().Get(j).Name()))
			}
		}
		return true
	})
	if len(all) < 20 {
		t.Fatalf("only %d methods: %v", len(all), all)
	}
	return all
}

// TestEachRoleCallsItsMethods checks each cell: every role and every method of every service. A role
// calls tool hosts and nothing else.
func TestEachRoleCallsItsMethods(t *testing.T) {
	want := toolHostMethods()
	for _, method := range methods(t) {
		host, name, _ := strings.Cut(strings.TrimPrefix(method, "/harness.v1."), "/")
		by, known := want[name]
		if isHost := host == "ToolHostService"; isHost && !known {
			t.Errorf("%s: no role calls it, or the table lacks it", method)
		} else if !isHost {
			by = ""
		}
		for _, role := range everyRole() {
			if may := roledoor.MayCall(role, method); may != (role != "" && slices.Contains(strings.Fields(by), role)) {
				t.Errorf("%q may call %s: %v", role, method, may)
			}
		}
		if got := strings.Join(roledoor.Callers(method), " "); got != by {
			t.Errorf("callers of %s: %q, want %q", method, got, by)
		}
	}
	for _, role := range everyRole() {
		if !roledoor.MayCall(role, "/grpc.health.v1.Health/Check") || !roledoor.MayCall(role, "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo") {
			t.Errorf("%q may not call health or reflection", role)
		}
		if roledoor.MayCall(role, "/other.Service/ExecuteTool") || roledoor.MayCall(role, "") {
			t.Errorf("%q may call an unknown method", role)
		}
	}
}

// TestEveryServiceHasItsRole: a service of a role is known as one; the gateway's and those
// that users serve are not.
func TestEveryServiceHasItsRole(t *testing.T) {
	want := map[string]string{
		"ToolHostService": workflow.ToolHost, "RepairService": workflow.Repair, "CompactionService": workflow.Compaction, "TurnService": workflow.Turn,
		"StopDecisionService": workflow.StopDecision, "InferenceService": workflow.Inference, "ExecutorService": workflow.Bridge,
		"GatewayService": "", "HookService": "", "CheckService": "", "ContextService": "", "LocalService": "", "ToolService": "",
	}
	for _, method := range methods(t) {
		service, _, _ := strings.Cut(strings.TrimPrefix(method, "/harness.v1."), "/")
		role, known := want[service]
		if !known {
			t.Errorf("%s is new: add the role that serves it, or none", service)
		}
		if got := roledoor.RoleOf(method); got != role {
			t.Errorf("role of %s: %q, want %q", method, got, role)
		}
	}
}

// TestTableIsDocumented compares the table with the one in docs/security.md.
func TestTableIsDocumented(t *testing.T) {
	raw, err := os.ReadFile("../../../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]string{}
	for line := range strings.Lines(string(raw)) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		if len(cells) != 4 || !strings.HasPrefix(strings.TrimSpace(cells[1]), "`ToolHostService/") {
			continue
		}
		by := strings.Split(strings.TrimSpace(cells[2]), ", ")
		slices.Sort(by)
		documented["/harness.v1."+strings.Trim(strings.TrimSpace(cells[1]), "`")] = strings.Join(by, " ")
	}
	for _, method := range roledoor.Methods() {
		if got := strings.Join(roledoor.Callers(method), " "); documented[method] != got {
			t.Errorf("docs/security.md: callers of %s: %q, want %q", method, documented[method], got)
		}
	}
	if len(documented) != len(roledoor.Methods()) {
		t.Errorf("docs/security.md has %d methods, want %d", len(documented), len(roledoor.Methods()))
	}
}
