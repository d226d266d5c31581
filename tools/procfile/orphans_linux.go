package main

import (
	"bytes"
	"os"
	"strconv"
	"syscall"
)

// prSetChildSubreaper is PR_SET_CHILD_SUBREAPER, see prctl(2).
const prSetChildSubreaper = 36

// adoptOrphans makes this process the parent of what its processes leave behind,
// whatever group or session it has gone to.
func adoptOrphans() error {
	if _, _, errno := syscall.RawSyscall6(syscall.SYS_PRCTL, prSetChildSubreaper, 1, 0, 0, 0, 0); errno != 0 {
		return os.NewSyscallError("prctl", errno)
	}
	return nil
}

// attributes of a process: a group of its own, and its death with the thread
// that started it.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// children are the processes whose parent this one is.
func children() []int {
	self := []byte(strconv.Itoa(os.Getpid()))
	dir, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var pids []int
	for _, d := range dir {
		pid, err := strconv.Atoi(d.Name())
		if err != nil {
			continue
		}
		stat, err := os.ReadFile("/proc/" + d.Name() + "/stat")
		if err != nil {
			continue // it has ended
		}
		// pid (name) state ppid: a name may hold anything, brackets too.
		fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
		if len(fields) > 1 && bytes.Equal(fields[1], self) {
			pids = append(pids, pid)
		}
	}
	return pids
}
