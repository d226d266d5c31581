package observe

import (
	"os"
	"slices"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
)

type group struct {
	Name  string
	Rules []rule
}

type rule struct {
	Alert, Expr         string
	For                 string
	Labels, Annotations map[string]string
}

// outside is the group of rules on what others export.
const outside = "harnessmesh-outside"

func readAlerts(t *testing.T) []group {
	t.Helper()
	data, err := os.ReadFile("alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Groups []group }
	if err := yaml.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	return file.Groups
}

func TestEachAlertSaysWhatIsWrongAndWhatToDo(t *testing.T) {
	seen := map[string]bool{}
	for _, g := range readAlerts(t) {
		for _, r := range g.Rules {
			if seen[r.Alert] || r.Annotations["summary"] == "" || r.Annotations["action"] == "" {
				t.Errorf("%s: comes twice, or has no summary or action", r.Alert)
			}
			seen[r.Alert] = true
			if !slices.Contains([]string{"critical", "warning", "info"}, r.Labels["severity"]) {
				t.Errorf("%s: severity %q", r.Alert, r.Labels["severity"])
			}
			if _, err := time.ParseDuration(r.For); r.For != "" && err != nil {
				t.Errorf("%s: %v", r.Alert, err)
			}
			if _, err := promQL.ParseExpr(r.Expr); err != nil {
				t.Errorf("%s: %v", r.Alert, err)
			}
		}
	}
}

// situations are series, a value a minute, for which each alert fires and for which it does not.
var situations = map[string]struct{ wrong, fine []string }{
	"HarnessRoleNotReady":      {[]string{`harness_role_ready{job="h",instance="a",role="turn"} 1 0x60`}, []string{`harness_role_ready{job="h",instance="a",role="turn"} 1x60`}},
	"HarnessNobodyListsRuns":   {[]string{`harness_role_ready{role="turn"} 1x60`}, []string{`harness_runs{status="running"} 0x60`}},
	"HarnessLagGrows":          {[]string{`harness_consumer_pending{executor="turn"} 150+10x60`}, []string{`harness_consumer_pending{executor="turn"} 500 0 0 0 500 0 0 0 0 500 0 0 0 0 500 0`}},
	"HarnessHopLatency":        {[]string{`harness_hop_latency_seconds_bucket{executor="turn",le="1"} 0x60`, `harness_hop_latency_seconds_bucket{executor="turn",le="5"} 0+9x60`, `harness_hop_latency_seconds_bucket{executor="turn",le="+Inf"} 0+9x60`}, []string{`harness_hop_latency_seconds_bucket{executor="turn",le="1"} 0+9x60`, `harness_hop_latency_seconds_bucket{executor="turn",le="+Inf"} 0+9x60`}},
	"HarnessTurnOverhead":      {[]string{`harness_turn_overhead_seconds_bucket{le="1"} 0x60`, `harness_turn_overhead_seconds_bucket{le="5"} 0+9x60`, `harness_turn_overhead_seconds_bucket{le="+Inf"} 0+9x60`}, []string{`harness_turn_overhead_seconds_bucket{le="1"} 0+9x60`, `harness_turn_overhead_seconds_bucket{le="+Inf"} 0+9x60`}},
	"HarnessDeadLetters":       {[]string{`harness_step_dead_letters_total{executor="turn"} _ 0 0 1x30`}, []string{`harness_step_dead_letters_total{executor="turn"} _ 7x60`}},
	"HarnessExecutorFails":     {[]string{`harness_step_failures_total{executor="turn"} _ 0+1x30`}, []string{`harness_step_failures_total{executor="turn"} _ 0 0 1x30`}},
	"HarnessTakeoversFrequent": {[]string{`harness_step_takeovers_total{executor="turn"} _ 0+1x30`}, []string{`harness_step_takeovers_total{executor="turn"} _ 0 0 2x30`}},
	"HarnessModelErrors": {
		[]string{`gen_ai_client_operation_duration_seconds_count{gen_ai_request_model="m",error_type="503"} 0+5x60`, `gen_ai_client_operation_duration_seconds_count{gen_ai_request_model="m"} 0+5x60`},
		[]string{`gen_ai_client_operation_duration_seconds_count{gen_ai_request_model="m",error_type="cancelled"} 0+5x60`, `gen_ai_client_operation_duration_seconds_count{gen_ai_request_model="m"} 0+5x60`},
	},
	"HarnessProviderAway":    {[]string{`harness_runs{status="parked",reason="provider_unavailable"} 2x60`}, []string{`harness_runs{status="parked",reason="provider_unavailable"} 2x10 0 2x10 0 2x10 0`}},
	"HarnessCostRate":        {[]string{`harness_model_cost_usd_total{gen_ai_request_model="m"} 0+1x90`}, []string{`harness_model_cost_usd_total{gen_ai_request_model="m"} 0+0.5x90`}},
	"HarnessRunsFail":        {[]string{`harness_run_ended_total{status="failed",reason="poison"} _ 0 0 1x90`, `harness_run_ended_total{status="done",reason="agent_done"} _ 0x92`}, []string{`harness_run_ended_total{status="failed",reason="poison"} _ 0 0 1x90`, `harness_run_ended_total{status="done",reason="agent_done"} _ 0 0 9x90`}},
	"HarnessApprovalsWait":   {[]string{`harness_runs{status="parked",reason="approval"} 1x300`}, []string{`harness_runs{status="parked",reason="approval"} 1x200 0 1x99`}},
	"HarnessCallsUnknown":    {[]string{`harness_tool_unknown_ends_total _ 0 0 1x30`}, []string{`harness_tool_unknown_ends_total _ 0x30`, `gen_ai_execute_tool_duration_seconds_count{gen_ai_tool_name="read_file",error_type="error"} _ 0+9x30`}},
	"HarnessBusAway":         {[]string{`harness_bus_connected{job="h",instance="a"} 1 0x30`, `harness_bus_connected{job="h",instance="b"} 1x31`}, []string{`harness_bus_connected{job="h",instance="a"} 1x30`}},
	"HarnessWritesUnsettled": {[]string{`harness_bus_unsettled_total{executor="turn"} _ 0 0 1x30`}, []string{`harness_bus_unsettled_total{executor="turn"} _ 0x30`, `harness_bus_append_duration_seconds_count{executor="turn",outcome="stored"} _ 0+9x30`}},
	"HarnessStreamFull":      {[]string{`harness_stream_size_bytes{stream="RUNS_0"} 85x30`, `harness_stream_limit_bytes{stream="RUNS_0"} 100x30`}, []string{`harness_stream_size_bytes{stream="RUNS_0"} 75x30`, `harness_stream_limit_bytes{stream="RUNS_0"} 100x30`}},
	"NatsDiskFull":           {[]string{`gnatsd_varz_jetstream_stats_storage{server_id="n"} 85x30`, `gnatsd_varz_jetstream_config_max_storage{server_id="n"} 100x30`}, []string{`gnatsd_varz_jetstream_stats_storage{server_id="n"} 75x30`, `gnatsd_varz_jetstream_config_max_storage{server_id="n"} 100x30`}},
}

func TestEachAlertComesWhenItShouldAndNotElse(t *testing.T) {
	for _, g := range readAlerts(t) {
		for _, r := range g.Rules {
			if r.Alert == "HarnessExecutorUnserved" {
				continue // see below
			}
			s, known := situations[r.Alert]
			if !known {
				t.Errorf("%s: has no situation that tests it", r.Alert)
				continue
			}
			if !r.comes(t, s.wrong...) {
				t.Errorf("%s: does not fire where it should", r.Alert)
			}
			if r.comes(t, s.fine...) {
				t.Errorf("%s: fires where nothing is wrong", r.Alert)
			}
		}
	}
}

// comes reports whether the alert fires with such series.
func (r rule) comes(t *testing.T, list ...string) bool {
	t.Helper()
	hold, _ := time.ParseDuration(r.For) // tested above; empty is no wait
	series := samples{}
	series.described(t, list...)
	return series.fires(t, r.Expr, hold)
}

// consumer is the state of a consumer.
func consumer(executor, pending, inWork, waiting string) []string {
	return []string{
		`harness_consumer_pending{executor="` + executor + `"} ` + pending, `harness_consumer_ack_pending{executor="` + executor + `"} ` + inWork,
		`harness_consumer_waiting{executor="` + executor + `"} ` + waiting, `harness_role_ready{role="repair"} 1x60`,
	}
}

func TestExecutorIsUnserved_WhenNoWorkerHasItsSteps(t *testing.T) {
	var alert rule
	for _, g := range readAlerts(t) {
		for _, r := range g.Rules {
			if r.Alert == "HarnessExecutorUnserved" {
				alert = r
			}
		}
	}
	for name, c := range map[string]struct {
		series []string
		comes  bool
	}{
		"a turn that nobody has served yet":         {consumer("turn", "3x60", "0x60", "0x60"), true},
		"a turn whose worker is not ready":          {append(consumer("turn", "3x60", "0x60", "0x60"), `harness_role_ready{role="turn"} 0x60`), true},
		"a turn whose workers are full":             {append(consumer("turn", "3x60", "256x60", "0x60"), `harness_role_ready{role="turn"} 1x60`), false},
		"a turn whose worker died with all in work": {append(consumer("turn", "0x60", "2x60", "5x5 0x55"), `harness_role_ready{role="turn"} 1x5`), true},
		"a bridge that is full":                     {append(consumer("reviewer", "3x60", "256x60", "0x60"), `harness_role_ready{role="bridge"} 1x60`, `harness_role_ready{role="reviewer"} 1x60`), false},
		"a bridge that is full between two steps":   {append(consumer("reviewer", "3x60", "0x60", "0x60"), `harness_role_ready{role="bridge"} 1x60`, `harness_role_ready{role="reviewer"} 1x60`), false},
		"a bridge that died with all in work":       {append(consumer("reviewer", "0x60", "2x60", "5x5 0x55"), `harness_role_ready{role="reviewer"} 1x5`), true},
		"a program of one's own that is full":       {consumer("mine", "3x60", "8x60", "0x60"), false},
		"a program of one's own that is gone":       {consumer("mine", "3x60", "0x60", "5x5 0x55"), true},
		"a program of one's own that waits":         {consumer("mine", "0x60", "0x60", "5x60"), false},
	} {
		if alert.comes(t, c.series...) != c.comes {
			t.Errorf("%s: comes: %v", name, !c.comes)
		}
	}
}
