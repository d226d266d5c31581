// Package reread keeps the parsed content of files and reads them again when they
// change.
//
// Nothing runs in the background: each Get checks the files, which takes some
// microseconds. A replaced certificate or token is used from the next connection or call
// on. A directory of symbolic links that is switched atomically, as Kubernetes does with
// secrets, is seen as one change.
package reread

import (
	"os"
	"slices"
	"sync"
	"time"
)

// Value is the parsed content of some files. It is safe for concurrent use.
type Value[T any] struct {
	paths []string
	parse func() (T, error)
	warn  func(error)

	mu      sync.Mutex
	value   T
	seen    []stamp
	read    time.Time
	problem error
}

// stamp identifies a version of a file.
type stamp struct {
	changed time.Time
	size    int64
	missing bool
	info    os.FileInfo
}

// settled is the age from which a file that was read cannot change again with the same
// modification time: the clocks of file systems are coarse.
const settled = time.Second

// New reads the files for the first time. warn is called once for each change that
// cannot be read; until the next readable one, the previous value is used.
func New[T any](parse func() (T, error), warn func(error), paths ...string) (*Value[T], error) {
	v := &Value[T]{parse: parse, warn: warn}
	for _, p := range paths {
		if p != "" {
			v.paths = append(v.paths, p)
		}
	}
	v.seen, v.read = v.stamps(), time.Now()
	var err error
	if v.value, err = parse(); err != nil {
		return nil, err
	}
	return v, nil
}

// Get returns the current value, or the last one that could be read.
func (v *Value[T]) Get() T {
	value, _ := v.Try()
	return value
}

// Try returns what Get returns, and why the files cannot be read now.
func (v *Value[T]) Try() (T, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	now := v.stamps()
	if slices.EqualFunc(now, v.seen, stamp.same) && !v.fresh() {
		return v.value, v.problem
	}
	changed := !slices.EqualFunc(now, v.seen, stamp.same)
	v.seen, v.read = now, time.Now()
	value, err := v.parse()
	if err != nil {
		if (changed || v.problem == nil) && v.warn != nil {
			v.warn(err)
		}
		v.problem = err
		return v.value, err
	}
	v.value, v.problem = value, nil
	return value, nil
}

// fresh reports whether a file was read so soon after its modification that another
// change may have the same time.
func (v *Value[T]) fresh() bool {
	return slices.ContainsFunc(v.seen, func(s stamp) bool { return !s.missing && v.read.Sub(s.changed) < settled })
}

func (v *Value[T]) stamps() []stamp {
	stamps := make([]stamp, len(v.paths))
	for i, p := range v.paths {
		info, err := os.Stat(p)
		if err != nil {
			stamps[i].missing = true
			continue
		}
		stamps[i] = stamp{changed: info.ModTime(), size: info.Size(), info: info}
	}
	return stamps
}

func (s stamp) same(o stamp) bool {
	if s.missing || o.missing {
		return s.missing == o.missing
	}
	return s.changed.Equal(o.changed) && s.size == o.size && os.SameFile(s.info, o.info)
}
