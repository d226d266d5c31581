//go:build linux

package run_test

import (
	"encoding/json"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/harnesstest"
	"github.com/harnessmesh/harnessmesh/pkg/telemetry/runtrace"
	"github.com/harnessmesh/harnessmesh/test/kit/oteltest"
)

// collecting is the environment of a program that sends its spans to a collector.
func collecting(t *testing.T, more ...string) (map[string]string, *oteltest.Collector) {
	t.Helper()
	c := oteltest.Start(t)
	env := map[string]string{}
	for _, pair := range append(c.Env(), more...) {
		name, value, _ := strings.Cut(pair, "=")
		env[name] = value
	}
	return env, c
}

// TestChapters: a run of more than 100 turns is two traces; each is whole, and the
// second leads back to the first.
func TestChapters(t *testing.T) {
	if testing.Short() {
		t.Skip("runs the program for seconds")
	}
	t.Parallel()
	var script strings.Builder
	script.WriteString("turns:\n")
	for i := range 104 {
		fmt.Fprintf(&script, "  - {text: Step %d., calls: [{name: list_directory, arguments: {path: d%d}}]}\n", i, i)
	}
	script.WriteString("  - {calls: [{name: work_complete, arguments: {summary: done}}]}\n")
	p := harnesstest.NewPlace(t, script.String())
	agent := harnesstest.Write(t, filepath.Join(filepath.Dir(p.Script), "agent.yaml"), "name: walker\nstall: {enabled: false}\ndoom_loop: {enabled: false}\n")
	env, collector := collecting(t)
	env["HARNESS_TRACE_URL"] = "https://traces.example/trace/{trace_id}"
	got := harnesstest.Call(t, env, "", p.Run("--run-id", "long", "--agent", agent, "--max-turns", "500", "--max-tool-calls", "500", "--output", "jsonl", "walk")...)
	if got.Code != 0 {
		t.Fatalf("exit code %d\n%s", got.Code, got.Err)
	}
	spans := collector.Spans()
	for _, line := range oteltest.Loose(spans) {
		t.Error(line)
	}
	byTrace := map[string][]oteltest.Span{}
	var first, second oteltest.Span
	for _, s := range spans {
		byTrace[s.Trace] = append(byTrace[s.Trace], s)
		if s.Name == "invoke_agent walker" {
			first, second = second, s
		}
	}
	if len(byTrace) != 2 || first.Trace == second.Trace {
		t.Fatalf("%d traces; chapters %s and %s", len(byTrace), first.Trace, second.Trace)
	}
	if n := len(byTrace[first.Trace]); n > 1100 {
		t.Errorf("the first chapter has %d spans", n)
	}
	if second.Parent != "" || len(second.Links) != 1 || second.Links[0].Trace != first.Trace || second.Links[0].ID != first.ID {
		t.Errorf("the second chapter hangs on %q and leads to %v", second.Parent, second.Links)
	}
	cycles := map[string]int{}
	for _, s := range spans {
		if strings.HasPrefix(s.Name, "turn ") {
			cycles[s.Trace]++
		}
	}
	if cycles[first.Trace] != runtrace.ChapterTurns || cycles[second.Trace] != 5 {
		t.Errorf("turns by trace: %v", cycles)
	}
	named := map[string]bool{}
	for line := range strings.Lines(got.Out) {
		var e struct {
			Type    string
			TraceID string `json:"trace_id"`
		}
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		if e.Type != "delta" && e.Type != "tool.output" && e.Type != "result" {
			named[e.TraceID] = true
		}
	}
	if len(named) != 2 || !named[first.Trace] || !named[second.Trace] {
		t.Errorf("events name the traces %v", named)
	}
	shown := harnesstest.Call(t, env, "", "show", "long", "--data", p.Data)
	for from, id := range map[int]string{1: first.Trace, 101: second.Trace} {
		if want := fmt.Sprintf("trace       https://traces.example/trace/%s  (turns from %d)\n", id, from); !strings.Contains(shown.Out, want) {
			t.Errorf("harness show does not say %q:\n%s", want, shown.Out)
		}
	}
}

func TestWhatWasSaidIsInSpansOnRequest(t *testing.T) {
	t.Parallel()
	p := harnesstest.NewPlace(t, harnesstest.Finishes)
	env, collector := collecting(t, "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=true")
	if got := harnesstest.Call(t, env, "", p.Run("look at everything")...); got.Code != 0 {
		t.Fatalf("%+v", got)
	}
	attributes := map[string]map[string]any{}
	for _, s := range collector.Spans() {
		if attributes[s.Name] == nil {
			attributes[s.Name] = s.Attributes
		}
	}
	chat, tool := attributes["chat script.yaml"], attributes["execute_tool list_directory"]
	var asked, said []struct {
		Role  string
		Parts []struct{ Type, Content, Name string }
	}
	for key, into := range map[string]any{"gen_ai.input.messages": &asked, "gen_ai.output.messages": &said} {
		if err := json.Unmarshal([]byte(fmt.Sprint(chat[key])), into); err != nil {
			t.Fatalf("%s: %v", key, err)
		}
	}
	if !strings.Contains(fmt.Sprint(asked), "look at everything") {
		t.Errorf("the messages to the model are %v", asked)
	}
	if len(said) != 1 || said[0].Role != "assistant" || said[0].Parts[0].Content != "Looking." || said[0].Parts[1].Name != "list_directory" {
		t.Errorf("the model says %v", said)
	}
	if tool["gen_ai.tool.call.arguments"] != "{}" || tool["gen_ai.tool.call.result"] == nil {
		t.Errorf("the tool's span has %v", tool)
	}
}

func TestWithoutTracingNothingOfItIsInTheRecord(t *testing.T) {
	if testing.Short() {
		t.Skip("runs the program for seconds")
	}
	t.Parallel()
	for name, env := range map[string]map[string]string{
		"nothing is said":     nil,
		"nothing is exported": {"OTEL_TRACES_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"},
		"nothing is sampled":  {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_TRACES_SAMPLER": "parentbased_traceidratio", "OTEL_TRACES_SAMPLER_ARG": "0"},
	} {
		t.Run(name, func(t *testing.T) {
			p := harnesstest.NewPlace(t, harnesstest.Finishes)
			if got := harnesstest.Call(t, env, "", p.Run("--run-id", "r", "look")...); got.Code != 0 || strings.Contains(got.Err, "span") {
				t.Fatalf("%+v", got)
			}
			state := harnesstest.Call(t, env, "", "show", "r", "--data", p.Data, "--state")
			if state.Code != 0 || !strings.Contains(state.Out, `"trace": null`) {
				t.Errorf("the state is %+v", state)
			}
			if shown := harnesstest.Call(t, env, "", "show", "r", "--data", p.Data); strings.Contains(shown.Out, "trace") {
				t.Error(shown.Out)
			}
		})
	}
}

func TestACollectorThatIsAwayCostsARunNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("runs the program for seconds")
	}
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() // takes connections and says nothing
	p := harnesstest.NewPlace(t, harnesstest.Finishes)
	env := map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://" + l.Addr().String(), "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}
	got := harnesstest.Call(t, env, "", p.Run("--output", "json", "look")...)
	if got.Code != 0 || result(t, got.Out).Status != "DONE" {
		t.Fatalf("%+v", got)
	}
	if n := strings.Count(got.Err, "spans are lost"); n > 1 {
		t.Errorf("%d lines about it:\n%s", n, got.Err)
	}
}

func TestWrongTelemetryIsRefusedAtTheStart(t *testing.T) {
	t.Parallel()
	p := harnesstest.NewPlace(t, harnesstest.Finishes)
	for variable, value := range map[string]string{
		"OTEL_TRACES_EXPORTER": "zipkin", "OTEL_EXPORTER_OTLP_PROTOCOL": "udp", "OTEL_TRACES_SAMPLER": "some", "OTEL_EXPORTER_OTLP_ENDPOINT": "collector",
	} {
		for _, args := range [][]string{p.Run("look"), {"serve", "--data", p.Data, "--listen", "127.0.0.1:0"}} {
			got := harnesstest.Call(t, map[string]string{variable: value}, "", args...)
			if got.Code != 1 || strings.Count(got.Err, "\n") != 1 || !strings.Contains(got.Err, variable+`: "`+value+`": expected `) {
				t.Errorf("harness %s with %s=%s: %+v", args[0], variable, value, got)
			}
		}
	}
}
