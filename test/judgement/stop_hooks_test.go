package judgement

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/test/kit/live"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// Subscribers of agent_stop are given the turn count, the calls of each tool, whether
// work_complete was called, and the status of items and contract.
func TestStopHooksAreGivenTheState(t *testing.T) {
	t.Parallel()
	s := live.Play(t, stopOnce(
		live.Calls(live.Call("work_item_add", live.Args{"title": "One"}), live.Call("work_item_add", live.Args{"title": "Two"})),
		live.Calls(stopRead("a.txt"), stopRead("b.txt"), live.Call("no_such_tool", live.Args{})),
		live.Calls(live.Call("work_item_update", live.Args{"id": "w1", "status": "DONE"}), live.Call("work_item_update", live.Args{"id": "w2", "status": "SKIPPED", "notes": "not wanted"})),
		live.Calls(stopWrite("report.md", "r")),
	), stopItems, stopWanted("report.md"), loopsABC(t), stopHooks(&harnessv1.Hook{
		Id: "ask", Topic: harnessv1.HookTopic_HOOK_TOPIC_AGENT_STOP, Command: "cat > asked.json",
	}))
	s.Want("DONE agent_done accepted")
	raw, err := os.ReadFile(filepath.Join(s.Dir, "asked.json"))
	if err != nil {
		t.Fatal(err)
	}
	payload := stopPayload(t, raw)
	if got := payload["turn_count"]; got != 5.0 {
		t.Errorf("turn_count %v", got)
	}
	if got := payload["called_work_complete"]; got != true {
		t.Errorf("called_work_complete %v", got)
	}
	usage, _ := payload["tool_usage"].(map[string]any)
	for tool, n := range map[string]float64{"work_item_add": 2, "read_file": 2, "work_item_update": 2, "write_file": 1, "work_complete": 1} {
		if usage[tool] != n {
			t.Errorf("%s was called %v times, want %v; %v", tool, usage[tool], n, usage)
		}
	}
	items, _ := payload["work_items"].(map[string]any)
	if items["open"] != 0.0 || items["finished"] != 2.0 || items["total"] != 2.0 {
		t.Errorf("work items %v", items)
	}
	contract, _ := payload["contract"].(map[string]any)
	if contract["met"] != 1.0 || contract["total"] != 1.0 {
		t.Errorf("contract %v", contract)
	}
}

// stopPayload is the payload of a hook's request, which travels as an object or as the
// text of one.
func stopPayload(t *testing.T, raw []byte) map[string]any {
	t.Helper()
	var request struct {
		Payload json.RawMessage `json:"payload"`
	}
	if err := json.Unmarshal(raw, &request); err != nil {
		t.Fatalf("%v: %s", err, raw)
	}
	var text string
	if json.Unmarshal(request.Payload, &text) == nil {
		request.Payload = json.RawMessage(text)
	}
	payload := map[string]any{}
	if err := json.Unmarshal(request.Payload, &payload); err != nil {
		t.Fatalf("%v: %s", err, raw)
	}
	return payload
}

// CEL can use each field of the state.
func TestStopHooksInCELSeeTheState(t *testing.T) {
	t.Parallel()
	for name, cel := range map[string]string{
		"turn":                 `turn < 3`,
		"called_work_complete": `called_work_complete && turn < 3`,
		"tool_usage":           `!("write_file" in tool_usage)`,
		"tool_usage count":     `tool_usage["work_complete"] < 2`,
		"work_items":           `work_items.total < 1`,
		"work_items finished":  `work_items.open == 0 && work_items.finished == 0`,
		"contract":             `contract.total == 1 && contract.met == 1 && turn < 3`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := live.Play(t, stopOnce(
				live.Calls(stopDone("one")),
				live.Calls(stopWrite("more.txt", "m"), live.Call("work_item_add", live.Args{"title": "One"}), live.Call("work_item_update", live.Args{"id": "w1", "status": "DONE"})),
			), stopItems, stopWanted("there.txt"), stopFiles(t, map[string]string{"there.txt": "x"}), stopHooks(stopBlock(cel, "because of "+name)))
			s.Want("DONE agent_done accepted")
			stopSame(t, "rejections", stopRejected(s), "1 agent_stop_hook_blocked 1")
			stopTold(t, s, 1, "because of "+name)
		})
	}
}

// The first subscriber that blocks decides: those after it are not called, those before
// it were.
func TestStopFirstHookThatBlocksDecides(t *testing.T) {
	t.Parallel()
	s := live.Play(t, stopOnce(live.Calls(stopDone("one")), live.Calls(stopWrite("first.ok", "")), live.Calls(stopDone("two")), live.Calls(stopWrite("second.ok", ""))),
		stopHooks(
			&harnessv1.Hook{Id: "log", Topic: harnessv1.HookTopic_HOOK_TOPIC_AGENT_STOP, Command: "echo x >> log"},
			&harnessv1.Hook{Id: "one", Topic: harnessv1.HookTopic_HOOK_TOPIC_AGENT_STOP, Command: "test -f first.ok || { echo first.ok is missing >&2; exit 2; }"},
			&harnessv1.Hook{Id: "two", Topic: harnessv1.HookTopic_HOOK_TOPIC_AGENT_STOP, Command: "echo x >> two; test -f second.ok || { echo second.ok is missing >&2; exit 2; }"},
		))
	s.Want("DONE agent_done accepted")
	stopSame(t, "rejections", stopRejected(s), "1 agent_stop_hook_blocked 1", "3 agent_stop_hook_blocked 2")
	stopTold(t, s, 1, "first.ok is missing")
	stopTold(t, s, 3, "second.ok is missing")
	if strings.Contains(s.Added(1), "second.ok is missing") {
		t.Error("the second subscriber was heard though the first had blocked")
	}
	for file, want := range map[string]string{"log": "x\nx\nx\n", "two": "x\nx\n"} {
		if got, err := os.ReadFile(filepath.Join(s.Dir, file)); err != nil || string(got) != want {
			t.Errorf("%s holds %q, %v; want %q", file, got, err, want)
		}
	}
}
