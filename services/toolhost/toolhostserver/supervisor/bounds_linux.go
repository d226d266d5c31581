package supervisor

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Intervals at which the processes of a command and its temporary folder are measured.
const (
	measureEvery = 100 * time.Millisecond
	// folderEvery is longer, because a folder is walked.
	folderEvery = 2 * time.Second
)

// exceeded sends what a command used too much of, once. Without bounds it never does.
func (b *Bounds) exceeded(g *group) <-chan string {
	what := make(chan string, 1)
	if b == nil || without("measured bounds") {
		return what
	}
	go func() {
		walked := time.Now() // a command that begins above the bound can remove files
		for range time.Tick(measureEvery) {
			// The kernel may have killed one process for it; the others end, too.
			if why := cmp.Or(g.exceeded(b), b.processes()); why != "" {
				what <- why
				return
			}
			if b.FolderBytes > 0 && time.Since(walked) >= folderEvery {
				if size(b.Folder) > b.FolderBytes {
					what <- fmt.Sprintf("its temporary folder had more than %d bytes", b.FolderBytes)
					return
				}
				walked = time.Now()
			}
		}
	}()
	return what
}

// processes measures the descendants of this process.
func (b *Bounds) processes() string {
	u := usageOf(os.Getpid())
	switch {
	case b.Tasks > 0 && u.tasks > b.Tasks:
		return fmt.Sprintf("it had more than %d processes and threads", b.Tasks)
	case b.MemoryBytes > 0 && u.memory > b.MemoryBytes:
		return b.tooMuchMemory()
	}
	return ""
}

func (b *Bounds) tooMuchMemory() string {
	return fmt.Sprintf("its processes had more than %d bytes of memory", b.MemoryBytes)
}

// usage is what processes use.
type usage struct {
	tasks  int // processes and threads
	memory uint64
}

// usageOf returns the usage of the descendants of a process. The kernel lists the children of each
// thread, so it looks at no other process; without such lists it looks at all.
func usageOf(pid int) usage {
	var u usage
	open, listed := childrenOf(pid)
	if !listed {
		for _, p := range descendants(pid) {
			tasks, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", p.PID))
			u.tasks += len(tasks)
			u.memory += memoryOf(p.PID)
		}
		return u
	}
	for len(open) > 0 {
		child := open[len(open)-1]
		below, _ := childrenOf(child)
		open = append(open[:len(open)-1], below...)
		tasks, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", child))
		u.tasks += len(tasks)
		u.memory += memoryOf(child)
	}
	return u
}

// childrenOf returns the children of a process. listed is false if the kernel does not list
// them, or the process has ended.
func childrenOf(pid int) (children []int, listed bool) {
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		listed = true
		for field := range strings.FieldsSeq(string(text)) {
			if child, err := strconv.Atoi(field); err == nil {
				children = append(children, child)
			}
		}
	}
	return children, listed
}

// memoryOf returns the memory of a process that is not that of a file, in bytes: what it has
// less what it shares.
func memoryOf(pid int) uint64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	fields := strings.Fields(string(text))
	if err != nil || len(fields) < 3 {
		return 0
	}
	resident, _ := strconv.ParseUint(fields[1], 10, 64)
	shared, _ := strconv.ParseUint(fields[2], 10, 64)
	if shared > resident {
		return 0
	}
	return (resident - shared) * uint64(os.Getpagesize()) //nolint:gosec // above 0
}

// size returns the bytes of the files in a folder. What vanishes meanwhile counts as empty.
func size(folder string) uint64 {
	var total uint64
	_ = filepath.WalkDir(folder, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return nil //nolint:nilerr // it has vanished
		}
		if info, err := entry.Info(); err == nil {
			total += uint64(info.Size()) //nolint:gosec // from 0
		}
		return nil
	})
	return total
}
