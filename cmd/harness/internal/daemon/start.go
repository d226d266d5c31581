package daemon

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/gofrs/flock"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/node"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// Program is how the background process is started.
type Program struct {
	// Path is this program.
	Path string
	// Environ are the variables of this process, of which those of childVariables are passed.
	Environ []string
	// Keep are the runs that it continues, NAMESPACE/RUN.
	Keep []string
	// Environments are those that it has from the start.
	Environments []*harnessv1.RunEnvironment
}

// JoinWait bounds the start of the process.
const JoinWait = 30 * time.Second

// Join connects to the process that uses a data directory, and starts the background process
// if none does.
func Join(ctx context.Context, dir string, program Program) (*grpc.ClientConn, error) {
	ctx, cancel := context.WithTimeout(ctx, JoinWait)
	defer cancel()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, startError(dir, err)
	}
	for {
		if err := Check(dir, holding(dir)); err != nil {
			return nil, err
		}
		conn, held, err := node.Attach(ctx, dir)
		if held || err != nil {
			if err != nil {
				if wrong := Check(dir, holding(dir)); wrong != nil {
					return nil, wrong
				}
			}
			return conn, err
		}
		if err := startOne(ctx, dir, program); err != nil && !errors.Is(err, ErrHeld) {
			return nil, startError(dir, err)
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("the background process did not start within %s; its log is %s", JoinWait, LogFile(dir))
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// holding returns the process that uses the directory, the zero value if none does.
func holding(dir string) node.Holder {
	h := node.HolderOf(dir)
	if h.PID == 0 || syscall.Kill(h.PID, 0) == syscall.ESRCH || !node.Held(dir) {
		return node.Holder{}
	}
	return h
}

// startError returns why the process did not start, with what to do.
func startError(dir string, err error) error {
	text := err.Error()
	switch {
	case errors.Is(err, syscall.ENOSPC), strings.Contains(text, syscall.ENOSPC.Error()), strings.Contains(text, syscall.EDQUOT.Error()):
		return fmt.Errorf("the background process cannot start: %s has no room (%s): free some, or name another directory with --data", dir, text)
	case errors.Is(err, syscall.EACCES), errors.Is(err, syscall.EROFS):
		return fmt.Errorf("the background process cannot start: %s; name another directory with --data", text)
	}
	return fmt.Errorf("the background process cannot start: %s; its log is %s", text, LogFile(dir))
}

// startOne starts the process, unless another client is doing so; then it returns nil.
func startOne(ctx context.Context, dir string, program Program) error {
	starting := flock.New(filepath.Join(dir, startLock))
	ok, err := starting.TryLock()
	if err != nil || !ok {
		return err
	}
	defer func() { _ = starting.Close() }()
	if node.Held(dir) {
		return nil // it started meanwhile
	}
	return Spawn(ctx, program)
}

// Reserve keeps other clients from starting the process until release is called.
func Reserve(ctx context.Context, dir string) (release func(), err error) {
	starting := flock.New(filepath.Join(dir, startLock))
	if _, err := starting.TryLockContext(ctx, 20*time.Millisecond); err != nil {
		return nil, fmt.Errorf("another client is starting the background process: %w", err)
	}
	return func() { _ = starting.Close() }, nil
}

// maxHanded bounds what a process hands to its successor, in bytes.
const maxHanded = 256 << 20

// ReadEnvironments reads what Spawn passes on.
func ReadEnvironments(in io.Reader) ([]*harnessv1.RunEnvironment, error) {
	raw, err := io.ReadAll(io.LimitReader(in, maxHanded))
	if err != nil {
		return nil, err
	}
	handed := &harnessv1.StopProcessResponse{}
	err = proto.Unmarshal(raw, handed)
	return handed.GetEnvironments(), err
}

// childVariables are the variables that the process gets: no key of a provider, and nothing
// that only a terminal knows.
var childVariables = []string{
	"HOME", "USER", "LOGNAME", "PATH", "SHELL", "TMPDIR", "LANG", "TZ", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy",
	"SSL_CERT_FILE", "SSL_CERT_DIR", "GOMEMLIMIT", "GOTRACEBACK", "GOCOVERDIR", "HARNESS_LOG_LEVEL", "HARNESS_CATALOGUE", "HARNESS_LINGER", "HARNESS_FAILPOINT",
}

// Environ returns the variables of the process.
func Environ(environ []string) []string {
	return slices.DeleteFunc(slices.Clone(environ), func(pair string) bool {
		name, _, _ := strings.Cut(pair, "=")
		return !slices.Contains(childVariables, name) && !strings.HasPrefix(name, "XDG_") && !strings.HasPrefix(name, "LC_") && !strings.HasPrefix(name, "OTEL_")
	})
}

// Spawn runs the program as background process and waits until it is ready. The error is
// ErrHeld if another one is elected.
func Spawn(ctx context.Context, program Program) error {
	read, write, err := os.Pipe()
	if err != nil {
		return err
	}
	defer func() { _ = read.Close() }()
	args := []string{"daemon", "run", "--ready-fd", "3"}
	for _, run := range program.Keep {
		args = append(args, "--keep", run)
	}
	cmd := exec.Command(program.Path, args...) //nolint:noctx // this program, which outlives its client
	cmd.Dir, cmd.Env, cmd.ExtraFiles = "/", Environ(program.Environ), []*os.File{write}
	if len(program.Environments) > 0 {
		handed, err := proto.Marshal(&harnessv1.StopProcessResponse{Environments: program.Environments})
		if err != nil {
			return errors.Join(err, write.Close())
		}
		cmd.Stdin = bytes.NewReader(handed) // over a pipe
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = cmd.Start()
	_ = write.Close()
	if err != nil {
		return err
	}
	go func() { _ = cmd.Wait() }()
	stop := context.AfterFunc(ctx, func() { _ = read.SetReadDeadline(time.Now()) })
	defer stop()
	line, err := bufio.NewReader(read).ReadString('\n')
	switch line = strings.TrimSpace(line); {
	case line == ready:
		return nil
	case line == ErrHeld.Error():
		return ErrHeld
	case line != "":
		return errors.New(line)
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return fmt.Errorf("it ended at its start (%w)", err)
}

// ready is the line of a process to which clients can connect.
const ready = "ready"

// Report writes the line that Spawn waits for: ready, or why the process did not start.
func Report(fd int, err error) {
	line := ready
	if err != nil {
		line = strings.ReplaceAll(err.Error(), "\n", "; ")
	}
	pipe := os.NewFile(uintptr(fd), "ready")
	if pipe == nil {
		return
	}
	_, _ = pipe.WriteString(line + "\n") // the client may have gone away
	_ = pipe.Close()
}
