package runstate

import (
	"cmp"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/harnessmesh/harnessmesh/pkg/agent/mode"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// Defaults of LoopConfig.
const (
	defaultMaxTurns       = 50
	DefaultMaxToolCalls   = 300
	defaultRuns           = 64
	defaultWindow         = 128_000
	defaultMaxNudges      = 2
	defaultMaxRetries     = 3
	defaultSoft           = 0.80
	defaultBlocking       = 0.95
	defaultSafetyBuffer   = 500
	defaultTarget         = 0.50
	defaultRecent         = 12
	defaultRecentShare    = 0.30
	defaultReserve        = 2_000
	defaultClear          = 100
	defaultExternalize    = 1_000
	defaultSummaryWait    = 120 * time.Second
	defaultQualityTimeout = 20 * time.Second
	defaultTries          = 5
	defaultBackoffInitial = 500 * time.Millisecond
	defaultBackoffMax     = 30 * time.Second
	defaultOutageRetry    = 60 * time.Second
	defaultToolTimeout    = 120 * time.Second
	defaultShownTokens    = 10_000
	defaultAnswerTimeout  = 7 * 24 * time.Hour
)

// Idle timeouts of models: the default, and that of a model that reasons.
const (
	DefaultIdleTimeout   = 120 * time.Second
	ReasoningIdleTimeout = 300 * time.Second
)

// Resolve returns c with every unset field at its default. window is that of the
// model in tokens, 0 if it is not known.
func Resolve(c *harnessv1.LoopConfig, window uint32) *harnessv1.LoopConfig {
	r := &harnessv1.LoopConfig{}
	if c != nil {
		r = proto.CloneOf(c)
	}
	if window == 0 {
		window = defaultWindow
	}
	if r.Stop == nil {
		r.Stop = &harnessv1.StopConfig{}
	}
	unset(&r.Stop.MaxTurns, defaultMaxTurns)
	unset(&r.Stop.RequireWorkComplete, true)
	unset(&r.Stop.WorkCompleteMaxRetries, defaultMaxRetries)
	unset(&r.Stop.OutputMaxRetries, defaultMaxRetries)
	if r.Stop.Policy == harnessv1.StopPolicy_STOP_POLICY_UNSPECIFIED {
		r.Stop.Policy = harnessv1.StopPolicy_STOP_POLICY_INTERACTIVE
	}
	if r.Continuation == nil {
		r.Continuation = &harnessv1.ContinuationConfig{}
	}
	unset(&r.Continuation.Enabled, true)
	unset(&r.Continuation.MaxPrompts, defaultMaxNudges)
	resolveContext(r, window)
	if r.Model == nil {
		r.Model = &harnessv1.ModelConfig{}
	}
	unset(&r.Model.MaxTries, defaultTries)
	unset(&r.Model.Streaming, true)
	unsetDuration(&r.Model.BackoffInitial, defaultBackoffInitial)
	unsetDuration(&r.Model.BackoffMax, defaultBackoffMax)
	unsetDuration(&r.Model.IdleTimeout, DefaultIdleTimeout)
	unsetDuration(&r.Model.OutageRetry, defaultOutageRetry)
	if r.Tools == nil {
		r.Tools = &harnessv1.ToolConfig{}
	}
	unsetDuration(&r.Tools.Timeout, defaultToolTimeout)
	unsetDuration(&r.Tools.ApprovalTimeout, defaultAnswerTimeout)
	unsetDuration(&r.Tools.AnswerTimeout, defaultAnswerTimeout)
	unset(&r.Tools.ShownTokens, defaultShownTokens)
	unset(&r.Tools.Yolo, false)
	unset(&r.Tools.Wait, true)
	if r.Budgets == nil {
		r.Budgets = &harnessv1.Budgets{}
	}
	unset(&r.Budgets.ToolCalls, DefaultMaxToolCalls)
	unset(&r.Budgets.AllowUnpriced, false)
	unset(&r.Budgets.Runs, defaultRuns)
	resolveSupervision(r)
	resolveQuality(r)
	return r
}

// Overlay returns c with the settings of under where c leaves them unset. Lists are joined. It
// changes neither.
func Overlay(c, under *harnessv1.LoopConfig) *harnessv1.LoopConfig {
	if under == nil {
		return c
	}
	both := proto.CloneOf(under)
	proto.Merge(both, c)
	return both
}

// shownShare is the part of the window that one result may fill at most: an eighth.
const shownShare = 8

// ShownTokens returns the number of tokens that the model is shown of a result, or of a
// long string in arguments.
func ShownTokens(c *harnessv1.LoopConfig) uint32 {
	most := c.GetContext().GetMaxInputTokens() / shownShare
	if shown := c.GetTools().GetShownTokens(); most == 0 || shown < most {
		return shown
	}
	return most
}

// resolveContext sets the defaults of the window and of its compaction.
func resolveContext(r *harnessv1.LoopConfig, window uint32) {
	if r.Context == nil {
		r.Context = &harnessv1.ContextConfig{}
	}
	c := r.Context
	unset(&c.MaxInputTokens, window)
	unset(&c.SoftThreshold, defaultSoft)
	unset(&c.BlockingThreshold, defaultBlocking)
	unset(&c.SafetyBuffer, defaultSafetyBuffer)
	unset(&c.Target, defaultTarget)
	unset(&c.RecentMessages, defaultRecent)
	unset(&c.RecentShare, defaultRecentShare)
	unset(&c.RehydrationReserve, defaultReserve)
	unset(&c.Compaction, true)
	unset(&c.ClearTokens, defaultClear)
	unset(&c.ExternalizeTokens, defaultExternalize)
	unsetDuration(&c.SummaryWait, defaultSummaryWait)
}

// resolveQuality sets the defaults of judging work. A run whose work is not judged has none.
func resolveQuality(r *harnessv1.LoopConfig) {
	if r.Quality == nil {
		return
	}
	unset(&r.Quality.Enabled, false)
	unset(&r.Quality.Iterations, 1)
	unset(&r.Quality.RetryOnFallback, false)
	unsetDuration(&r.Quality.Timeout, defaultQualityTimeout)
}

// resolveSupervision sets the defaults of what supervises and guides the agent.
func resolveSupervision(r *harnessv1.LoopConfig) {
	if r.Stall == nil {
		r.Stall = &harnessv1.StallConfig{}
	}
	unset(&r.Stall.Enabled, true)
	unset(&r.Stall.Threshold, defaultStall)
	if r.DoomLoop == nil {
		r.DoomLoop = &harnessv1.DoomLoopConfig{}
	}
	unset(&r.DoomLoop.Enabled, true)
	unset(&r.DoomLoop.MaxCorrections, defaultCorrections)
	if r.WorkItems == nil {
		r.WorkItems = &harnessv1.WorkItemConfig{}
	}
	unset(&r.WorkItems.Enabled, false)
	if r.Guidance == nil {
		r.Guidance = &harnessv1.GuidanceConfig{}
	}
	unset(&r.Guidance.Enabled, true)
	unset(&r.Guidance.Jit, true)
	if r.Prompt == nil {
		r.Prompt = &harnessv1.PromptConfig{}
	}
	for _, part := range []**bool{
		&r.Prompt.Environment, &r.Prompt.InstructionFiles, &r.Prompt.Modes, &r.Prompt.Tools, &r.Prompt.Completion, &r.Prompt.Style, &r.Prompt.HarnessMessages,
	} {
		unset(part, true)
	}
	if r.Hooks == nil {
		r.Hooks = &harnessv1.HookConfig{}
	}
	unset(&r.Hooks.Enabled, true)
	unsetDuration(&r.Hooks.Timeout, DefaultHookTimeout)
	if r.Contract == nil {
		r.Contract = &harnessv1.ContractConfig{}
	}
	unset(&r.Contract.Enabled, true)
}

// Defaults of resolveSupervision.
const (
	DefaultHookTimeout = 5 * time.Second
	defaultStall       = 3
	defaultCorrections = 3
)

// FillDefaults completes a snapshot that does not come from a log, such as one in a
// request to a service: each setting that is not set gets its default, whatever else is
// set, and an unset phase becomes phase. It changes s.
func FillDefaults(s *harnessv1.Snapshot, phase harnessv1.Phase) {
	s.Config = Resolve(s.GetConfig(), 0)
	if s.GetMaxTurns() == 0 {
		s.MaxTurns = s.GetConfig().GetStop().GetMaxTurns()
	}
	if s.GetPhase() == harnessv1.Phase_PHASE_UNSPECIFIED {
		s.Phase = phase
	}
}

func unset[T any](field **T, value T) {
	if *field == nil {
		*field = &value
	}
}

func unsetDuration(field **durationpb.Duration, value time.Duration) {
	if *field == nil {
		*field = durationpb.New(value)
	}
}

// InMode returns a copy of s in another mode of work.
func InMode(s *harnessv1.Snapshot, mode string) *harnessv1.Snapshot {
	s = Clone(s)
	s.Mode = mode
	return s
}

// DisableHooks has a run call no hooks. It changes s.
func DisableHooks(s *harnessv1.Snapshot) {
	if s.GetConfig().GetHooks().GetEnabled() {
		s.Config.Hooks.Enabled = proto.Bool(false)
	}
}

// Mode returns the mode of work, mode.Execute by default.
func Mode(s DefinitionFields) string {
	if s.GetParent().GetPlans() {
		return mode.Plan
	}
	return cmp.Or(s.GetMode(), mode.Execute)
}
