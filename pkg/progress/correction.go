package progress

import (
	"fmt"
	"strings"
)

// CorrectionText returns the text for the model about a loop, for the n-th correction
// from 1: what repeats, that repeating it changes nothing, and to try something else. It
// gets firmer with n, and has at most 1 KiB.
func CorrectionText(l *Loop, n uint32) string {
	if !l.Strict {
		return fmt.Sprintf("%s Not all results were the same, so this may be right, for instance when you wait for something. "+
			"If you do not, stop and take another way: other arguments, another tool, or work with what you have.", what(l))
	}
	text := what(l) + " The same again will give the same again. "
	switch {
	case l.Last:
		return text + "This is the last warning: the run ends if your next response repeats it. Do not call " + tools(l) +
			" with these arguments. Make a different call, or call work_complete and say what is done and what stands in the way."
	case n <= 1:
		return text + "Take another way: use what the results already told you, change the arguments, or use another tool."
	}
	return text + "You were told before and it goes on. Do not make these calls again. First say in a sentence why they do not get you " +
		"further, then do something different: look somewhere else, break the problem down, or finish with what you have."
}

// what describes what repeats.
func what(l *Loop) string {
	results := "with the same arguments and the same results"
	if !l.Strict {
		results = "with the same arguments"
	}
	if l.Length == 1 {
		return fmt.Sprintf("You have called %s %d times in a row %s.", tools(l), l.Repeats, results)
	}
	return fmt.Sprintf("You repeat a cycle of %d calls: %s. You have gone through it %d times in a row %s.", l.Length, tools(l), l.Repeats, results)
}

func tools(l *Loop) string { return strings.Join(l.Tools, ", ") }
