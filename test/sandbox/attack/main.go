//go:build linux

// Attack tries ways out of a sandbox, from inside, each in a separate process:
//
//	attack try TARGET NAME...   prints a line of JSON a way
//	attack one TARGET NAME      tries one, and prints its error
//	attack victim FOLDER        waits in that folder, as a process of the user
//	attack use THING            uses as many descriptors, or instances and watches of inotify, as it gets
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/harnessmesh/harnessmesh/test/sandbox/wayout"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "attack:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("expected a verb: try, one or victim")
	}
	switch args[0] {
	case "try":
		for _, name := range args[2:] {
			start := time.Now()
			result := map[string]string{"name": name, "error": apart(args[1], name), "took": time.Since(start).String()}
			if err := json.NewEncoder(os.Stdout).Encode(result); err != nil {
				return err
			}
		}
		return nil
	case "one":
		return one(args[1], args[2])
	case "victim":
		return block(args[1])
	case "blocked":
		return victim(args[1])
	case "fork": // a child of a leader of a session, which ends: an orphan
		return exec.Command("/proc/self/exe", "linger", args[1]).Start()
	case "linger":
		time.Sleep(time.Minute)
		return nil
	case "use":
		return use(args[1])
	default: // "nothing"
		return nil
	}
}

// users is how many processes use something up.
const users = 30

// use takes as much of something as it gets, and keeps it.
func use(thing string) error {
	if thing == "descriptors" || thing == "inotify" {
		for range users {
			if err := exec.Command("/proc/self/exe", "use", "one "+thing).Start(); err != nil {
				return err
			}
		}
		time.Sleep(time.Minute)
		return nil
	}
	for n := 0; ; n++ {
		var fd int
		var err error
		if thing == "one inotify" {
			if fd, err = unix.InotifyInit1(0); err == nil {
				folder := fmt.Sprintf("watched-%d-%d", os.Getpid(), n)
				_ = os.Mkdir(folder, 0o755)
				_, _ = unix.InotifyAddWatch(fd, folder, unix.IN_ALL_EVENTS)
			}
		} else {
			fd, err = unix.Open("/dev/null", unix.O_RDONLY, 0)
		}
		if err != nil || fd < 0 {
			time.Sleep(time.Minute)
			return nil
		}
	}
}

// limit bounds a try.
const limit = 10 * time.Second

// apart tries a way in a separate process and returns its error, empty if it is open.
func apart(target, name string) string {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, "/proc/self/exe", "one", target, name)
	var out, errors bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errors
	if err := cmd.Run(); err != nil {
		return fmt.Sprintf("the process failed: %v %.200s", err, errors.String())
	}
	return out.String()
}

// one tries a way in this process.
func one(target, name string) error {
	text, err := os.ReadFile(target)
	if err != nil {
		return err
	}
	var t wayout.Target
	if err := json.Unmarshal(text, &t); err != nil {
		return err
	}
	signal.Ignore(syscall.SIGXFSZ, syscall.SIGSYS)
	for _, w := range wayout.All() {
		if w.Name != name {
			continue
		}
		if err := w.Try(t.For(w)); err != nil {
			fmt.Print(wayout.Errno(err))
		}
		return nil
	}
	return fmt.Errorf("unknown way %q", name)
}

// block starts the victim with its signals for input blocked, so that they stay pending.
func block(folder string) error {
	runtime.LockOSThread()
	set := unix.Sigset_t{}
	set.Val[0] = 1 << (unix.SIGIO - 1)
	if err := unix.PthreadSigmask(unix.SIG_BLOCK, &set, nil); err != nil {
		return err
	}
	return unix.Exec("/proc/self/exe", []string{"attack", "blocked", folder}, os.Environ())
}

// victim waits for the end of its host in a folder, with an open file as descriptor 3.
func victim(folder string) error {
	if err := os.Chdir(folder); err != nil {
		return err
	}
	fd, err := unix.Open("secret", unix.O_RDONLY, 0)
	if err != nil {
		return err
	}
	if fd != 3 {
		if err := unix.Dup3(fd, 3, 0); err != nil {
			return err
		}
	}
	fmt.Println("ready")
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}
