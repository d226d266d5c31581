// Package reread keeps what files say, and reads them again when they change.
//
// Nothing runs in the background: each use looks at the files, which takes some
// microseconds. So a certificate or a token that was replaced holds from the next
// connection or call on, and a directory of symbolic links that is switched at
// once, as Kubernetes does with secrets, is seen as one change.
package reread

import (
	"os"
	"slices"
	"sync"
	"time"
)

// Value is what some files say. It is safe for concurrent use.
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

// stamp tells a file from the one that was there before.
type stamp struct {
	changed time.Time
	size    int64
	missing bool
	info    os.FileInfo
}

// settled is the age from which a file that was read cannot change without a new
// time of change: clocks of file systems are coarse.
const settled = time.Second

// New reads the files for the first time. warn is called once for each change that
// cannot be read; the value from before then stays.
func New[T any](parse func() (T, error), warn func(error), paths ...string) (*Value[T], error) {
	v := &Value[T]{parse: parse, warn: warn}
	for _, p := range paths {
		if p != "" {
			v.paths = append(v.paths, p)
		}
	}
	v.seen, v.read = v.look(), time.Now()
	var err error
	if v.value, err = parse(); err != nil {
		return nil, err
	}
	return v, nil
}

// Get is what the files say now, or said before they became unreadable.
func (v *Value[T]) Get() T {
	value, _ := v.Try()
	return value
}

// Try is Get, and why the files cannot be read now.
func (v *Value[T]) Try() (T, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	now := v.look()
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

// fresh says that a file was changed so shortly before it was read that it may
// have been changed again without showing.
func (v *Value[T]) fresh() bool {
	return slices.ContainsFunc(v.seen, func(s stamp) bool { return !s.missing && v.read.Sub(s.changed) < settled })
}

func (v *Value[T]) look() []stamp {
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
