//go:build linux

package sandbox

import (
	"fmt"
	"maps"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/harnessmesh/harnessmesh/test/sandbox/job"
)

// guard is a part of the sandbox. Without it the ways in opens are open, with it they are not.
type guard struct {
	name string
	// without leaves it out: it has the level, too.
	without job.Job
	// also are edits that are made in both cases: other guards of the same ways.
	also []job.Job
	// opens are the ways that it guards alone, with also left out.
	opens []string
	// as is the user as whom it is tried: user, root, or both if it is empty.
	as string
	// absent accepts that the kernel does not have what is guarded: then the error changes.
	absent bool
}

// redundant are the guards that cannot be tried alone, with the reason.
var redundant = map[string]string{
	"the bounding set of capabilities":                "no_new_privs keeps a program from getting rights back, and without it the filter cannot be installed as a user",
	"no_new_privs at full":                            "bubblewrap sets it, too",
	"--unshare-user":                                  "bubblewrap makes a user namespace by itself if it is not started by root",
	"--unshare-uts":                                   "only the names of the machine are in it: changing them needs rights of root, and the filter refuses the calls",
	"--unshare-cgroup-try":                            "it hides only the path of the control group; the files of control groups are read-only",
	"interrupts, buses and the keys of /proc at full": "bubblewrap makes them read-only",
	"--new-session":                                   "the supervisor starts every command in a session of its own, and the filter refuses to type into terminals",
	"Landlock: renames (REFER)":                       "a version that does not know the right refuses such renames; naming it makes those within the workspace possible",
}

// leave returns a job that leaves out guards of the supervisor.
func leave(level string, names ...string) job.Job { return job.Job{Level: level, LeaveOut: names} }

// rights returns a guard that is rights of Landlock.
func rights(name, kind string, bits uint64, opens ...string) guard {
	return guard{name: "Landlock: " + name, without: leave("kernel", fmt.Sprintf("%s:%d", kind, bits)), opens: opens}
}

// and returns the guard with another one left out in both cases.
func (g guard) and(also ...job.Job) guard {
	g.also = append(g.also, also...)
	return g
}

// only returns the guard, tried as one user.
func (g guard) only(user string) guard {
	g.as = user
	return g
}

// number returns the name of the rule of a system call.
func number(n int) string { return fmt.Sprintf("call:%d", n) }

var (
	socketRule   = leave("", number(unix.SYS_SOCKET))
	capabilities = leave("", "capabilities")
	allOfDrop    = job.Job{Drop: []string{"--cap-drop ALL"}}
)

// landlockGuards are the rights that Landlock denies, and its scopes.
var landlockGuards = []guard{
	rights("run (EXECUTE)", "fs", unix.LANDLOCK_ACCESS_FS_EXECUTE, "run a program").and(leave("", fmt.Sprintf("fs:%d", unix.LANDLOCK_ACCESS_FS_READ_FILE))),
	rights("read (READ_FILE)", "fs", unix.LANDLOCK_ACCESS_FS_READ_FILE, "read a file", "read through /proc/self/root", "read a private key", "read a key of the harness"),
	rights("list (READ_DIR)", "fs", unix.LANDLOCK_ACCESS_FS_READ_DIR, "list a folder"),
	rights("write (WRITE_FILE)", "fs", unix.LANDLOCK_ACCESS_FS_WRITE_FILE, "append to a file"),
	rights("truncate (TRUNCATE)", "fs", unix.LANDLOCK_ACCESS_FS_TRUNCATE, "truncate a file"),
	rights("create files (MAKE_REG)", "fs", unix.LANDLOCK_ACCESS_FS_MAKE_REG|unix.LANDLOCK_ACCESS_FS_WRITE_FILE, "create a file"),
	rights("make folders (MAKE_DIR)", "fs", unix.LANDLOCK_ACCESS_FS_MAKE_DIR, "make a folder"),
	rights("make pipes (MAKE_FIFO)", "fs", unix.LANDLOCK_ACCESS_FS_MAKE_FIFO, "make a pipe"),
	rights("make sockets (MAKE_SOCK)", "fs", unix.LANDLOCK_ACCESS_FS_MAKE_SOCK, "make a socket file"),
	rights("make links (MAKE_SYM)", "fs", unix.LANDLOCK_ACCESS_FS_MAKE_SYM, "make a symbolic link"),
	rights("make devices (MAKE_CHAR)", "fs", unix.LANDLOCK_ACCESS_FS_MAKE_CHAR, "make a device in the workspace").and(capabilities).only("root"),
	rights("make devices (MAKE_BLOCK)", "fs", unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK, "make a block device in the workspace").and(capabilities).only("root"),
	rights("control devices (IOCTL_DEV)", "fs", unix.LANDLOCK_ACCESS_FS_IOCTL_DEV, "control a device in the workspace (ioctl)").only("root"),
	rights("remove files (REMOVE_FILE)", "fs", unix.LANDLOCK_ACCESS_FS_REMOVE_FILE, "remove a file"),
	rights("remove folders (REMOVE_DIR)", "fs", unix.LANDLOCK_ACCESS_FS_REMOVE_DIR, "remove a folder"),
	rights("connect (CONNECT_TCP)", "net", unix.LANDLOCK_ACCESS_NET_CONNECT_TCP, "connect to a port of the machine (TCP)").and(socketRule),
	rights("listen (BIND_TCP)", "net", unix.LANDLOCK_ACCESS_NET_BIND_TCP, "open a port of the machine (TCP)").and(socketRule),
	rights("signals (SCOPE_SIGNAL)", "scope", unix.LANDLOCK_SCOPE_SIGNAL, "signal a process", "signal by pidfd", "have the kernel signal a process (SIGIO)"),
	rights("abstract sockets (SCOPE_ABSTRACT_UNIX_SOCKET)", "scope", unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET, "connect to an abstract unix socket").and(socketRule),
	{name: "Landlock: the domain, for tracing", without: leave("kernel", "landlock"), opens: []string{"trace a process", "read memory (process_vm_readv)", "read the memory of a process"}, also: []job.Job{capabilities}},
	{
		name: "Landlock at full: abstract sockets", without: leave("full", fmt.Sprintf("scope:%d", unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET)),
		opens: []string{"connect to an abstract unix socket, with network"},
	},
	{
		name: "Landlock at full: signals", without: leave("full", fmt.Sprintf("scope:%d", unix.LANDLOCK_SCOPE_SIGNAL)), opens: []string{"signal a process"},
		also: []job.Job{{Drop: []string{"--unshare-pid"}}},
	},
}

// folderGuards are what the plan leaves out of what a command reads and writes.
var folderGuards = []guard{
	{name: "secrets of /etc", without: job.Job{Level: "kernel", Read: []string{"/etc"}}, opens: []string{"read secrets of the machine (/etc)"}},
	{name: "the home of the user", without: job.Job{Level: "kernel", Read: []string{"$HOME"}}, opens: []string{"read a private key", "read passwords", "read the token of Cargo"}},
	{name: "the folder of the harness", without: job.Job{Level: "kernel", Read: []string{"$DATA"}}, opens: []string{"read the ledger", "read the home of another run"}},
	{name: "caches are read-only", without: job.Job{Level: "kernel", Write: []string{"$HOME/go/pkg/mod", "$HOME/.npm"}}, opens: []string{"plant in the module cache of Go", "plant in the cache of npm"}},
	{name: "/proc is read-only", without: job.Job{Level: "kernel", Write: []string{"/proc"}}, opens: []string{"make a process the first that the kernel kills"}},
	{name: "/proc is read-only, for root", without: job.Job{Level: "kernel", Write: []string{"/proc"}}, opens: []string{"change a setting of the kernel (/proc/sys)"}, as: "root"},
	{name: "/sys is read-only, for root", without: job.Job{Level: "kernel", Write: []string{"/sys"}}, opens: []string{"change a setting of the kernel (/sys)", "make a control group"}, as: "root"},
	{name: "few devices, for root", without: job.Job{Level: "kernel", Device: []string{"/dev/kmsg"}}, opens: []string{"read the log of the kernel (/dev/kmsg)"}, as: "root", also: []job.Job{capabilities}},
	{name: "own memory files (/dev/shm)", without: job.Job{Level: "kernel", Read: []string{"/dev"}}, opens: []string{"read a file in /dev/shm"}},
	{name: "secrets of /etc at full", without: replaced("--ro-bind /etc /etc"), opens: []string{"read secrets of the machine (/etc)"}},
	{name: "the home of the user at full", without: replaced("--ro-bind $HOME $HOME"), opens: []string{"read a private key", "read passwords"}},
	{
		name: "the folder of the harness at full (--tmpfs)", without: replaced("", "--tmpfs $DATA"), opens: []string{"read the ledger", "read a key of the harness", "read the home of another run"},
		also: []job.Job{{WriteAbove: true}},
	},
	{name: "caches are copied on write at full", without: replaced("--bind $HOME/go/pkg/mod $HOME/go/pkg/mod"), opens: []string{"plant in the module cache of Go"}},
	{name: "own /tmp", without: replaced("--bind /tmp /tmp"), opens: []string{"read a file", "read through a symbolic link"}},
	{name: "own /dev", without: replaced("--dev-bind /dev /dev"), opens: []string{"read a file in /dev/shm"}},
	{name: "own /proc", without: replaced("--ro-bind /proc /proc"), opens: []string{"see the command line of a process"}},
	{name: "settings in /proc are read-only, for root", without: replaced("", "--ro-bind-try /proc/sys /proc/sys"), opens: []string{"change a setting of the kernel (/proc/sys)"}, as: "root"},
	{name: "caching in /proc is read-only, for root", without: replaced("", "--ro-bind-try /proc/mtrr /proc/mtrr"), opens: []string{"change the caching of memory (/proc/mtrr)"}, as: "root", also: []job.Job{allOfDrop}},
	{name: "/sys is read-only at full, for root", without: replaced("--bind /sys /sys"), opens: []string{"change a setting of the kernel (/sys)"}, as: "root"},
}

// replaced returns a job at full with other arguments of bubblewrap.
func replaced(insert string, drop ...string) job.Job {
	j := job.Job{Level: "full", Drop: drop}
	if insert != "" {
		j.Insert = []string{insert}
	}
	return j
}

// namespaceGuards are what bubblewrap does, and what the supervisor does before.
var namespaceGuards = []guard{
	{name: "--unshare-pid", without: replaced("", "--unshare-pid"), opens: []string{"see the command line of a process"}},
	{name: "--unshare-ipc", without: replaced("", "--unshare-ipc"), opens: []string{"attach System V memory"}},
	{name: "--unshare-net", without: replaced("", "--unshare-net"), opens: []string{"connect to a port of the machine (TCP)", "send to a port of the machine (UDP)"}},
	{name: "--cap-drop, for root", without: replaced("", "--cap-drop ALL"), opens: []string{"use rights of root"}, as: "root"},
	{name: "capabilities, for root", without: leave("kernel", "capabilities"), opens: []string{"use rights of root", "chroot"}, as: "root"},
	{name: "no_new_privs", without: leave("kernel", "no_new_privs"), opens: []string{"run a program with more rights (setuid)"}, as: "root", also: []job.Job{capabilities}},
	{name: "limits", without: leave("kernel", "limits"), opens: []string{"dump core", "write more than limits.file_bytes", "open more than limits.open_files"}},
	{name: "limits at full", without: leave("full", "limits"), opens: []string{"dump core", "write more than limits.file_bytes", "open more than limits.open_files"}},
	{
		name: "limits of all processes together", without: job.Job{Level: "kernel", Unbounded: true},
		opens: []string{"start more than limits.processes", "use more than limits.memory_bytes", "write more than limits.temporary_bytes"},
	},
	{name: "control group, for root", without: leave("kernel", "control group"), opens: []string{"start more than limits.processes before they are counted", "use more than limits.memory_bytes"}, as: "root", also: []job.Job{leave("", "measured bounds")}},
	{name: "control group at full, for root", without: leave("full", "control group"), opens: []string{"start more than limits.processes before they are counted", "use more than limits.memory_bytes"}, as: "root", also: []job.Job{leave("", "measured bounds")}},
	{name: "processes of a namespace of users", without: leave("full", "processes of a namespace"), opens: []string{"start more than limits.processes before they are counted"}, as: "user", also: []job.Job{leave("", "measured bounds")}},
	{name: "descriptors", without: leave("kernel", "descriptors"), opens: []string{"use a descriptor of the host"}},
	{name: "descriptors at full", without: leave("full", "descriptors"), opens: []string{"use a descriptor of the host"}},
	{name: "environment", without: job.Job{Level: "kernel", Inherit: true}, opens: []string{"learn variables of the host"}},
	{name: "environment at full", without: job.Job{Level: "full", Inherit: true}, opens: []string{"learn variables of the host"}},
}

// filtered are the system calls of the filter, by way. Those in rootOnly need rights of root.
var filtered = map[string]int{
	"io_uring": unix.SYS_IO_URING_SETUP, "io_uring_enter": unix.SYS_IO_URING_ENTER, "io_uring_register": unix.SYS_IO_URING_REGISTER, "bpf": unix.SYS_BPF,
	"keyctl": unix.SYS_KEYCTL, "add_key": unix.SYS_ADD_KEY, "request_key": unix.SYS_REQUEST_KEY, "perf_event_open": unix.SYS_PERF_EVENT_OPEN,
	"userfaultfd": unix.SYS_USERFAULTFD, "mount": unix.SYS_MOUNT, "umount2": unix.SYS_UMOUNT2, "fsopen": unix.SYS_FSOPEN, "fsconfig": unix.SYS_FSCONFIG,
	"fsmount": unix.SYS_FSMOUNT, "fspick": unix.SYS_FSPICK, "open_tree": unix.SYS_OPEN_TREE, "open_tree_attr": 467, "move_mount": unix.SYS_MOVE_MOUNT,
	"mount_setattr": unix.SYS_MOUNT_SETATTR, "pivot_root": unix.SYS_PIVOT_ROOT, "kexec_load": unix.SYS_KEXEC_LOAD, "init_module": unix.SYS_INIT_MODULE,
	"finit_module": unix.SYS_FINIT_MODULE, "delete_module": unix.SYS_DELETE_MODULE, "reboot": unix.SYS_REBOOT, "swapon": unix.SYS_SWAPON,
	"swapoff": unix.SYS_SWAPOFF, "acct": unix.SYS_ACCT, "quotactl": unix.SYS_QUOTACTL, "quotactl_fd": unix.SYS_QUOTACTL_FD,
	"settimeofday": unix.SYS_SETTIMEOFDAY, "clock_settime": unix.SYS_CLOCK_SETTIME, "sethostname": unix.SYS_SETHOSTNAME, "setdomainname": unix.SYS_SETDOMAINNAME,
	"read the log of the kernel (syslog)": unix.SYS_SYSLOG, "fanotify_init": unix.SYS_FANOTIFY_INIT, "open a file by its handle": unix.SYS_OPEN_BY_HANDLE_AT,
	"enter namespaces by pidfd (setns)": unix.SYS_SETNS, "new user namespace (unshare)": unix.SYS_UNSHARE, "new user namespace (clone)": unix.SYS_CLONE,
	"new user namespace (clone3)": unix.SYS_CLONE3, "type into a terminal (TIOCSTI)": unix.SYS_IOCTL, "command the console (TIOCLINUX)": unix.SYS_IOCTL,
	"any other family of sockets": unix.SYS_SOCKET, "the host of a virtual machine (AF_VSOCK)": unix.SYS_SOCKET, "connect to a unix socket": unix.SYS_SOCKET,
	"send to a unix socket from a socket pair": unix.SYS_SOCKETPAIR, "set the limits of a process (prlimit)": unix.SYS_PRLIMIT64,
}

// callGuards are the rules of the filter.
func callGuards() []guard {
	var all []guard
	for way, n := range filtered {
		g := guard{name: "filter: " + way, without: leave("kernel", number(n)), opens: []string{way}, as: "root", also: []job.Job{capabilities}}
		switch way {
		case "kexec_load", "init_module", "finit_module", "delete_module":
			g.absent = true
		case "mount", "move_mount", "pivot_root": // a domain that restricts files cannot mount
			g.also = append(g.also, leave("", "landlock", number(unix.SYS_UMOUNT2)))
		case "open a file by its handle", "enter namespaces by pidfd (setns)":
			g.also = append(g.also, leave("", "landlock"))
		}
		all = append(all, g)
	}
	for _, way := range []string{"io_uring", "keyctl", "new user namespace (unshare)", "new user namespace (clone)", "new user namespace (clone3)", "type into a terminal (TIOCSTI)"} {
		for _, level := range []string{"kernel", "full"} {
			all = append(all, guard{name: "filter at " + level + ", for a user: " + way, without: leave(level, number(filtered[way])), opens: []string{way}, as: "user"})
		}
	}
	all = append(all,
		guard{name: "filter: families of netlink", without: leave("kernel", "netlink"), opens: []string{"other parts of the kernel (netlink)"}},
		guard{name: "filter at full: families of sockets", without: leave("full", number(unix.SYS_SOCKET)), opens: []string{"the host of a virtual machine (AF_VSOCK)", "any other family of sockets"}},
		guard{name: "filter at full: families of netlink", without: leave("full", "netlink"), opens: []string{"other parts of the kernel (netlink)"}},
		guard{name: "filter at full: mounts, for root", without: leave("full", number(unix.SYS_UMOUNT2)), opens: []string{"umount2"}, as: "root", also: []job.Job{allOfDrop}},
		guard{name: "filter: descriptors of others", without: leave("kernel", number(unix.SYS_PIDFD_GETFD)), opens: []string{"take a descriptor (pidfd_getfd)"}, also: []job.Job{leave("", "landlock"), capabilities}},
		guard{name: "filter: comparing processes", without: leave("kernel", number(unix.SYS_KCMP)), opens: []string{"compare processes (kcmp)"}, also: []job.Job{leave("", "landlock"), capabilities}},
		old("filter below Landlock 3: truncate", number(unix.SYS_TRUNCATE), "truncate a file"),
		old("filter below Landlock 3: openat", number(unix.SYS_OPENAT), "truncate a readable file by opening it", "truncate a file by opening it for neither reading nor writing"),
	)
	all = append(all, setIDGuards()...)
	if runtime.GOARCH == "amd64" {
		all = append(all,
			guard{name: "filter: the 32-bit table", without: leave("kernel", "32-bit table"), opens: []string{"the 32-bit table (int 0x80)"}},
			guard{name: "filter: the x32 table", without: leave("kernel", "x32 table"), opens: []string{"the x32 table"}, absent: true},
		)
	}
	return all
}

// modes are the calls with a mode, by the name in their ways. Those that change one can mean a folder.
var (
	changesModes = map[string]int{"fchmod": unix.SYS_FCHMOD, "fchmodat": unix.SYS_FCHMODAT, "fchmodat of a descriptor by its path": unix.SYS_FCHMODAT, "fchmodat2": unix.SYS_FCHMODAT2}
	makesFiles   = map[string]int{"openat": unix.SYS_OPENAT, "openat, a file without a name": unix.SYS_OPENAT, "mknodat": unix.SYS_MKNODAT}
)

// setIDGuards are the rules against programs with the rights of their file, at each level.
func setIDGuards() []guard {
	changes, makes := maps.Clone(changesModes), maps.Clone(makesFiles)
	maps.Copy(changes, changesModesHere)
	maps.Copy(makes, makesFilesHere)
	var all []guard
	for _, level := range []string{"kernel", "full"} {
		add := func(rule, call string, who ...string) {
			g := guard{name: "filter at " + level + ": set-id by " + call + ": " + rule, without: leave(level, rule)}
			for _, who := range who {
				g.opens = append(g.opens, "make a program run for its "+who+" ("+call+")")
			}
			all = append(all, g)
		}
		for call, n := range changes {
			add(fmt.Sprintf("mode:%d", n), call, "user")
			add(fmt.Sprintf("group:%d", n), call, "group")
		}
		for call, n := range makes {
			add(fmt.Sprintf("mode:%d", n), call, "user", "group")
		}
		add(number(unix.SYS_OPENAT2), "openat2", "user", "group")
	}
	for _, call := range []string{"setxattr", "lsetxattr", "fsetxattr"} {
		opens := []string{"give a program capabilities (" + call + ")"}
		all = append(all, guard{name: "capabilities, for root: " + call, without: leave("kernel", "capabilities"), opens: opens, as: "root"},
			guard{name: "--cap-drop, for root: " + call, without: replaced("", "--cap-drop ALL"), opens: opens, as: "root"})
	}
	return all
}

// old returns a guard that is tried with Landlock 2.
func old(name, rule string, opens ...string) guard {
	g := guard{name: name, without: leave("kernel", rule), opens: opens}
	g.without.ABI = 2
	return g
}

// TestGuards leaves out each guard once: with it the ways are held, without it open. A guard
// of every user is tried as one of them, in turns.
func TestGuards(t *testing.T) {
	if testing.Short() {
		t.Skip("starts hundreds of commands")
	}
	checkGuards(t, func(n int, user string) bool { return usersHere()[n%len(usersHere())] == user })
}

// TestSystemGuards tries each guard as every user whom it concerns.
func TestSystemGuards(t *testing.T) {
	if testing.Short() {
		t.Skip("starts hundreds of commands")
	}
	checkGuards(t, func(int, string) bool { return true })
}

// checkGuards checks each guard as the user that it names. tries reports whether
// guard n, which names none, is tried as a user.
func checkGuards(t *testing.T, tries func(n int, user string) bool) {
	abi, full := levels(t)
	for name, why := range redundant {
		t.Logf("not tried alone: %s: %s", name, why)
	}
	all := append(append(append(landlockGuards[:len(landlockGuards):len(landlockGuards)], folderGuards...), namespaceGuards...), callGuards()...)
	var hosts sync.WaitGroup
	for _, user := range usersHere() {
		guards := make(chan guard, len(all))
		for n, g := range all {
			switch {
			case g.as != "" && g.as != user, g.as == "" && !tries(n, user):
			case g.without.Level == "full" && !full:
				t.Logf("not tried: %s: bubblewrap is not installed", g.name)
			default:
				guards <- g
			}
		}
		close(guards)
		for range hostsOfUser {
			h := startHost(t, user, "guards")
			hosts.Go(func() {
				for g := range guards {
					g.check(t, h, user, abi)
				}
			})
		}
	}
	hosts.Wait()
	if os.Geteuid() != 0 {
		t.Log("not tried: the guards that only root can try, because this test does not run as root")
	}
}

// check tries the ways with the guard and without it.
func (g guard) check(t *testing.T, h *host, user string, abi int) {
	with := job.Job{Level: g.without.Level, ABI: abi, Ways: g.opens}
	if g.without.ABI > 0 {
		with.ABI = g.without.ABI
	}
	for _, also := range g.also {
		with = edited(with, also)
	}
	held, err := h.do(with)
	if err != nil {
		t.Errorf("%s, as %s, with the guard: %v", g.name, user, err)
		return
	}
	open, err := h.do(edited(with, g.without))
	if err != nil {
		t.Errorf("%s, as %s, without the guard: %v", g.name, user, err)
		return
	}
	for _, way := range g.opens {
		before, after := held.Ways[way], open.Ways[way]
		switch {
		case before.NotTried != "":
			t.Logf("not tried: %s, as %s: %s: %s", g.name, user, way, before.NotTried)
		case before.Open:
			t.Errorf("%s, as %s: %s is open with the guard", g.name, user, way)
		case !after.Open && (!g.absent || after.Error == before.Error):
			t.Errorf("%s, as %s: nothing changes without the guard: %s is held (%s before, %s without it)", g.name, user, way, before.Error, after.Error)
		}
	}
}

// edited adds the edits of one job to another.
func edited(j, more job.Job) job.Job {
	j.LeaveOut = append(j.LeaveOut[:len(j.LeaveOut):len(j.LeaveOut)], more.LeaveOut...)
	j.Drop, j.Insert = append(j.Drop[:len(j.Drop):len(j.Drop)], more.Drop...), append(j.Insert[:len(j.Insert):len(j.Insert)], more.Insert...)
	j.Read, j.Write, j.Device = append(j.Read, more.Read...), append(j.Write, more.Write...), append(j.Device, more.Device...)
	j.Inherit, j.WriteAbove, j.Unbounded = j.Inherit || more.Inherit, j.WriteAbove || more.WriteAbove, j.Unbounded || more.Unbounded
	return j
}

// TestEveryArgumentOfBubblewrapIsAGuard: one that is added must be tried, or named as
// redundant.
func TestEveryArgumentOfBubblewrapIsAGuard(t *testing.T) {
	var known strings.Builder
	for _, g := range append(folderGuards[:len(folderGuards):len(folderGuards)], namespaceGuards...) {
		known.WriteString(g.name + " " + strings.Join(g.without.Drop, " ") + "\n")
	}
	for name := range redundant {
		known.WriteString(name + "\n")
	}
	for _, argument := range bubblewrapArguments(t) {
		if strings.HasPrefix(argument, "--unshare") || argument == "--new-session" || argument == "--cap-drop" {
			if !strings.Contains(known.String(), argument) {
				t.Errorf("%s is no guard of this test", argument)
			}
		}
	}
}
