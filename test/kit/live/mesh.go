package live

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/test/kit/keytest"
	"github.com/harnessmesh/harnessmesh/test/kit/program"
	"github.com/harnessmesh/harnessmesh/test/kit/storetest"
)

// Harness is the path of the binary.
var Harness string

// The meshes under test, and the server of their models.
var (
	background *Mesh
	// serving starts harness serve when the first test uses it.
	serving func() (*Mesh, error)
	// onServer are the tests that use it.
	onServer []string

	models = &modelServer{}
)

// parallel is how many tests run at the same time, unless -parallel is set: most of them
// wait for the process under test.
const parallel = 8

// Main runs the tests of a package: those that are named against harness serve, which has
// addresses that others reach, all others against the background process of a fresh home. It
// returns the exit code.
func Main(m *testing.M, named ...string) int {
	storetest.InMemory()
	flag.Parse()
	parallel := max(parallel, runtime.GOMAXPROCS(0))
	flag.Visit(func(f *flag.Flag) {
		if f.Name == "test.parallel" {
			parallel = 0
		}
	})
	if parallel > 0 {
		if err := flag.Set("test.parallel", strconv.Itoa(parallel)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	dir, err := os.MkdirTemp("", "harness-live")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if Harness, err = program.Harness(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	models.start()
	defer models.http.Close()
	if background, err = startBackground(filepath.Join(dir, "home")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer background.stop()
	var served *Mesh
	onServer, serving = named, sync.OnceValues(func() (*Mesh, error) {
		served, err = startServer(filepath.Join(dir, "server"))
		return served, err
	})
	defer func() {
		if served != nil {
			served.stop()
		}
	}()
	return m.Run()
}

// Mesh is a process with every role.
type Mesh struct {
	// Gateway is a client on Conn.
	Gateway harnessv1.GatewayServiceClient
	Conn    *grpc.ClientConn

	env     []string // of verbs
	flags   []string // of verbs, which name the mesh
	address string   // of HTTP, HOST:PORT; empty for the background process
	data    string
	stop    func()
}

// At returns the mesh of a test.
func At(t *testing.T) *Mesh {
	t.Helper()
	name, _, _ := strings.Cut(t.Name(), "/")
	if !slices.Contains(onServer, name) {
		return background
	}
	m, err := serving()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// Gateway returns a client of the gateway of a test.
func Gateway(t *testing.T) harnessv1.GatewayServiceClient {
	t.Helper()
	return At(t).Gateway
}

// Command returns a verb of the command line that uses the mesh of a test.
func Command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	m := At(t)
	cmd := exec.CommandContext(t.Context(), Harness, append(args, m.flags...)...)
	cmd.Env = m.env
	return cmd
}

// Open requests a path of the mesh of a test over HTTP. The test must be one that uses harness serve.
func Open(ctx context.Context, t *testing.T, path, accept string) io.Reader {
	t.Helper()
	m := At(t)
	if m.address == "" {
		t.Fatalf("%s is not among the tests that Main names: the background process serves no HTTP", t.Name())
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+m.address+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	name, value, err := keytest.Header(m.data)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set(name, value)
	if accept != "" {
		request.Header.Set("Accept", accept)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = response.Body.Close() })
	if response.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(response.Body)
		t.Fatalf("%s: %s: %s", path, response.Status, body)
	}
	return response.Body
}

// Get returns what a path of the mesh of a test has over HTTP.
func Get(t *testing.T, path, accept string) string {
	t.Helper()
	body, err := io.ReadAll(Open(t.Context(), t, path, accept))
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return string(body)
}

// startBackground has a run start the background process of a fresh home, and connects to it as verbs do.
func startBackground(home string) (*Mesh, error) {
	runtimeDir := filepath.Join(home, "run")
	if err := os.MkdirAll(runtimeDir, 0o700); err != nil {
		return nil, err
	}
	m := &Mesh{data: filepath.Join(home, "share", "harness"), env: []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + home, "TMPDIR=" + os.TempDir(), "XDG_DATA_HOME=" + filepath.Join(home, "share"),
		"XDG_CONFIG_HOME=" + filepath.Join(home, "config"), "XDG_RUNTIME_DIR=" + runtimeDir, "OPENAI_BASE_URL=" + models.http.BaseURL(),
	}}
	script := filepath.Join(home, "first.yaml")
	if err := os.WriteFile(script, []byte("turns:\n  - {calls: [{name: work_complete, arguments: {summary: started}}]}\n"), 0o600); err != nil {
		return nil, err
	}
	first := exec.Command(Harness, "run", "--workspace", runtimeDir, "--model", "script:"+script, "Start.")
	first.Env = m.env
	if out, err := first.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("harness run: %w\n%s", err, out)
	}
	raw, err := os.ReadFile(filepath.Join(m.data, "holder.json"))
	if err != nil {
		return nil, err
	}
	var holder struct {
		PID    int    `json:"pid"`
		Socket string `json:"socket"`
	}
	if err := json.Unmarshal(raw, &holder); err != nil {
		return nil, err
	}
	provider := &provider{env: m.env}
	m.Conn, err = grpc.NewClient("unix:"+holder.Socket, grpc.WithTransportCredentials(insecure.NewCredentials()), keytest.With(m.data),
		grpc.WithUnaryInterceptor(provider.unary), grpc.WithStreamInterceptor(provider.stream))
	if err != nil {
		return nil, err
	}
	m.Gateway = harnessv1.NewGatewayServiceClient(m.Conn)
	m.stop = func() {
		_ = m.Conn.Close()
		_ = syscall.Kill(holder.PID, syscall.SIGKILL) // runs that tests have left would keep it for its drain
	}
	return m, nil
}

// provider gives each run that starts its variables first, as verbs do.
type provider struct{ env []string }

func (p *provider) provide(ctx context.Context, conn *grpc.ClientConn, start *harnessv1.StartRunRequest) error {
	variables := map[string]string{}
	for _, pair := range p.env {
		if name, value, _ := strings.Cut(pair, "="); name == "OPENAI_BASE_URL" {
			variables[name] = value
		}
	}
	namespace := start.GetNamespace()
	if namespace == "" {
		namespace = "default"
	}
	_, err := harnessv1.NewLocalServiceClient(conn).ProvideEnvironment(ctx, &harnessv1.ProvideEnvironmentRequest{Environment: &harnessv1.RunEnvironment{
		Run: &harnessv1.LocalRun{Namespace: namespace, RunId: start.GetRunId()}, Provider: variables,
		Commands: slices.DeleteFunc(slices.Clone(p.env), func(pair string) bool { return strings.HasPrefix(pair, "OPENAI_") }),
	}})
	return err
}

func (p *provider) unary(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	if start, ok := req.(*harnessv1.StartRunRequest); ok && start.GetRunId() != "" {
		if err := p.provide(ctx, conn, start); err != nil {
			return err
		}
	}
	return invoke(ctx, method, req, reply, conn, opts...)
}

func (p *provider) stream(ctx context.Context, desc *grpc.StreamDesc, conn *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	s, err := open(ctx, desc, conn, method, opts...)
	return &providingStream{ClientStream: s, conn: conn, provider: p}, err
}

// providingStream is a Run stream whose first message starts a run.
type providingStream struct {
	grpc.ClientStream
	conn     *grpc.ClientConn
	provider *provider
}

// SendMsg sends a message.
func (s *providingStream) SendMsg(m any) error {
	if request, ok := m.(*harnessv1.RunRequest); ok && request.GetStart() != nil {
		if err := s.provider.provide(s.Context(), s.conn, request.GetStart()); err != nil {
			return err
		}
	}
	return s.ClientStream.SendMsg(m)
}

var readyLine = regexp.MustCompile(`ready role=gateway addr=(\S+)`)

// startServer starts harness serve and connects to it.
func startServer(dir string) (*Mesh, error) {
	m := &Mesh{data: filepath.Join(dir, "data"), env: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "TMPDIR=" + os.TempDir()}}
	cmd := exec.Command(Harness, "serve", "--data", m.data, "--listen", "127.0.0.1:0", "--sync", "interval")
	cmd.Env = append(slices.Clone(m.env), "OPENAI_BASE_URL="+models.http.BaseURL())
	errs, err := cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	lines := bufio.NewScanner(errs)
	var output []string
	for m.address == "" && lines.Scan() {
		output = append(output, lines.Text())
		if ready := readyLine.FindStringSubmatch(lines.Text()); ready != nil {
			m.address = ready[1]
		}
	}
	if m.address == "" {
		return nil, fmt.Errorf("harness serve: %w\n%s", errors.Join(cmd.Process.Kill(), cmd.Wait()), strings.Join(output, "\n"))
	}
	var reading sync.WaitGroup
	reading.Go(func() {
		for lines.Scan() {
			if os.Getenv("HARNESS_TEST_STDERR") != "" {
				fmt.Fprintln(os.Stderr, lines.Text())
			}
		}
	})
	if m.Conn, err = grpc.NewClient(m.address, grpc.WithTransportCredentials(insecure.NewCredentials()), keytest.With(m.data)); err != nil {
		return nil, err
	}
	m.Gateway = harnessv1.NewGatewayServiceClient(m.Conn)
	m.flags = []string{"--server", m.address, "--token-file", keytest.File(m.data)}
	m.stop = func() {
		_ = m.Conn.Close()
		_ = cmd.Process.Signal(os.Interrupt)
		reading.Wait()
		_ = cmd.Wait()
	}
	return m, nil
}
