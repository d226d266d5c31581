package observe

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// script makes an agent do a bit of everything: a try that fails, tools that work
// and fail, one that does not exist, one that needs an approval.
const script = `turns:
  - {error: {status: 429, retry_after: 0}}
  - {text: Looking., calls: [{name: read_file, arguments: {path: a.txt}}, {name: read_file, arguments: {path: missing.txt}}, {name: nonesuch, arguments: {}}], usage: {input_tokens: 900, output_tokens: 20}}
  - {calls: [{name: run_command, arguments: {command: "echo hi"}}], usage: {input_tokens: 950, output_tokens: 20}}
  - {calls: [{name: work_complete, arguments: {summary: done}}], usage: {input_tokens: 990, output_tokens: 20}}
`

// reader has a small window, which the parts of a file that it reads fill. Its runs wait for
// a summary, which makes room.
const reader = "name: reader\ncontext: {max_input_tokens: 12000, blocking_threshold: 0.8, strategies: [summarize]}\n"

// asks is an agent whose commands have network and ask, also where they are confined.
const asks = "name: asks\nsandbox: {network: all}\n"

// judged is an agent whose work is judged by the model of a script.
const judged = "name: judged\nquality: {enabled: true, model: \"script:%s\"}\ntask: {kind: chat}\n"

// judges cannot classify the work, and accept its second attempt.
const judges = `jobs:
  complexity: [{error: {status: 400}}]
  verify: [{answer: {passed: false, score: 0.2, issues: [], feedback: Too short.}}, {answer: {passed: true, score: 0.9, issues: [], feedback: Good.}}]
`

// reads makes an agent read parts of a file, and has the summary of them.
func reads() string {
	var script strings.Builder
	script.WriteString("turns:\n")
	for i := range 8 {
		fmt.Fprintf(&script, "  - {calls: [{name: read_file, arguments: {path: long.txt, offset: %d, limit: 250}}]}\n", 250*i+1)
	}
	script.WriteString("  - {calls: [{name: work_complete, arguments: {summary: done}}]}\n")
	script.WriteString("jobs: {summarize: [{answer: {facts: [{text: The lines are equal., messages: [4]}]}, delay: 500ms, usage: {input_tokens: 3000, output_tokens: 40}}]}\n")
	return script.String()
}

// live is a mesh in a separate process, built like a release.
type live struct {
	t                *testing.T
	harness, dir     string
	gateway, metrics string
	scrapes          int
	seen             samples
}

// patience bounds every wait; nothing comes near it unless something hangs.
const patience = 90 * time.Second

func startLive(t *testing.T) *live {
	t.Helper()
	l := &live{t: t, dir: t.TempDir(), seen: samples{}}
	l.harness = filepath.Join(l.dir, "harness")
	build := exec.Command("go", "build", "-o", l.harness, "./cmd/harness")
	build.Dir, build.Env = "../..", append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	for name, text := range map[string]string{
		"script.yaml": script, "a.txt": "hello\n", "reader.yaml": reader, "asks.yaml": asks,
		"judged.yaml": fmt.Sprintf(judged, filepath.Join(l.dir, "judges.yaml")), "judges.yaml": judges, "reads.yaml": reads(), "long.txt": strings.Repeat("another line of a file\n", 3000),
	} {
		if err := os.WriteFile(filepath.Join(l.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	provider := service(t)
	serve := l.command(context.Background(), "serve", "--listen", "127.0.0.1:0", "--metrics", "127.0.0.1:0", "--data", filepath.Join(l.dir, "data"), "--sync", "interval", "--scripts", l.dir)
	serve.Env = append(serve.Env, "OPENAI_BASE_URL="+provider.URL+"/v1")
	errs, err := serve.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := serve.Start(); err != nil {
		t.Fatal(err)
	}
	var reading sync.WaitGroup
	t.Cleanup(func() {
		_ = serve.Process.Kill()
		reading.Wait()
		_ = serve.Wait()
	})
	ready := make(chan string, 1)
	reading.Go(func() {
		var said []string
		for lines := bufio.NewScanner(errs); lines.Scan(); {
			said = append(said, lines.Text())
			if address, ok := strings.CutPrefix(lines.Text(), "metrics addr="); ok {
				l.metrics = address
			}
			if address, ok := strings.CutPrefix(lines.Text(), "ready role=gateway addr="); ok {
				l.gateway = address
				ready <- ""
			}
		}
		select {
		case ready <- strings.Join(said, "\n"):
		default:
		}
	})
	select {
	case said := <-ready:
		if said != "" || l.metrics == "" {
			t.Fatalf("the mesh ended, or serves no metrics: %s", said)
		}
	case <-time.After(patience):
		t.Fatal("the mesh is not ready")
	}
	return l
}

func (l *live) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, l.harness, args...)
	cmd.Dir = l.dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + l.dir, "TMPDIR=" + os.TempDir(), "NO_COLOR=1"}
	return cmd
}

// do runs a verb, which has to exit with code.
func (l *live) do(code int, args ...string) {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := l.command(ctx, args...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	_ = cmd.Run()
	if got := cmd.ProcessState.ExitCode(); got != code {
		l.t.Fatalf("harness %s: exit %d, want %d\n%s", strings.Join(args, " "), got, code, out.String())
	}
}

func (l *live) read(path string) (status int, text string) {
	l.t.Helper()
	r, err := http.Get("http://" + l.metrics + path)
	if err != nil {
		l.t.Fatal(err)
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		l.t.Fatal(err)
	}
	return r.StatusCode, string(body)
}

// scrape takes in what the mesh shows now, as the next scrape. The cut is the time
// of the newest one.
func (l *live) scrape() (cut time.Time) {
	l.t.Helper()
	_, text := l.read("/metrics")
	cut = start.Add(time.Duration(l.scrapes) * every)
	l.scrapes++
	l.seen.scraped(l.t, text, cut, "harness", l.metrics)
	return cut
}

// service is an OpenAI-compatible server that completes the work in one turn, and reports
// what is left of its quotas. Its second attempt at the same work repeats itself.
func service(t *testing.T) *httptest.Server {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/chat/completions" {
			http.NotFound(w, r)
			return
		}
		body, _ := io.ReadAll(r.Body)
		text := ""
		if bytes.Contains(body, []byte("Attempt 2 of")) {
			text = strings.Repeat("the same words again ", 80)
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("X-Ratelimit-Limit-Tokens", "90000")
		w.Header().Set("X-Ratelimit-Remaining-Tokens", "80000")
		_, _ = io.WriteString(w, `{"model":"quota","choices":[{"finish_reason":"tool_calls","message":{"role":"assistant","content":"`+text+`","tool_calls":[`+
			`{"id":"c1","type":"function","function":{"name":"work_complete","arguments":"{\"summary\":\"done\"}"}}]}}],`+
			`"usage":{"prompt_tokens":900,"completion_tokens":20,"completion_tokens_details":{"reasoning_tokens":12}}}`)
	}))
	t.Cleanup(s.Close)
	return s
}

// park starts a run, which parks at the command that needs an approval; finish
// approves it and waits for the end.
func (l *live) park(run string) {
	l.t.Helper()
	l.do(4, "run", "--server", l.gateway, "--run-id", run, "--agent", filepath.Join(l.dir, "asks.yaml"), "--model", "script:"+filepath.Join(l.dir, "script.yaml"), "--workspace", l.dir, "go")
}

func (l *live) finish(run string) {
	l.t.Helper()
	l.do(0, "approve", "--server", l.gateway, run)
	l.do(0, "watch", "--server", l.gateway, run)
}

// compact starts a run that makes passes of compaction, and waits for its end.
func (l *live) compact(run string) {
	l.t.Helper()
	l.do(0, "run", "--server", l.gateway, "--run-id", run, "--agent", filepath.Join(l.dir, "reader.yaml"), "--model", "script:"+filepath.Join(l.dir, "reads.yaml"), "--workspace", l.dir, "read")
}

// rare are values of labels that a mesh shows only when something is wrong.
var rare = map[string][]string{
	"outcome": {"fenced_off", "given_up"}, "error_type": {"cancelled"}, "reason": {"provider_unavailable"},
}

func TestALiveMesh(t *testing.T) {
	l := startLive(t)
	for _, path := range []string{"/healthz", "/readyz"} {
		if status, text := l.read(path); status != http.StatusOK {
			t.Errorf("%s: %d %s", path, status, text)
		}
	}
	l.compact("long")
	l.park("one")
	l.do(0, "run", "--server", l.gateway, "--no-stream", "--model", "openai:quota", "--workspace", l.dir, "go")
	l.do(0, "run", "--server", l.gateway, "--no-stream", "--agent", filepath.Join(l.dir, "judged.yaml"), "--model", "openai:gpt-5-mini", "--workspace", l.dir, "go")
	l.scrape()
	l.finish("one")
	l.scrape()
	l.compact("longer")
	l.park("two")
	l.scrape()
	l.finish("two")
	l.park("three")
	until := l.scrape()

	t.Run("answers each query of the dashboard", func(t *testing.T) {
		for _, p := range readDashboard(t).Panels {
			for _, target := range p.Targets {
				expr := filled(target.Expr)
				if strange := l.seen.strangers(t, expr, rare); len(strange) > 0 {
					t.Errorf("%s: %s: the mesh does not show %v", p.Title, target.Expr, strange)
				}
				if len(l.seen.ask(t, expr, until)) == 0 {
					t.Errorf("%s: %s: no data", p.Title, target.Expr)
				}
				for _, label := range legend.FindAllStringSubmatch(target.LegendFormat, -1) {
					if !strings.Contains(target.Expr, label[1]) && label[1] != "job" && label[1] != "instance" {
						t.Errorf("%s: the legend names %s, which its query does not keep", p.Title, label[1])
					}
				}
			}
		}
	})
	t.Run("shows all that alerts ask for, and raises none", func(t *testing.T) {
		for _, g := range readAlerts(t) {
			if g.Name == outside {
				continue
			}
			for _, r := range g.Rules {
				if strange := l.seen.strangers(t, r.Expr, rare); len(strange) > 0 {
					t.Errorf("%s: the mesh does not show %v", r.Alert, strange)
				}
				hold, _ := time.ParseDuration(r.For)
				if r.Alert != "HarnessModelErrors" && l.seen.fires(t, r.Expr, hold) { // one try in four fails here
					t.Errorf("%s: fires in a healthy mesh", r.Alert)
				}
			}
		}
	})
	t.Run("shows from its first scrape on what alerts wait for", func(t *testing.T) {
		for _, expr := range []string{
			`harness_tool_unknown_ends_total == 0`, `harness_run_ended_total{status="failed",reason="poison"} == 0`,
			`harness_bus_unsettled_total{executor="turn"} == 0`, `harness_bus_unsettled_total{executor="gateway"} == 0`,
		} {
			if len(l.seen.ask(t, expr, start)) == 0 {
				t.Errorf("%s: no data", expr)
			}
		}
	})
	t.Run("shows what the documentation has, and nothing else", func(t *testing.T) {
		documented := documentedNames(t)
		var shown []string
		for name := range l.seen.names() {
			for _, suffix := range []string{"_bucket", "_sum", "_count"} {
				if base := strings.TrimSuffix(name, suffix); slices.Contains(documented, base) {
					name = base
				}
			}
			if !strings.HasPrefix(name, "go_") && !strings.HasPrefix(name, "process_") && name != "target_info" {
				shown = append(shown, name)
			}
		}
		slices.Sort(shown)
		if shown = slices.Compact(shown); !slices.Equal(shown, documented) {
			t.Errorf("shown and not documented: %v; documented and not shown: %v", without(shown, documented), without(documented, shown))
		}
	})
	t.Run("does not know a name that is misspelt", func(t *testing.T) {
		for _, expr := range []string{
			`sum(rate(harness_run_startd_total[1m]))`, `sum by (executr) (harness_consumer_pending)`,
			`harness_runs{status="parkd"}`, `harness_runs{state="parked"}`,
			`harness_stream_size_bytes / on (strem) harness_stream_limit_bytes`,
		} {
			if len(l.seen.strangers(t, expr, rare)) == 0 {
				t.Errorf("%s: passes", expr)
			}
		}
		if got := l.seen.ask(t, `sum(rate(harness_run_startd_total[1m]))`, until); len(got) > 0 {
			t.Errorf("it has data: %v", got)
		}
	})
	t.Run("has the verbs and flags that alerts name", func(t *testing.T) {
		help := map[string]string{}
		for _, g := range readAlerts(t) {
			for _, r := range g.Rules {
				for _, c := range command.FindAllStringSubmatch(r.Annotations["action"], -1) {
					words := strings.Fields(c[1])
					if help[words[0]] == "" {
						out, err := l.command(t.Context(), words[0], "--help").Output()
						if err != nil {
							t.Errorf("%s: harness %s: %v", r.Alert, words[0], err)
						}
						help[words[0]] = string(out)
					}
					for _, w := range words {
						if strings.HasPrefix(w, "--") && !strings.Contains(help[words[0]], w) {
							t.Errorf("%s: harness %s has no %s", r.Alert, words[0], w)
						}
					}
				}
			}
		}
	})
}

var (
	legend  = regexp.MustCompile(`{{(\w+)}}`)
	command = regexp.MustCompile("`harness ([^`{]+)")
	named   = regexp.MustCompile("(?m)^\\| `([a-z_A-Z]+)` \\|")
)

// documentedNames are those of the tables of docs/metrics.md, sorted.
func documentedNames(t *testing.T) []string {
	t.Helper()
	data, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, m := range named.FindAllSubmatch(data, -1) {
		names = append(names, string(m[1]))
	}
	slices.Sort(names)
	return names
}

func without(list, others []string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(name string) bool { return slices.Contains(others, name) })
}
