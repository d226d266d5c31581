//go:build linux

package wayout

import "golang.org/x/sys/unix"

// getpid32 calls getpid by the 32-bit table.
func getpid32() int32

// compat makes a system call of the 32-bit table.
func compat() error {
	if pid := getpid32(); pid < 0 {
		return unix.Errno(-pid)
	}
	return nil
}

// callsHere are ways that only this architecture has.
var callsHere = []Way{
	call("use ports of devices (iopl)", unix.SYS_IOPL, 0),
	call("use ports of devices (ioperm)", unix.SYS_IOPERM, 0, 1, 0),
	call("modify_ldt", unix.SYS_MODIFY_LDT, 99, 0, 0),
	{Name: "truncate a file by opening it (open)", Try: func(t *Target) error {
		path, err := unix.BytePtrFromString(t.file())
		if err != nil {
			return err
		}
		return reachesProcess(unix.SYS_OPEN, address(path), unix.O_ACCMODE|unix.O_TRUNC, 0)
	}, Seen: changed},
	call("kexec_file_load", unix.SYS_KEXEC_FILE_LOAD, none, none, 0, 0, 0),
	{Name: "the 32-bit table (int 0x80)", Try: func(*Target) error { return compat() }},
	call("the x32 table", 0x4000_0000|unix.SYS_GETPID),
}

// bitsHere returns the ways of bits that only this architecture has.
func bitsHere(who string, bit uint32) []Way {
	mode := uintptr(0o755 | bit)
	return []Way{
		modeOf("chmod", who, bit, onFile(func(_ int, path string) error {
			return withPath(path, func(p uintptr) error { return reachesProcess(unix.SYS_CHMOD, p, mode) })
		})),
		modeOf("creat", who, bit, func(path string) error {
			return withPath(path, func(p uintptr) error { return reachesProcess(unix.SYS_CREAT, p, mode) })
		}),
		modeOf("open", who, bit, func(path string) error {
			return withPath(path, func(p uintptr) error { return reachesProcess(unix.SYS_OPEN, p, unix.O_CREAT|unix.O_WRONLY, mode) })
		}),
		modeOf("mknod", who, bit, func(path string) error {
			return withPath(path, func(p uintptr) error { return reachesProcess(unix.SYS_MKNOD, p, unix.S_IFREG|mode, 0) })
		}),
	}
}
