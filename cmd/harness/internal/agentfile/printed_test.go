package agentfile_test

import (
	"io/fs"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/agentfile"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// printed is an agent file with each section in the form that users rely on.
const printed = `name: coder
instructions: |
  You fix bugs.
model: openai:gpt-6.1-sol
reasoning: {effort: high}   # show: false asks for no text for people
work_items: {enabled: true}
mode: execute
tools: [{name: run_command, policy: ask}]
mcp: [{name: github, url: "https://example.com/mcp", policy: ask, load: search}, {name: fs, command: [npx, server-filesystem, .]}]
web: {fetch: true, search: {backend: searxng, url: "http://search.internal"}, allow: [search.internal]}
sandbox: {level: auto, network: {allow: [packages.example.com]}}
budgets: {turns: 40, tool_calls: 200, cost_usd: 2.5}
context: {max_input_tokens: 64000, soft_threshold: 0.8, target: 0.5, summarizer: {model: openai:gpt-5-mini}}
jit: [{id: test-first, when: "turn == 2 && writes > 0", text: "Run the tests before you go on."}]
hooks: [{topic: before_tool_call, cel: "tool == 'run_command' && args.command.contains('rm -rf')", action: deny, reason: "not here"}]
contract: contract.yaml
agents: [explore, {name: api_reviewer, description: Reviews changes of the API, instructions: …, model: openai:gpt-5-mini, tools: [read_file, search_files], max_turns: 20}]
quality: {enabled: true, model: openai:gpt-5-mini}
`

const printedContract = `goal: Write the report
required_outputs:
  - {id: report, description: The report exists, predicate: {type: FILE_EXISTS, path: report.md}}
  - {id: cites, description: It cites a source, predicate: {type: CONTAINS_TEXT, in: "file:report.md", pattern: "\\[1\\]"}}
  - {id: tests, description: Tests pass, predicate: {type: COMMAND_SUCCEEDS, command: "make test"}}
`

// TestPrintedFile: every line of the file loads, and means what it reads like.
func TestPrintedFile(t *testing.T) {
	read := func(path string) ([]byte, error) {
		if path != "contract.yaml" {
			return nil, fs.ErrNotExist
		}
		return []byte(printedContract), nil
	}
	file, err := agentfile.Parse("agent.yaml", []byte(printed), read)
	if err != nil {
		t.Fatal(err)
	}
	for i, text := range []string{
		`name: "github" url: "https://example.com/mcp" policy: TOOL_DECISION_ASK load: MCP_LOAD_SEARCH`,
		`name: "fs" command: "npx" args: "server-filesystem" args: "."`,
	} {
		want := &harnessv1.McpServer{}
		if err := prototext.Unmarshal([]byte(text), want); err != nil {
			t.Fatal(err)
		}
		if !proto.Equal(file.Agent.GetMcp()[i], want) {
			t.Errorf("got %v, want %v", file.Agent.GetMcp()[i], want)
		}
	}
	if n := file.Config.GetSandbox().GetNetwork(); n.GetMode() != harnessv1.SandboxNetworkMode_SANDBOX_NETWORK_MODE_HOSTS || len(n.GetHosts()) != 1 {
		t.Errorf("network %v", n)
	}
	if len(file.Contract.GetRequiredOutputs()) != 3 || len(file.Agent.GetAgents()) != 2 || file.Config.GetBudgets().GetTurns() != 40 || !file.Config.GetQuality().GetEnabled() {
		t.Errorf("got %v, %v, %v", file.Agent, file.Config, file.Contract)
	}
	if _, err := agentfile.Parse("agent.yaml", []byte(printed+"project: survey-2026\n"), read); err == nil || !strings.Contains(err.Error(), `project: writing projects are not built`) {
		t.Errorf("a project: %v", err)
	}
}
