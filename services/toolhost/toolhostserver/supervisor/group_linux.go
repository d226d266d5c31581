package supervisor

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// groupPrefix begins the names of the control groups of commands; the pid of their supervisor
// follows.
const groupPrefix = "harness-command-"

// group is the control groups of a command, one for each hierarchy that bounds it. A nil one
// bounds nothing.
type group struct {
	members []member
	memory  bool // they bound memory, too
}

// member is a control group. entry is the file by which something enters a group: threads in
// version 1, processes in version 2. back is that of the group in which this process was, and open
// is its descriptor, because a confined thread cannot open it any more.
type member struct {
	own, entry, back string
	open             int
}

// itself is the thread that writes it, in version 2 its process. In version 1 a thread that moves
// itself does not wait for the other processes of the machine, which takes milliseconds
// (cgroup_procs_write_start).
const itself = "0"

// openGroup makes control groups that bound a command next to or below that of this process, and
// enters them with this thread, so that what it starts is in them. It returns nil if none can
// bound processes.
func openGroup(b *Bounds) *group {
	if b == nil || without("control group") {
		return nil
	}
	g := &group{}
	if !g.add("pids", map[string]uint64{"pids.max": b.most()}) {
		return nil
	}
	if b.MemoryBytes > 0 {
		g.memory = g.add("memory", map[string]uint64{"memory.max": b.MemoryBytes, "memory.limit_in_bytes": b.MemoryBytes}) // of versions 2 and 1
	}
	return g
}

// add adds a group with limits of a controller. In version 2 one group can have them all.
func (g *group) add(controller string, limits map[string]uint64) bool {
	for _, m := range g.members {
		if m.limit(limits) {
			return true
		}
	}
	for _, m := range candidates(controller) {
		if err := os.Mkdir(m.own, 0o755); err != nil {
			continue
		}
		var err error
		if m.open, err = unix.Open(m.back, unix.O_WRONLY|unix.O_CLOEXEC, 0); err == nil {
			if m.limit(limits) && put(filepath.Join(m.own, m.entry), itself) == nil {
				g.members = append(g.members, m)
				return true
			}
			_ = unix.Close(m.open)
		}
		_ = unix.Rmdir(m.own)
	}
	return false
}

// candidates returns the groups with a controller that may be possible.
func candidates(controller string) []member {
	text, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil
	}
	name := groupPrefix + strconv.Itoa(os.Getpid())
	var all []member
	for line := range strings.Lines(string(text)) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(fields) < 3 {
			continue
		}
		if slices.Contains(strings.Split(fields[1], ","), controller) { // version 1
			now := filepath.Join("/sys/fs/cgroup", fields[1], fields[2])
			all = append(all, member{own: filepath.Join(now, name), entry: "tasks", back: filepath.Join(now, "tasks")})
		}
		if fields[1] != "" {
			continue
		}
		// Version 2: below a group with processes none has a controller, next to it one can.
		const root = "/sys/fs/cgroup"
		for at := filepath.Join(root, fields[2]); strings.HasPrefix(at, root); at = filepath.Dir(at) {
			enabled, _ := os.ReadFile(filepath.Join(at, "cgroup.subtree_control"))
			if slices.Contains(strings.Fields(string(enabled)), controller) {
				all = append(all, member{own: filepath.Join(at, name), entry: "cgroup.procs", back: filepath.Join(root, fields[2], "cgroup.procs")})
			}
		}
	}
	return all
}

// limit sets the limits that a group has, and reports whether it has one.
func (m member) limit(limits map[string]uint64) bool {
	set := false
	for file, value := range limits {
		set = put(filepath.Join(m.own, file), strconv.FormatUint(value, 10)) == nil || set
	}
	return set
}

// put writes to a file of the kernel, which exists.
func put(path, text string) error {
	fd, err := unix.Open(path, unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	_, err = unix.Write(fd, []byte(text))
	_ = unix.Close(fd)
	return err
}

// leave takes this thread, which has entered them, out of its groups.
func (g *group) leave() {
	if g == nil {
		return
	}
	for _, m := range g.members {
		_, _ = unix.Write(m.open, []byte(itself))
		_ = unix.Close(m.open)
	}
}

// kill kills the processes of the command. Those that are forked meanwhile need another call.
func (g *group) kill() {
	if g == nil {
		return
	}
	own := g.members[0].own
	if put(filepath.Join(own, "cgroup.kill"), "1") == nil { // version 2, Linux 5.14
		return
	}
	text, _ := os.ReadFile(filepath.Join(own, "cgroup.procs"))
	for field := range strings.FieldsSeq(string(text)) {
		if pid, err := strconv.Atoi(field); err == nil && pid > 1 && pid != os.Getpid() {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
	}
}

// exceeded returns the bound for which the kernel has killed a process; empty for none.
func (g *group) exceeded(b *Bounds) string {
	if g == nil || b.MemoryBytes == 0 {
		return ""
	}
	for _, m := range g.members {
		for _, file := range []string{"memory.events", "memory.oom_control"} { // of versions 2 and 1
			text, _ := os.ReadFile(filepath.Join(m.own, file))
			for line := range strings.Lines(string(text)) {
				if n, found := strings.CutPrefix(strings.TrimSpace(line), "oom_kill "); found && n != "0" {
					return b.tooMuchMemory()
				}
			}
		}
	}
	return ""
}

// remove removes the groups, whose processes are dead, and those that supervisors left that were
// killed.
func (g *group) remove() {
	if g == nil {
		return
	}
	for _, m := range g.members {
		_ = unix.Rmdir(m.own)
		entries, _ := os.ReadDir(filepath.Dir(m.own))
		for _, e := range entries {
			pid, found := strings.CutPrefix(e.Name(), groupPrefix)
			if _, err := os.Stat("/proc/" + pid); found && os.IsNotExist(err) {
				_ = unix.Rmdir(filepath.Join(filepath.Dir(m.own), e.Name()))
			}
		}
	}
}
