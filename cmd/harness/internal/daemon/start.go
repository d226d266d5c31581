package daemon

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/gofrs/flock"
	"google.golang.org/grpc"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/node"
)

// Program is how the background process is started.
type Program struct {
	// Path is this program.
	Path string
	// Environ are the variables of this process, of which those of childVariables are passed.
	Environ []string
	// Replace is the id of the process that it takes over from; 0: none.
	Replace int
	// Now takes over although commands run.
	Now bool
	// Catalogue is the file that extends the model catalogue, absolute; empty: that of the
	// environment.
	Catalogue string
	// Build is the version of this program.
	Build string
	// Note gets remarks for the user; nil: none.
	Note func(string)
}

// JoinWait bounds the start of the process.
const JoinWait = 30 * time.Second

// Join connects to the process that uses a data directory, and starts the background process
// if none does. One of a lower APILevel is replaced first, which can take as long as its
// commands run.
func Join(ctx context.Context, dir string, program Program) (*grpc.ClientConn, error) {
	if err := replaceOlder(ctx, dir, program); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, JoinWait)
	defer cancel()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, startError(dir, err)
	}
	for starts := 1; ; {
		if err := check(dir, holding(dir)); err != nil {
			return nil, err
		}
		conn, held, err := node.Await(ctx, dir) // one that continues many runs answers late on a busy machine
		if held || err != nil {
			if wrong := check(dir, holding(dir)); wrong != nil { // it has started meanwhile
				if conn != nil {
					_ = conn.Close()
				}
				return nil, wrong
			}
			return conn, err
		}
		switch err := startOne(ctx, dir, program); {
		case errors.Is(err, errEndedAtStart) && starts < maxStarts:
			starts++
		case err != nil && !errors.Is(err, ErrHeld):
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

// leastRoom is the space below which a start that failed has failed for want of space, in
// bytes.
const leastRoom = 4 << 20

// existing returns the folder itself, or the closest one above it that exists.
func existing(dir string) string {
	for {
		if _, err := os.Stat(dir); err == nil || filepath.Dir(dir) == dir {
			return dir
		}
		dir = filepath.Dir(dir)
	}
}

// startError returns why the process did not start, with what to do.
func startError(dir string, err error) error {
	text := err.Error()
	free, known := FreeBytes(existing(dir))
	switch {
	case known && free < leastRoom: // the bus does not report that as the reason
		return fmt.Errorf("the background process cannot start: %s has no room (%d KiB are free): free some, or name another directory with --data", dir, free>>10)
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

// reserve keeps other clients from starting the process until release is called.
func reserve(ctx context.Context, dir string) (release func(), err error) {
	starting := flock.New(filepath.Join(dir, startLock))
	if _, err := starting.TryLockContext(ctx, 20*time.Millisecond); err != nil {
		return nil, fmt.Errorf("another client is starting the background process: %w", err)
	}
	return func() { _ = starting.Close() }, nil
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

// errEndedAtStart is returned for a process that was ended before it could report anything.
var errEndedAtStart = errors.New("it ended at its start")

// maxStarts is how often Join starts a process that is ended at its start.
const maxStarts = 3

// Spawn runs the program as background process and waits until it is ready. The error is
// ErrHeld if another one is elected.
func Spawn(ctx context.Context, program Program) error {
	read, write, err := os.Pipe()
	if err != nil {
		return err
	}
	defer func() { _ = read.Close() }()
	args := []string{"daemon", "run", "--ready-fd", "3"}
	if program.Replace != 0 {
		args = append(args, "--replace", strconv.Itoa(program.Replace))
	}
	if program.Catalogue != "" {
		args = append(args, "--catalogue", program.Catalogue)
	}
	if program.Now {
		args = append(args, "--now")
	}
	cmd := exec.Command(program.Path, args...) //nolint:noctx // this program, which outlives its client
	cmd.Dir, cmd.Env, cmd.ExtraFiles = "/", Environ(program.Environ), []*os.File{write}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = cmd.Start()
	_ = write.Close()
	if err != nil {
		return err
	}
	go func() { _ = cmd.Wait() }()
	stop := context.AfterFunc(ctx, func() { _ = read.SetReadDeadline(time.Now()) })
	defer stop()
	line, err := program.await(read)
	switch {
	case line == ready:
		return nil
	case line == ErrHeld.Error():
		return ErrHeld
	case line != "":
		return errors.New(line)
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return fmt.Errorf("%w (%w)", errEndedAtStart, err)
}

// await returns the last line of a process, and notes those about what it waits for.
func (p *Program) await(pipe io.Reader) (line string, err error) {
	lines, noted := bufio.NewReader(pipe), ""
	for {
		line, err = lines.ReadString('\n')
		line = strings.TrimSpace(line)
		text, waits := strings.CutPrefix(line, waiting)
		if !waits {
			return line, err
		}
		if text != noted && p.Note != nil {
			p.Note(text)
		}
		noted = text
	}
}

// Lines to the client that started a process.
const (
	ready   = "ready" // clients can connect
	waiting = "wait " // followed by the reason of a wait
)

// Pipe is how a process reports to the client that started it. The zero value reports nothing.
type Pipe struct{ file *os.File }

// OpenPipe returns the pipe of a descriptor; below 3 there is none.
func OpenPipe(fd int) *Pipe {
	if fd < 3 {
		return &Pipe{}
	}
	return &Pipe{file: os.NewFile(uintptr(fd), "ready")}
}

// Waits reports why the process waits, in one line. An error means that the client has left.
func (p *Pipe) Waits(text string) error {
	if p.file == nil {
		return nil
	}
	_, err := p.file.WriteString(waiting + strings.ReplaceAll(text, "\n", " ") + "\n")
	return err
}

// Report reports that clients can connect, or why the process did not start, and closes the
// pipe.
func (p *Pipe) Report(err error) {
	if p.file == nil {
		return
	}
	line := ready
	if err != nil {
		line = strings.ReplaceAll(err.Error(), "\n", "; ")
	}
	_, _ = p.file.WriteString(line + "\n") // the client may have gone away
	_ = p.file.Close()
	p.file = nil
}
