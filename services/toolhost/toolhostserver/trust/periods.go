package trust

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/sandbox"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/disk"
)

const (
	// maxPeriods bounds the periods of a workspace that are known one by one. The oldest become one period, which is
	// after them in the file.
	maxPeriods = 4096
	// periodSize is the size of a period in its file: its start and its end, in nanoseconds since 1970. An end of 0 is
	// that of a period that lasts, or of a host that has died.
	periodSize = 16
	// between is the pause between two calls of one period.
	between = time.Second
	// coarse is how far the clock of files may be late.
	coarse = 20 * time.Millisecond
	// maxLinks bounds the links that lead from one to the next.
	maxLinks = 40
)

// Periods are the times in which something of a run was alive in a workspace. The time of the last change of a file,
// which no program can set, is within one of them if a run has changed the file last. One goroutine at a time uses it.
type Periods struct {
	path       string
	file       *os.File // nil until the first Start
	at         int      // index of the last period
	start, end int64    // of that
}

func (s *Store) periodsFile(workspace string) string {
	return filepath.Join(s.periods, content.Digest([]byte(workspace))[:32])
}

// Periods returns the periods of a workspace.
func (s *Store) Periods(workspace string) *Periods {
	return &Periods{path: s.periodsFile(workspace), at: -1}
}

// Start starts a period, or continues the last one.
func (p *Periods) Start(now time.Time) error {
	if err := p.open(now); err != nil {
		return err
	}
	if p.at < 0 || now.UnixNano()-p.end > int64(between) {
		p.at, p.start = (p.at+1)%maxPeriods, now.Add(-coarse).UnixNano()
		if err := p.merge(); err != nil {
			return err
		}
	}
	return p.write(0)
}

// merge adds the oldest period, whose place is taken, to the one of those before it.
func (p *Periods) merge() error {
	var oldest, before [periodSize]byte
	if n, _ := p.file.ReadAt(oldest[:], int64(p.at)*periodSize); n < periodSize {
		return nil
	}
	if n, _ := p.file.ReadAt(before[:], maxPeriods*periodSize); n == periodSize {
		copy(oldest[:8], before[:8])
	}
	_, err := p.file.WriteAt(oldest[:], maxPeriods*periodSize)
	return err
}

// End ends the period.
func (p *Periods) End(now time.Time) error {
	if p.file == nil {
		return nil
	}
	p.end = now.UnixNano()
	return p.write(p.end)
}

// Close closes the file, which remains unchanged.
func (p *Periods) Close() {
	if p.file != nil {
		_ = p.file.Close()
		p.file = nil
	}
}

// open opens the file. A period that a host which has died left lasts until now.
func (p *Periods) open(now time.Time) error {
	if p.file != nil {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(p.path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(p.path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	p.file, p.at = f, -1
	for i, period := range readPeriods(p.path) {
		if p.at < 0 || period[0] > p.start {
			p.at, p.start, p.end = i, period[0], period[1]
		}
	}
	if p.at >= 0 && p.end == 0 {
		p.end = now.UnixNano()
		return p.write(p.end)
	}
	return nil
}

func (p *Periods) write(end int64) error {
	var b [periodSize]byte
	binary.LittleEndian.PutUint64(b[:8], uint64(p.start)) //nolint:gosec // read back unchanged
	binary.LittleEndian.PutUint64(b[8:], uint64(end))     //nolint:gosec // as above
	_, err := p.file.WriteAt(b[:], int64(p.at)*periodSize)
	return err
}

func readPeriods(path string) [][2]int64 {
	data, _ := os.ReadFile(path)
	periods := make([][2]int64, 0, len(data)/periodSize)
	for ; len(data) >= periodSize; data = data[periodSize:] {
		periods = append(periods, [2]int64{int64(binary.LittleEndian.Uint64(data)), int64(binary.LittleEndian.Uint64(data[8:]))}) //nolint:gosec // as written
	}
	return periods
}

// touched reports whether a file, or a link that leads to it, was changed last while something of a run was
// alive in a workspace that has it.
func (s *Store) touched(path string) bool {
	at := filepath.Clean(path)
	for range maxLinks {
		if s.touchedAt(at) {
			return true
		}
		target, err := os.Readlink(at)
		if err != nil {
			break
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(filepath.Dir(at), target)
		}
		at = target
	}
	target, err := filepath.EvalSymlinks(path)
	return err == nil && target != at && s.touchedAt(target)
}

// touchedAt is touched for a path and the links above it, without those to which they lead.
func (s *Store) touchedAt(path string) bool {
	for at := path; at != filepath.Dir(at); at = filepath.Dir(at) {
		var info unix.Stat_t
		if unix.Lstat(at, &info) != nil || at != path && info.Mode&unix.S_IFMT != unix.S_IFLNK {
			continue
		}
		if folder, err := filepath.EvalSymlinks(filepath.Dir(at)); err == nil && s.aliveAt(filepath.Join(folder, filepath.Base(at)), "", info.Ctim.Nano()) {
			return true
		}
	}
	return false
}

// touchedWithout reports whether a file without links was changed last while something of a run was alive in a
// workspace that has it, and not the link that leads to it.
func (s *Store) touchedWithout(path, link string) bool {
	var info unix.Stat_t
	return unix.Lstat(path, &info) == nil && s.aliveAt(path, link, info.Ctim.Nano())
}

// aliveAt reports whether something of a run was alive, at a time, in a workspace that has a path by a name
// that is not compared, and not another one.
func (s *Store) aliveAt(path, other string, changed int64) bool {
	until := changed
	if changed%int64(time.Second) == 0 { // some file systems count seconds
		until += int64(time.Second)
	}
	for workspace := filepath.Dir(path); other == "" || !sandbox.Within(other, workspace); workspace = filepath.Dir(workspace) {
		for _, period := range readPeriods(s.periodsFile(workspace)) {
			if until >= period[0] && (period[1] == 0 || changed <= period[1]) && !instructs(disk.Relative(workspace, path)) {
				return true
			}
		}
		if workspace == filepath.Dir(workspace) {
			return false
		}
	}
	return false
}
