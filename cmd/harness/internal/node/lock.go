package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gofrs/flock"
	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials/insecure"
)

// Names inside a data directory.
const (
	lockFile   = "lock"
	holderFile = "holder.json"
	natsDir    = "nats"
	toolsDir   = "tools"
)

// HeldError is returned if another process uses a data directory.
type HeldError struct {
	// Dir is the data directory.
	Dir string
	// PID is the process, 0 if it is not known yet.
	PID int
	// Command is the program and verb of the process.
	Command string
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
}

// lockWait bounds the attempts to lock.
const lockWait = 250 * time.Millisecond

// hold locks a data directory for this process. The kernel releases the lock when the
// process ends.
func hold(dir string) (*flock.Flock, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("data directory: %w; use another one with --data", err)
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
		return nil, &HeldError{Dir: dir, PID: h.PID, Command: h.Command}
	}
	// A killed process may have left its file: no client must connect to its dead
	// socket.
	if err := os.Remove(filepath.Join(dir, holderFile)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, errors.Join(fmt.Errorf("data directory: %w", err), lock.Unlock())
	}
	return lock, nil
}

func writeHolder(dir, socket string) error {
	data, err := json.Marshal(holder{PID: os.Getpid(), Command: command(os.Args), Socket: socket})
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

func readHolder(dir string) (holder, error) {
	var h holder
	data, err := os.ReadFile(filepath.Join(dir, holderFile))
	if err != nil {
		return h, err
	}
	return h, json.Unmarshal(data, &h)
}

// attachWait bounds the wait for a process that is starting, or that was killed while it
// started a command: until then, the command has its lock and its socket.
const attachWait = 5 * time.Second

// Attach connects to the process that uses a data directory. held is false if none does.
func Attach(ctx context.Context, dir string) (conn *grpc.ClientConn, held bool, err error) {
	lock := flock.New(filepath.Join(dir, lockFile))
	if _, err := os.Stat(lock.Path()); errors.Is(err, os.ErrNotExist) {
		return nil, false, nil
	}
	ctx, cancel := context.WithTimeout(ctx, attachWait)
	defer cancel()
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
			if conn, err := dialHolder(ctx, h.Socket); err == nil {
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
func dialHolder(ctx context.Context, socket string) (*grpc.ClientConn, error) {
	conn, err := grpc.NewClient("unix:"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage)))
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
