// Package linttest breaks every rule of .golangci.yml on imports and on the calls of
// deciding code, and expects the linter to report it. It also uses each rule's
// exceptions, and expects no report.
//
// All cases are written into one small module with the repository's own
// configuration and linted in one run, so the test costs seconds. Foreign
// modules are replaced by empty ones: the rules judge import paths.
package linttest

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const (
	root   = "../.."
	module = "github.com/harnessmesh/harnessmesh"
)

// service is the service that no service may import: each real one tries.
const service = module + "/services/another"

// foreign lists the modules that the cases import, with the packages in them.
var foreign = map[string][]string{
	"github.com/nats-io/nats.go":             {"", "jetstream"},
	"github.com/nats-io/nats-server/v2":      {"server"},
	"cel.dev/cel-go":                         {""},
	"github.com/openai/openai-go/v3":         {""},
	"github.com/anthropics/anthropic-sdk-go": {""},
	"github.com/google/uuid":                 {""},
	"golang.org/x/net":                       {""},
	"golang.org/x/sys":                       {""},
	"google.golang.org/grpc":                 {"", "codes", "status"},
	"go.opentelemetry.io/otel":               {""},
	"google.golang.org/protobuf":             {"types/known/timestamppb"},
	"mvdan.cc/sh/v3":                         {"syntax"},
}

// targets are the first-party packages that the cases import.
var targets = []string{"services/another", "cmd/harness/serve", "bench/load", "test/wire", "test/kit/runlogtest", "examples/hello", "pkg/executor", "pkg/runlog", "pkg/runlog/jetstream", "pkg/telemetry", "pkg/agent/contract", "pkg/model/wire", "pkg/model/adapter", "pkg/model/openai", "pkg/model/anthropic"}

// A breach is one file that imports one package or makes one call.
type breach struct {
	file string // path of the file, from the root of the module
	path string // what it imports
	call string // what it refers to; empty: a blank import
	want string // the linter that reports it; empty: none
}

func TestEachRuleReportsItsBreach(t *testing.T) {
	cases := directions()
	for _, name := range services(t) {
		cases = append(cases, isolation(name)...)
	}
	cases = append(cases, purity()...)
	cases = append(cases, purePackages()...)

	dir := t.TempDir()
	write(t, dir, ".golangci.yml", read(t, filepath.Join(root, ".golangci.yml")))
	gomod := "module " + module + "\n\ngo 1.26\n"
	for path, packages := range foreign {
		version := "v0.0.0"
		if strings.HasSuffix(path, "/v2") || strings.HasSuffix(path, "/v3") {
			version = "v" + path[len(path)-1:] + ".0.0"
		}
		gomod += fmt.Sprintf("\nrequire %s %s\nreplace %s => ./.foreign/%s\n", path, version, path, path)
		write(t, dir, ".foreign/"+path+"/go.mod", "module "+path+"\n\ngo 1.26\n")
		for _, p := range packages {
			name := filepath.Base(filepath.Join("stub", p))
			body := ""
			if name == "timestamppb" {
				body = "\ntype Timestamp struct{}\n\nfunc Now() *Timestamp { return nil }\n"
			}
			write(t, dir, filepath.Join(".foreign", path, p, "stub.go"), "package "+name+"\n"+body)
		}
	}
	write(t, dir, "go.mod", gomod)
	for _, p := range targets {
		write(t, dir, p+"/stub.go", source(p+"/stub.go", "", ""))
	}
	for _, c := range cases {
		write(t, dir, c.file, source(c.file, c.path, c.call))
	}
	for _, c := range bodies {
		write(t, dir, c.file, "package "+filepath.Base(filepath.Dir(c.file))+"\n\n"+c.body)
		cases = append(cases, breach{file: c.file, path: "its body", want: c.want})
	}

	found := lint(t, dir)
	seen := map[string]bool{}
	for _, c := range cases {
		if seen[c.file] {
			t.Fatalf("two cases share %s", c.file)
		}
		seen[c.file] = true
		what := c.file + " with " + c.path
		if c.call != "" {
			what = c.file + " with " + c.call
		}
		switch got := found[c.file]; {
		case c.want == "" && len(got) > 0:
			t.Errorf("%s: should be fine, but: %s", what, strings.Join(got, "; "))
		case c.want != "" && len(got) == 0:
			t.Errorf("%s: not caught; .golangci.yml lacks a rule", what)
		case c.want != "" && !strings.HasPrefix(got[0], c.want+": "):
			t.Errorf("%s: want %s to object, but: %s", what, c.want, strings.Join(got, "; "))
		}
	}
	for file, issues := range found {
		if !seen[file] {
			t.Errorf("%s: no case, but: %s", file, strings.Join(issues, "; "))
		}
	}
}

// directions returns the cases on imports, except for those between services.
func directions() []breach {
	const depguard = "depguard"
	return []breach{
		{"pkg/policy/service.go", service, "", depguard},
		{"pkg/policy/service_test.go", service, "", depguard},
		{"pkg/policy/deep/service.go", service, "", depguard},
		{"pkg/policy/cmd.go", module + "/cmd/harness/serve", "", depguard},
		{"pkg/policy/bench.go", module + "/bench/load", "", depguard},
		{"pkg/policy/bench_test.go", module + "/bench/load", "", ""},
		{"pkg/policy/test.go", module + "/test/wire", "", depguard},
		{"pkg/policy/kit.go", module + "/test/kit/runlogtest", "", depguard},
		{"pkg/policy/kit_test.go", module + "/test/kit/runlogtest", "", ""},
		{"test/kit/sim/service.go", service, "", depguard},
		{"test/kit/sim/service_test.go", service, "", depguard},
		{"test/kit/modeltest/cmd.go", module + "/cmd/harness/serve", "", depguard},
		{"test/kit/meshtest/service.go", service, "", ""},
		{"pkg/policy/examples.go", module + "/examples/hello", "", depguard},
		{"pkg/policy/pkg.go", module + "/pkg/agent/contract", "", ""},
		{"services/repair/cmd.go", module + "/cmd/harness/serve", "", depguard},
		{"services/repair/repairserver/cmd.go", module + "/cmd/harness/serve", "", depguard},
		{"services/repair/repairserver/pkg.go", module + "/pkg/executor", "", ""},
		{"cmd/harness/roles/service.go", service, "", ""},
		{"bench/service.go", service, "", ""},

		{"pkg/policy/nats.go", "github.com/nats-io/nats.go", "", depguard},
		{"pkg/runlog/nats.go", "github.com/nats-io/nats.go/jetstream", "", depguard},
		{"test/kit/runlogtest/nats.go", "github.com/nats-io/nats-server/v2/server", "", depguard},
		{"test/kit/sim/nats_test.go", "github.com/nats-io/nats.go", "", ""},
		{"services/turn/turnserver/nats.go", "github.com/nats-io/nats.go", "", depguard},
		{"pkg/runlog/jetstream/nats.go", "github.com/nats-io/nats.go/jetstream", "", ""},
		{"pkg/runlog/jetstream/deep/nats.go", "github.com/nats-io/nats.go", "", ""},
		{"pkg/policy/nats_test.go", "github.com/nats-io/nats.go", "", ""},
		{"cmd/harness/roles/nats.go", "github.com/nats-io/nats-server/v2/server", "", ""},
		{"bench/nats.go", "github.com/nats-io/nats.go", "", ""},

		{"pkg/agent/contract/cel.go", "cel.dev/cel-go", "", depguard},
		{"services/turn/cel.go", "cel.dev/cel-go", "", depguard},
		{"pkg/agent/expr/cel.go", "cel.dev/cel-go", "", ""},
		{"pkg/model/openai.go", "github.com/openai/openai-go/v3", "", depguard},
		{"pkg/model/openai/openai.go", "github.com/openai/openai-go/v3", "", depguard},
		{"services/turn/turnserver/openai.go", "github.com/openai/openai-go/v3", "", depguard},
		{"pkg/model/anthropic/anthropic.go", "github.com/anthropics/anthropic-sdk-go", "", depguard},
		{"bench/anthropic.go", "github.com/anthropics/anthropic-sdk-go", "", depguard},
		{"pkg/model/openai_test.go", "github.com/openai/openai-go/v3", "", ""},
		{"pkg/agent/policy/shell.go", "mvdan.cc/sh/v3/syntax", "", depguard},
		{"services/toolhost/toolhostserver/shell.go", "mvdan.cc/sh/v3/syntax", "", depguard},
		{"cmd/harness/roles/shell.go", "mvdan.cc/sh/v3/syntax", "", depguard},
		{"pkg/agent/policy/shell_test.go", "mvdan.cc/sh/v3/syntax", "", ""},
		{"services/turn/turnserver/wire.go", module + "/pkg/model/wire", "", depguard},
		{"services/turn/turnserver/provider.go", module + "/pkg/model/openai", "", depguard},
		{"cmd/harness/roles/provider.go", module + "/pkg/model/anthropic", "", depguard},
		{"pkg/agent/adapter.go", module + "/pkg/model/adapter", "", depguard},
		{"pkg/model/anthropic/wire.go", module + "/pkg/model/wire", "", ""},
		{"pkg/model/provider/openai.go", module + "/pkg/model/openai", "", ""},
		{"services/turn/turnserver/wire_test.go", module + "/pkg/model/openai", "", ""},
	}
}

// isolation returns the cases for one service: nothing of it imports another service.
func isolation(name string) []breach {
	server := "services/" + name + "/" + name + "server"
	return []breach{
		{"services/" + name + "/other.go", service, "", "depguard"},
		{"services/" + name + "/other_test.go", service, "", "depguard"},
		{"services/" + name + "/deep/other.go", service, "", "depguard"},
		{server + "/other.go", service, "", "depguard"},
		{server + "/own.go", module + "/services/" + name + "/deep", "", ""},
		{"services/" + name + "/clock.go", "time", "time.Now", "forbidigo"},
		{"services/" + name + "/os.go", "os", "", "depguard"},
		{server + "/clock.go", "time", "time.Now", ""},
		{server + "/os.go", "os", "", ""},
	}
}

// purity returns the cases on deciding code, with one service as the example.
func purity() []breach {
	var cases []breach
	add := func(path, call, want string) {
		file := fmt.Sprintf("services/stopdecision/pure%03d.go", len(cases))
		cases = append(cases, breach{file, path, call, want})
	}
	for _, path := range []string{
		"net", "net/http", "net/rpc", "os/exec", "os/signal", "io/ioutil", "syscall", "database/sql",
		"log", "log/slog", "math/rand", "math/rand/v2", "crypto/rand", "github.com/google/uuid", "golang.org/x/net", "golang.org/x/sys",
		"google.golang.org/grpc", "google.golang.org/grpc/status", "github.com/nats-io/nats.go", "go.opentelemetry.io/otel",
		module + "/pkg/executor", module + "/pkg/runlog/jetstream", module + "/pkg/telemetry",
	} {
		add(path, "", "depguard")
	}
	for _, path := range []string{"time", "strings", "net/url", "net/netip", "google.golang.org/grpc/codes", module + "/pkg/agent/contract", module + "/pkg/runlog"} {
		add(path, "", "")
	}
	for _, call := range []string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker"} {
		add("time", "time."+call, "forbidigo")
	}
	add("time", "renamed.Now", "forbidigo")
	add("time", "time.Second", "")
	add("time", "time.Unix", "")
	add("context", "context.WithTimeout", "forbidigo")
	add("context", "context.WithDeadlineCause", "forbidigo")
	add("context", "context.WithCancel", "")
	add("google.golang.org/protobuf/types/known/timestamppb", "timestamppb.Now", "forbidigo")
	add("fmt", "fmt.Println", "forbidigo")
	add("fmt", "fmt.Sprintf", "")
	return append(cases,
		breach{"services/stopdecision/pure_test.go", "time", "time.Now", ""},
		breach{"services/stopdecision/reads_test.go", "os", "", ""},
		breach{"services/stopdecision/ladder/os.go", "os", "", "depguard"},
		breach{"services/stopdecision/ladder/clock.go", "time", "time.Now", "forbidigo"},
		breach{"pkg/policy/clock.go", "time", "time.Now", ""},
		breach{"pkg/policy/os.go", "os", "", ""},
	)
}

// purePackages returns the cases on the packages of pkg that services decide with.
func purePackages() []breach {
	var cases []breach
	for _, dir := range []string{
		"agent", "agent/contract", "agent/hook", "content", "conversation", "event", "input", "progress", "runstate",
		"tool", "workflow", "workitem", "workitem/narration", "telemetry/runtrace",
	} {
		cases = append(cases,
			breach{"pkg/" + dir + "/os.go", "os", "", "depguard"},
			breach{"pkg/" + dir + "/clock.go", "time", "time.Now", "forbidigo"},
			breach{"pkg/" + dir + "/url.go", "net/url", "", ""},
			breach{"pkg/" + dir + "/os_test.go", "os", "", ""},
		)
	}
	return append(cases,
		breach{"pkg/agent/hook/hookcaller/log.go", "log/slog", "", ""},
		breach{"pkg/agent/hook/hookcaller/clock.go", "time", "time.Now", ""},
		breach{"pkg/telemetry/clock.go", "time", "time.Now", ""},
	)
}

// enum is a type for switches.
const enum = "type color int\n\nconst (\n\tred color = iota\n\tblue\n)\n\n"

// long is a statement of more than 180 characters.
var long = "var _ = 1" + strings.Repeat(" + 1", 45) + "\n"

// bodies are the cases of rules on statements.
var bodies = []struct{ file, body, want string }{
	{"pkg/enum/missing.go", enum + "func name(c color) string {\n\tswitch c {\n\tcase red:\n\t\treturn \"red\"\n\t}\n\treturn \"\"\n}\n", "exhaustive"},
	{"pkg/enumdefault/default.go", enum + "func name(c color) string {\n\tswitch c {\n\tcase red:\n\t\treturn \"red\"\n\tdefault:\n\t\treturn \"\"\n\t}\n}\n", ""},
	{"pkg/enumall/all.go", enum + "func name(c color) string {\n\tswitch c {\n\tcase red:\n\t\treturn \"red\"\n\tcase blue:\n\t\treturn \"blue\"\n\t}\n\treturn \"\"\n}\n", ""},
	{"pkg/foreignenum/kind.go", "import \"reflect\"\n\nfunc isMap(k reflect.Kind) bool {\n\tswitch k {\n\tcase reflect.Map:\n\t\treturn true\n\t}\n\treturn false\n}\n", ""},
	{"pkg/long/long.go", long, "lll"},
	{"pkg/long/long_test.go", long, ""},
	{"pkg/longtext/text.go", "var _ = \"" + strings.Repeat("x", 180) + "\"\n", ""},
	{"pkg/convert/convert.go", "func small(n int) int8 { return int8(n) }\n", "gosec"},
	{"pkg/convert/convert_test.go", "func smaller(n int) int8 { return int8(n) }\n", ""},
	{"bench/convert.go", "func small(n int) int8 { return int8(n) }\n", ""},
	{"pkg/filemode/write.go", "import \"os\"\n\nfunc save(file string) error { return os.WriteFile(file, nil, 0o644) }\n", ""},
}

// services lists the services of the repository, so that a new one cannot come without its rule,
// and those of the design, so that a rule cannot go before its service comes.
func services(t *testing.T) []string {
	t.Helper()
	names := []string{"bridge", "compaction", "gateway", "inference", "repair", "stopdecision", "toolhost", "turn"}
	entries, err := os.ReadDir(filepath.Join(root, "services"))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.IsDir() {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// source is a file of the package that its folder names.
func source(file, path, call string) string {
	name := filepath.Base(filepath.Dir(file))
	switch qualifier, _, _ := strings.Cut(call, "."); {
	case path == "":
		return fmt.Sprintf("package %s\n", name)
	case call == "":
		return fmt.Sprintf("package %s\n\nimport _ %q\n", name, path)
	default:
		return fmt.Sprintf("package %s\n\nimport %s %q\n\nvar _ = %s\n", name, qualifier, path, call)
	}
}

// lint returns the issues by file, each as "linter: text".
func lint(t *testing.T, dir string) map[string][]string {
	t.Helper()
	bin, err := exec.CommandContext(t.Context(), "bash", filepath.Join(root, "tools/install.sh"), "tools/lint").Output()
	if err != nil {
		t.Fatalf("build the linter: %v", err)
	}
	cmd := exec.CommandContext(t.Context(), filepath.Join(strings.TrimSpace(string(bin)), "golangci-lint"),
		"run", "--enable-only", "depguard,exhaustive,forbidigo,gosec,lll", "--output.json.path", "stdout", "--show-stats=false", "./...")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOPROXY=off", "GOWORK=off", "GOLANGCI_LINT_CACHE="+t.TempDir())
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, _ := cmd.Output() // exits 1 when it finds something, as it must here
	var report struct {
		Issues []struct {
			FromLinter, Text string
			Pos              struct{ Filename string }
		}
	}
	if err := json.Unmarshal(out, &report); err != nil {
		t.Fatalf("lint: %v\n%s%s", err, out, &stderr)
	}
	found := map[string][]string{}
	for _, issue := range report.Issues {
		found[issue.Pos.Filename] = append(found[issue.Pos.Filename], issue.FromLinter+": "+issue.Text)
	}
	return found
}

func read(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func write(t *testing.T, dir, file, text string) {
	t.Helper()
	path := filepath.Join(dir, file)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
