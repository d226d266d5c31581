//go:build linux && guards

package supervisor

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// LeaveOutVariable names the guards to leave out, separated by commas: a step by its name,
// a system call as call:NUMBER, the mode of one as mode:NUMBER and group:NUMBER, rights of Landlock as fs:BITS, net:BITS or scope:BITS.
const LeaveOutVariable = "HARNESS_GUARDS_LEFT_OUT"

func leftOut(match func(guard string) bool) bool {
	for guard := range strings.SplitSeq(os.Getenv(LeaveOutVariable), ",") {
		if match(guard) {
			return true
		}
	}
	return false
}

func without(step string) bool { return leftOut(func(guard string) bool { return guard == step }) }

// withoutCall reports whether the rule for a system call is left out.
func withoutCall(number uint32) bool { return without(fmt.Sprintf("call:%d", number)) }

// withoutMode reports whether the rule for the mode of a system call is left out, withoutGroup
// whether that for set-group-ID.
func withoutMode(number uint32) bool  { return without(fmt.Sprintf("mode:%d", number)) }
func withoutGroup(number uint32) bool { return without(fmt.Sprintf("group:%d", number)) }

// remaining returns the rights of a kind that are not left out.
func remaining(kind string, rights uint64) uint64 {
	leftOut(func(guard string) bool {
		if bits, ok := strings.CutPrefix(guard, kind+":"); ok {
			n, err := strconv.ParseUint(bits, 10, 64)
			if err != nil {
				panic(err)
			}
			rights &^= n
		}
		return false
	})
	return rights
}
