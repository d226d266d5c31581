package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/gofrs/flock"
	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/harnessmesh/harnessmesh/pkg/transport/access"
	"github.com/harnessmesh/harnessmesh/pkg/transport/localkey"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
)

// Names inside a data directory.
const (
	lockFile   = "lock"
	holderFile = "holder.json"
	natsDir    = "nats"
	toolsDir   = "tools"
)

// Stored returns the folder of a data directory with the runs.
func Stored(data string) string { return filepath.Join(data, natsDir) }

// HeldError is returned if another process uses a data directory.
type HeldError struct {
	// Dir is the data directory.
	Dir string
	// PID is the process, 0 if it is not known yet.
	PID int
	// Command is the program and verb of the process.
	Command string
	// Flags are those of the command line that use its gateway: its address, and the file of the
	// key. Empty while it starts.
	Flags string
}

// Error returns a text that names the process.
func (e *HeldError) Error() string {
	return fmt.Sprintf("data directory %s is in use by process %d (%s)", e.Dir, e.PID, e.Command)
}

// holder describes the process that uses a directory.
type holder struct {
	PID     int    `json:"pid"`
	Command string `json:"command"`
	Socket  string `json:"socket"`
	// KeyFile has the key that the socket requires; empty if it requires none.
	KeyFile string `json:"key_file,omitempty"`
	// Build and API are the version of the program and its APILevel; absent in files of older
	// programs.
	Build string `json:"build,omitempty"`
	API   int    `json:"api,omitempty"`
	// Background: it is the background process of the user.
	Background bool `json:"background,omitempty"`
}

// flags returns the flags that use the gateway of the process.
func (h holder) flags() string {
	switch {
	case h.Socket == "":
		return ""
	case h.KeyFile == "":
		return "--server unix:" + h.Socket
	}
	return "--server unix:" + h.Socket + " --token-file " + h.KeyFile
}

// lockWait bounds the attempts to lock.
const lockWait = 250 * time.Millisecond

// dataError returns why a data directory cannot be made, in words for its user.
func dataError(dir string, err error) error {
	var failed *fs.PathError
	switch {
	case !errors.As(err, &failed):
	case errors.Is(err, syscall.ENOTDIR):
		return fmt.Errorf("data directory %s: %s is a file: name a directory with --data", dir, failed.Path)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("data directory %s: your user has no right to make %s: make it writable, or name another directory with --data", dir, failed.Path)
	}
	return fmt.Errorf("data directory: %w; use another one with --data", err)
}

// hold locks a data directory for this process. The kernel releases the lock when the
// process ends.
func hold(dir string) (*flock.Flock, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, dataError(dir, err)
	}
	lock := flock.New(filepath.Join(dir, lockFile))
	// Attach locks the directory briefly to find out whether it is in use.
	wait, cancel := context.WithTimeout(context.Background(), lockWait)
	defer cancel()
	ok, err := lock.TryLockContext(wait, 10*time.Millisecond)
	if err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return nil, fmt.Errorf("lock data directory %s: %w", dir, err)
	}
	if !ok {
		h, _ := readHolder(dir)
		return nil, &HeldError{Dir: dir, PID: h.PID, Command: h.Command, Flags: h.flags()}
	}
	// A killed process may have left its file: no client must connect to its dead
	// socket.
	if err := os.Remove(filepath.Join(dir, holderFile)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, errors.Join(fmt.Errorf("data directory: %w", err), lock.Unlock())
	}
	return lock, nil
}

// hold locks the data directory of a node; the lock is nil if the node works without it.
func (n *Node) hold() (*flock.Flock, error) {
	shared := n.cfg.SharedData && n.cfg.NATS != ""
	if shared && !n.serves(workflow.Gateway) && !n.serves(workflow.ToolHost) {
		return nil, nil //nolint:nilnil // it stores nothing
	}
	lock, err := hold(n.cfg.Data)
	var held *HeldError
	if shared && errors.As(err, &held) {
		return nil, nil //nolint:nilnil // another process of the mesh has it
	}
	return lock, err
}

func writeHolder(dir, socket, keyFile, build string, background bool) error {
	data, err := json.Marshal(holder{
		PID: os.Getpid(), Command: command(os.Args), Socket: socket, KeyFile: keyFile, Build: build, API: APILevel, Background: background,
	})
	if err != nil {
		return err
	}
	temp := filepath.Join(dir, holderFile+".new")
	if err := os.WriteFile(temp, data, 0o600); err != nil {
		return fmt.Errorf("data directory: %w", err)
	}
	return os.Rename(temp, filepath.Join(dir, holderFile))
}

// command returns the program with its verb: enough to recognise it, without a goal or a
// secret.
func command(args []string) string {
	if len(args) == 0 {
		return "harness"
	}
	name := filepath.Base(args[0])
	if len(args) > 1 && !strings.HasPrefix(args[1], "-") {
		name += " " + args[1]
	}
	return name
}

// Holder describes the process that uses a data directory.
type Holder struct {
	// PID and Command are the process, Build and API its version and APILevel; 0 and empty in
	// programs that do not write them.
	PID     int
	Command string
	Build   string
	API     int
	// Background: it is the background process of the user.
	Background bool
}

// HolderOf returns the process that wrote that it uses a data directory; the zero value if
// none has. It may have ended.
func HolderOf(dir string) Holder {
	h, _ := readHolder(dir)
	return Holder{PID: h.PID, Command: h.Command, Build: h.Build, API: h.API, Background: h.Background}
}

func readHolder(dir string) (holder, error) {
	var h holder
	data, err := os.ReadFile(filepath.Join(dir, holderFile))
	if err != nil {
		return h, err
	}
	return h, json.Unmarshal(data, &h)
}

// Held reports whether a process has locked a data directory.
func Held(dir string) bool {
	if _, err := os.Stat(filepath.Join(dir, lockFile)); err != nil {
		return false
	}
	lock := flock.New(filepath.Join(dir, lockFile))
	ok, err := lock.TryRLock()
	if ok {
		_ = lock.Close()
	}
	return err == nil && !ok
}

// attachWait bounds the wait for a process that is starting, or that was killed while it
// started a command: until then, the command has its lock and its socket.
const attachWait = 5 * time.Second

// Attach connects to the process that uses a data directory. held is false if none does. A process that
// does not answer within 5 s is an error.
func Attach(ctx context.Context, dir string) (conn *grpc.ClientConn, held bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, attachWait)
	defer cancel()
	return Await(ctx, dir)
}

// Await is Attach for a process that may take long to start: until ctx is done, it waits for an answer.
func Await(ctx context.Context, dir string) (conn *grpc.ClientConn, held bool, err error) {
	lock := flock.New(filepath.Join(dir, lockFile))
	if _, err := os.Stat(lock.Path()); errors.Is(err, os.ErrNotExist) {
		return nil, false, nil
	}
	for {
		ok, err := lock.TryRLock()
		if err != nil {
			return nil, false, fmt.Errorf("lock of data directory %s: %w", dir, err)
		}
		if ok {
			return nil, false, lock.Unlock()
		}
		h, err := readHolder(dir)
		if err == nil && h.Socket != "" {
			var key []grpc.DialOption
			if h.KeyFile != "" {
				text, err := localkey.Read(h.KeyFile)
				if err != nil {
					return nil, true, fmt.Errorf("data directory %s is in use by process %d (%s): %w", dir, h.PID, h.Command, err)
				}
				key = append(key, grpc.WithPerRPCCredentials(access.Bearer(text, true)))
			}
			if conn, err := dialHolder(ctx, h.Socket, key...); err == nil {
				return conn, true, nil
			}
		}
		select {
		case <-ctx.Done():
			return nil, true, fmt.Errorf("data directory %s is in use by process %d (%s), which does not respond", dir, h.PID, h.Command)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// dialHolder connects to the socket of a process. A connection that the kernel accepted is
// not enough, because the socket of a dead process can still do that.
func dialHolder(ctx context.Context, socket string, more ...grpc.DialOption) (*grpc.ClientConn, error) {
	conn, err := grpc.NewClient("unix:"+socket, append(more, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage)))...)
	if err != nil {
		return nil, err
	}
	for {
		conn.Connect()
		state := conn.GetState()
		if state == connectivity.Ready {
			return conn, nil
		}
		if state == connectivity.TransientFailure || !conn.WaitForStateChange(ctx, state) {
			return nil, errors.Join(fmt.Errorf("%s: no server answers", socket), conn.Close())
		}
	}
}
