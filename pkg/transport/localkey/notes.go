package localkey

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// Notes is a folder with one note for each address at which a gateway of this user
// requires a key. A note has two lines, the path of the key file and the process that
// serves the address. It never has the key, so that a key is in one place, which the
// tools of an agent cannot reach.
//
// A note counts only while its process exists: after the end of a gateway another user
// may listen at its address, and must not be sent the key.
type Notes struct {
	// Dir is the folder, mode 0700.
	Dir string
}

// Note is where a gateway has its key.
type Note struct {
	// Address is the address of the gateway, HOST:PORT with an IP address as HOST, or
	// unix:PATH. A client has to dial it instead of a name such as localhost, which may
	// lead to another process.
	Address string
	// KeyFile is the absolute path of the key file.
	KeyFile string
	// PID is the process that serves the address.
	PID int
}

// ErrNoNote is returned if no gateway that exists has noted an address.
var ErrNoNote = errors.New("no gateway has noted this address")

// UserNotes returns the notes of a user by the environment: $XDG_CONFIG_HOME/harness/keys,
// else $HOME/.config/harness/keys.
func UserNotes(env func(string) string) (Notes, error) {
	dir := env("XDG_CONFIG_HOME")
	if !filepath.IsAbs(dir) {
		home := env("HOME")
		if !filepath.IsAbs(home) {
			return Notes{}, errors.New("configuration folder: neither XDG_CONFIG_HOME nor HOME is an absolute path: set one of them")
		}
		dir = filepath.Join(home, ".config")
	}
	return Notes{Dir: filepath.Join(dir, "harness", "keys")}, nil
}

// Put notes the key file of an address, HOST:PORT with an IP address or unix:PATH, which
// this process serves. It replaces the note of an earlier process, and removes notes
// whose key file does not exist any more.
func (n Notes) Put(address, keyFile string) error {
	names := candidates(address)
	if len(names) != 1 {
		return fmt.Errorf("note of the key for %q: expected unix:PATH or HOST:PORT with a loopback IP address", address)
	}
	file, err := filepath.Abs(keyFile)
	if err != nil {
		return fmt.Errorf("note of the key: %w", err)
	}
	if strings.ContainsAny(file, "\r\n") {
		return fmt.Errorf("note of the key: the path %q has a line break: use another path", file)
	}
	if err := os.MkdirAll(n.Dir, 0o700); err != nil {
		return fmt.Errorf("note of the key: %w", err)
	}
	if err := n.check(); err != nil {
		return err
	}
	n.prune()
	if err := replace(n.path(names[0]), fmt.Sprintf("%s\n%d\n", file, os.Getpid())); err != nil {
		return fmt.Errorf("note of the key: %w", err)
	}
	return nil
}

// Remove removes the note of an address, of whichever process. It returns nil if there is
// none.
func (n Notes) Remove(address string) error {
	for _, name := range candidates(address) {
		if err := os.Remove(n.path(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("note of the key: %w", err)
		}
	}
	return nil
}

// Find returns the note of an address: unix:PATH, or HOST:PORT where HOST is localhost or
// a loopback IP address. The error is ErrNoNote if there is none, if its process has
// ended, or if the address is of another machine.
func (n Notes) Find(address string) (Note, error) {
	for _, name := range candidates(address) {
		note, err := n.read(name)
		if err != nil {
			if errors.Is(err, ErrNoNote) {
				continue
			}
			return Note{}, err
		}
		return note, nil
	}
	return Note{}, ErrNoNote
}

// read reads the note of a normalised address.
func (n Notes) read(address string) (Note, error) {
	switch err := n.check(); {
	case errors.Is(err, fs.ErrNotExist):
		return Note{}, ErrNoNote
	case err != nil:
		return Note{}, err
	}
	raw, err := readOwn(n.path(address))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Note{}, ErrNoNote
	case err != nil:
		return Note{}, fmt.Errorf("note of the key: %w", err)
	}
	lines := strings.Split(string(raw), "\n")
	if len(lines) != 3 || !filepath.IsAbs(lines[0]) || lines[2] != "" {
		return Note{}, fmt.Errorf("note of the key: %s is damaged: remove it, and restart the gateway at %s", n.path(address), address)
	}
	pid, err := strconv.Atoi(lines[1])
	if err != nil || pid <= 0 {
		return Note{}, fmt.Errorf("note of the key: %s is damaged: remove it, and restart the gateway at %s", n.path(address), address)
	}
	// A process of another user cannot be signalled, so it does not count.
	if syscall.Kill(pid, 0) != nil {
		return Note{}, ErrNoNote
	}
	return Note{Address: address, KeyFile: lines[0], PID: pid}, nil
}

// check returns an error unless the folder belongs to this user alone.
func (n Notes) check() error {
	info, err := os.Lstat(n.Dir)
	if err != nil {
		return fmt.Errorf("folder of notes: %w", err)
	}
	if !info.IsDir() {
		return fmt.Errorf("folder of notes: %s is not a folder: remove it", n.Dir)
	}
	if err := private(n.Dir, info, "700"); err != nil {
		return fmt.Errorf("folder of notes: %w", err)
	}
	return nil
}

// prune removes notes whose key file does not exist, as after the removal of a data
// directory. What cannot be read is left for Find, which reports it.
func (n Notes) prune() {
	entries, err := os.ReadDir(n.Dir)
	if err != nil {
		return
	}
	for _, entry := range entries {
		path := filepath.Join(n.Dir, entry.Name())
		raw, err := readOwn(path)
		if err != nil || strings.HasPrefix(entry.Name(), temporaryPrefix) {
			continue
		}
		keyFile, _, _ := strings.Cut(string(raw), "\n")
		if _, err := os.Stat(keyFile); errors.Is(err, fs.ErrNotExist) {
			_ = os.Remove(path)
		}
	}
}

// path returns the file of a note. HOST:PORT is its own name; the path of a socket is
// escaped.
func (n Notes) path(address string) string {
	return filepath.Join(n.Dir, strings.NewReplacer("%", "%25", "/", "%2F").Replace(address))
}

// candidates returns the normalised addresses that an address may mean, in the order in
// which they are looked up. An address of another machine has none.
func candidates(address string) []string {
	if path, ok := strings.CutPrefix(address, "unix:"); ok {
		path = strings.TrimPrefix(path, "//")
		abs, err := filepath.Abs(path)
		if err != nil || path == "" {
			return nil
		}
		return []string{"unix:" + abs}
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return nil
	}
	port = strconv.FormatUint(number, 10)
	if strings.EqualFold(host, "localhost") {
		return []string{net.JoinHostPort("127.0.0.1", port), net.JoinHostPort("::1", port)}
	}
	ip, err := netip.ParseAddr(host)
	if err != nil || !ip.Unmap().IsLoopback() {
		return nil
	}
	return []string{net.JoinHostPort(ip.Unmap().String(), port)}
}
