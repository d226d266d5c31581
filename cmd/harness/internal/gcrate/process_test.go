package gcrate

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"runtime/debug"
	"strings"
	"testing"
)

// TestMain prints the settings of this process instead of running tests if PRINT_LIMITS is set.
func TestMain(m *testing.M) {
	if os.Getenv("PRINT_LIMITS") != "" {
		fmt.Println(debug.SetGCPercent(1), debug.SetMemoryLimit(-1))
		return
	}
	os.Exit(m.Run())
}

// TestProcess compares the settings of processes with the environment and the container.
func TestProcess(t *testing.T) {
	memory := int64(math.MaxInt64)
	if limit, ok := containerLimit(os.DirFS("/")); ok {
		memory = goLimit(limit)
	}
	for env, want := range map[string]string{
		"":                            fmt.Sprint(percent, memory),
		"GOGC=50":                     fmt.Sprint(50, memory),
		"GOMEMLIMIT=100MiB":           fmt.Sprint(percent, 100<<20),
		"GOMEMLIMIT=off":              fmt.Sprint(percent, int64(math.MaxInt64)),
		"GOGC=50 GOMEMLIMIT=12345678": fmt.Sprint(50, 12345678),
	} {
		c := exec.Command(os.Args[0])
		c.Env = append([]string{"PRINT_LIMITS=1"}, strings.Fields(env)...)
		out, err := c.Output()
		if got := strings.TrimSpace(string(out)); err != nil || got != want {
			t.Errorf("%q: percent and limit are %s, want %s (%v)", env, got, want, err)
		}
	}
}
