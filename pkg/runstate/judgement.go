package runstate

import (
	"strconv"
	"strings"

	"github.com/harnessmesh/harnessmesh/pkg/agent/mode"
	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/event"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/progress"
)

// KindReview is what a call waits for that a hook wants somebody to look at, and
// why a run rests that a hook has paused.
const KindReview = "review"

// ContractQuestion stands for the tool in a pending call that puts a question of the
// contract to the user; no tool has the name.
const ContractQuestion = "contract_question"

const contractPrefix = "contract:"

// ContractCall is the id of the pending call of a question that is put by the decision
// over the step of a version: each asking has its own, as each has its own answer.
// ReservedCall keeps calls of a model from having it.
func ContractCall(questionID string, version uint64) string {
	return contractPrefix + questionID + ":" + strconv.FormatUint(version, 10)
}

// ReservedCall says whether an id is one that only the harness gives.
func ReservedCall(id string) bool { return strings.HasPrefix(id, contractPrefix) }

// QuestionOf is the question of the contract that a pending call puts; ok is false
// for every other call.
func QuestionOf(c *harnessv1.PendingCall) (questionID string, ok bool) {
	if c.GetTool() != ContractQuestion || c.GetOrigin() != harnessv1.ToolOrigin_TOOL_ORIGIN_HARNESS || len(c.GetCallId()) <= len(contractPrefix) {
		return "", false
	}
	id, _, _ := strings.Cut(c.GetCallId()[len(contractPrefix):], ":")
	return id, true
}

// Guided is event.GuidanceInjected.
func Guided(kind, rule, text string) *harnessv1.Event {
	return event.GuidanceInjected(kind, rule, text)
}

// NoteHook is RecordWants for reasons. It changes s.
func NoteHook(s *harnessv1.Snapshot, skip, pause, replan string) {
	RecordWants(s, &harnessv1.HookState{SkipNext: skip, Pause: pause, Replan: replan})
}

// RecordWants records what hooks want of the rest of the loop: a turn that is
// skipped, a review, another plan. Later reasons replace earlier ones; unset ones
// change nothing. It changes s.
func RecordWants(s *harnessv1.Snapshot, wants *harnessv1.HookState) {
	if wants.GetSkipNext() == "" && wants.GetPause() == "" && wants.GetReplan() == "" {
		return
	}
	if s.Hooks == nil {
		s.Hooks = &harnessv1.HookState{}
	}
	set := func(field *string, reason string) {
		if reason != "" {
			*field = content.Cut(reason, content.MaxPreview)
		}
	}
	set(&s.Hooks.SkipNext, wants.GetSkipNext())
	set(&s.Hooks.Pause, wants.GetPause())
	set(&s.Hooks.Replan, wants.GetReplan())
}

// HookPayload adds to a payload what every subscriber is given. It changes payload.
func HookPayload(s *harnessv1.Snapshot, payload map[string]any) map[string]any {
	if payload == nil {
		payload = map[string]any{}
	}
	payload["turn_count"] = int64(s.GetTurnCount())
	payload["max_turns"] = int64(s.GetMaxTurns())
	payload["mode"] = ModeOf(s)
	return payload
}

// ModeOf is the mode of work of s.
func ModeOf(s *harnessv1.Snapshot) string {
	if s.GetMode() == "" {
		return mode.Execute
	}
	return s.GetMode()
}

// CountUsage counts a call of a tool, under other when it is not offered. It
// changes s.
func CountUsage(s *harnessv1.Snapshot, name string, offered bool) {
	if !offered {
		name = "other"
	}
	for _, u := range s.GetToolUsage() {
		if u.GetTool() == name {
			u.Calls++
			return
		}
	}
	if len(s.GetToolUsage()) >= maxToolUsage-1 && name != "other" {
		CountUsage(s, "other", true)
		return
	}
	s.ToolUsage = append(s.ToolUsage, &harnessv1.ToolUsage{Tool: name, Calls: 1})
}

// maxToolUsage bounds the tools that are counted by name.
const maxToolUsage = 128

// ActivityOf is the activity of s, which it makes when there is none.
func ActivityOf(s *harnessv1.Snapshot) *harnessv1.Activity {
	if s.Activity == nil {
		s.Activity = &harnessv1.Activity{}
	}
	return s.Activity
}

// mark begins what the harness tells the model in the user's place.
const mark = "[harness] "

// Marked is a text as the harness says it in the user's place.
func Marked(text string) string { return mark + text }

// Guidance is a message in which the harness tells the model something in the
// user's place, marked as such.
func Guidance(text string) *harnessv1.Message {
	return &harnessv1.Message{
		Role: harnessv1.Role_ROLE_USER, Kind: harnessv1.MessageKind_MESSAGE_KIND_GUIDANCE, Content: content.Inline(mark + text),
	}
}

// NoteOutcome notes a result for the detection of loops and stalls, as far as they are
// switched on. fresh says that it came about for the first time in the segment. It
// changes s.
func NoteOutcome(s *harnessv1.Snapshot, tool string, strict, loose uint64, fresh bool) {
	if s.GetConfig().GetDoomLoop().GetEnabled() {
		if s.DoomLoop == nil {
			s.DoomLoop = &harnessv1.DoomLoop{}
		}
		progress.RecordCall(s.DoomLoop, tool, strict, loose)
	}
	if fresh && s.GetConfig().GetStall().GetEnabled() {
		if s.ProgressTracker == nil {
			s.ProgressTracker = &harnessv1.ProgressTracker{}
		}
		s.ProgressTracker.DistinctOutcomes++
	}
}

// CountActivity notes a call that runs, by the annotations of its tool. It changes s.
func CountActivity(s *harnessv1.Snapshot, call interface {
	GetReads() bool
	GetWrites() bool
	GetExplores() bool
}) {
	if !call.GetReads() && !call.GetWrites() && !call.GetExplores() {
		return
	}
	a := ActivityOf(s)
	if call.GetReads() {
		a.Reads++
	}
	if call.GetWrites() {
		a.Writes++
	}
	if call.GetExplores() {
		a.Explores++
	}
}
