package guard

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"
)

const (
	// maxSpare bounds the files of calls that have ended, and maxSpareSize each of them, in bytes.
	maxSpare     = 4
	maxSpareSize = 256 << 10
)

// First bytes of a record. With running it is a JSON object; after a call has ended it is not.
const (
	running = '{'
	ended   = '-'
)

// record is the file of a snapshot while a call runs. The next call in the workspace uses the file
// again if nothing has changed: then one byte is written, instead of a file.
type record struct {
	path string
	file *os.File
	data []byte
}

// store stores the snapshot of a watch in a file, which Recover leaves alone from its first use on.
func (g *Guard) store(w *Watch) error {
	data, err := json.Marshal(w.before)
	if err != nil {
		return err
	}
	if r := g.reuse(w, data); r != nil {
		if err := r.mark(running, g.sync); err == nil {
			return nil
		}
		g.use(w, nil)
		r.remove()
	}
	return g.create(w, data)
}

func (g *Guard) use(w *Watch, r *record) {
	g.mu.Lock()
	defer g.mu.Unlock()
	w.record = r
}

// reuse gives a watch a spare record with this content, and returns it; nil if there is none.
func (g *Guard) reuse(w *Watch, data []byte) *record {
	g.mu.Lock()
	defer g.mu.Unlock()
	i := slices.IndexFunc(g.spare, func(r *record) bool { return bytes.Equal(r.data, data) })
	if i < 0 {
		return nil
	}
	r := g.spare[i]
	g.spare = slices.Delete(g.spare, i, i+1)
	if info, err := r.file.Stat(); err == nil && links(info) > 0 {
		w.record = r
		return r
	}
	r.leave() // it was deleted
	return nil
}

func links(info os.FileInfo) uint64 {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(stat.Nlink) //nolint:unconvert // 16 bits on some systems
	}
	return 0
}

// create writes a new record of a watch.
func (g *Guard) create(w *Watch, data []byte) error {
	if err := os.MkdirAll(g.calls, 0o700); err != nil {
		return err
	}
	r := &record{path: filepath.Join(g.calls, stamp()), data: data}
	g.use(w, r)
	f, err := os.OpenFile(r.path+".new", os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		g.use(w, nil)
		return err
	}
	r.file = f
	_, err = f.Write(data)
	if err == nil && g.sync {
		err = f.Sync()
	}
	if err == nil {
		err = os.Rename(r.path+".new", r.path)
	}
	if err != nil {
		g.use(w, nil)
		r.leave()
		_ = os.Remove(r.path + ".new")
	}
	return err
}

// release ends a record, whose call has been compared. mu is locked.
func (g *Guard) release(r *record) {
	if len(r.data) > maxSpareSize || r.mark(ended, false) != nil {
		r.remove()
		return
	}
	if len(g.spare) == maxSpare {
		g.spare[0].remove()
		g.spare = slices.Delete(g.spare, 0, 1)
	}
	g.spare = append(g.spare, r)
}

// mark sets whether the call of a record runs.
func (r *record) mark(first byte, sync bool) error {
	if _, err := r.file.WriteAt([]byte{first}, 0); err != nil || !sync {
		return err
	}
	return r.file.Sync()
}

// leave closes the file, which remains unchanged.
func (r *record) leave() {
	if r != nil {
		_ = r.file.Close()
	}
}

// remove closes and deletes the file.
func (r *record) remove() {
	r.leave()
	_ = os.Remove(r.path)
}

// stamp returns a new name that sorts by time.
func stamp() string {
	random := make([]byte, 4)
	_, _ = rand.Read(random) // never fails
	return time.Now().UTC().Format("20060102T150405.000000000Z") + "-" + hex.EncodeToString(random)
}
