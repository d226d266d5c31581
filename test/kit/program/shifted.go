package program

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// ShiftedNATS builds a NATS server whose wall clock can be changed: it is ahead by the seconds that the file clock in the folder
// of its configuration has. Its monotonic clock is that of the machine, as after a change by ntpd or a person.
func ShiftedNATS() (string, error) {
	root, err := moduleRoot()
	if err != nil {
		return "", err
	}
	goroot, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return "", err
	}
	std := filepath.Join(strings.TrimSpace(string(goroot)), "src", "time")
	source, err := os.ReadFile(filepath.Join(std, "time.go"))
	if err != nil {
		return "", err
	}
	const reading = "sec, nsec, mono := runtimeNow()\n"
	patched := strings.Replace(string(source), reading, reading+"\tsec += shift()\n", 1)
	if patched == string(source) {
		return "", errors.New("time.Now of this Go does not read the clock as expected: change the patch of ShiftedNATS")
	}
	dir, unlock, err := lockedFolder(root, "nats-server-shifted-sources")
	if err != nil {
		return "", err
	}
	defer unlock()
	dir = filepath.Join(dir, "shifted")
	overlay := map[string]map[string]string{"Replace": {}}
	files := map[string]string{"time.go": patched, "shift.go": shift}
	for name := range files {
		overlay["Replace"][filepath.Join(std, name)] = filepath.Join(dir, name)
	}
	described, err := json.Marshal(overlay)
	if err != nil {
		return "", err
	}
	files["overlay.json"] = string(described)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			return "", fmt.Errorf("overlay of the clock: %w", err)
		}
	}
	return Build("nats-server-shifted", natsPackage, "-overlay", filepath.Join(dir, "overlay.json"))
}

// shift is a file of package time, which imports little. Timers of the runtime call Now where nothing may wait, so that a goroutine
// reads the file.
const shift = `package time

import "sync/atomic"

var shifted atomic.Int64

func shift() int64 { return shifted.Load() }

func init() {
	line := shiftRead("/proc/self/cmdline")
	path, begin := "", 0
	for i := range line {
		if line[i] == 0 {
			if arg := line[begin:i]; len(arg) > 9 && arg[len(arg)-9:] == "nats.conf" {
				path = arg[:len(arg)-9] + "clock"
			}
			begin = i + 1
		}
	}
	go func() {
		for ; ; Sleep(10 * Millisecond) {
			seconds := int64(0)
			for _, digit := range []byte(shiftRead(path)) {
				if digit >= '0' && digit <= '9' {
					seconds = 10*seconds + int64(digit-'0')
				}
			}
			shifted.Store(seconds)
		}
	}()
}

func shiftRead(path string) string {
	fd, err := open(path)
	if err != nil {
		return ""
	}
	defer closefd(fd)
	var text [4096]byte
	n, _ := read(fd, text[:])
	return string(text[:max(n, 0)])
}
`
