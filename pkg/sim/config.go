package sim

import "time"

// Config says what a simulation is like. The zero Config has one server, no
// faults and seed 0.
type Config struct {
	// Seed decides everything that is left open: which of the pending
	// interactions is next, what becomes of it, and what the clients and the model
	// do. The same seed gives the same schedule.
	Seed uint64
	// Replicated is a bus of three servers: a read may be answered by a replica
	// that is behind, and an append is proposed first and lands later.
	Replicated bool
	// Rates of the faults. The zero Rates are none.
	Rates Rates
	// Executors that have a durable consumer. Default: none but those of the
	// resting places and timers, which always exist.
	Executors []string
	// Takeover is how long a worker may be dead before another has its step.
	// Default runlog.DefaultTakeover.
	Takeover time.Duration
	// Steps bounds the interactions for which faults go on. Default 1,500.
	Steps int
	// Healing bounds the simulated time in which everything has to come to rest
	// once the faults are over. Default 2 h.
	Healing time.Duration
	// Check holds invariants of one's own beside those of the kit.
	Check []Invariant
}

// Rates says how often things go wrong: in 10,000 interactions of the kind that
// is named.
type Rates struct {
	// CrashBefore and CrashAfter kill the process that has the interaction, before
	// it takes place or after. Stop ends the process in an orderly way.
	CrashBefore, CrashAfter, Stop int
	// LostAnswer lets a write take place without an answer, LostWrite neither,
	// Undecided leaves one in flight, to land later or never.
	LostAnswer, LostWrite, Undecided int
	// Unanswered is a read without an answer. Stale is one that a replica answers
	// that is behind, on a replicated bus.
	Unanswered, Stale int
	// LostDelivery never arrives and comes again after AckWait, Duplicate is given
	// to another worker too. LostAck is an acknowledgement, a Nak or a sign of life
	// that never arrives.
	LostDelivery, Duplicate, LostAck int
	// LostFeed and DoubledFeed are records of the feed. LostPoke and LostDelta are
	// pokes and pieces of the model's text.
	LostFeed, DoubledFeed, LostPoke, LostDelta int
	// Cut takes a process off the bus for a while, and ServerRestart has the
	// server forget how often it has delivered what; both in 10,000 interactions
	// of any kind.
	Cut, ServerRestart int
	// TimePasses lets time pass although something is pending, so that what is
	// pending is slow.
	TimePasses int
	// HostLost is how often a tool host that dies loses its ledger, and CallLost
	// how often a request to it, or its answer, is lost.
	HostLost, CallLost int
	// ModelFails, ModelSlow and ModelHangs are calls of the model.
	ModelFails, ModelSlow, ModelHangs int
}

// Crashes are processes that die and come back, and nothing else.
func Crashes() Rates {
	return Rates{CrashBefore: 60, CrashAfter: 80, Stop: 20, TimePasses: 200, ModelSlow: 1500, ModelFails: 500}
}

// Lag is a bus whose replicas are behind and whose appends are slow.
func Lag() Rates {
	return Rates{Stale: 4000, TimePasses: 300, LostFeed: 1000, ModelSlow: 800, Duplicate: 300}
}

// Hangs is a model that often never answers, and workers that lose their steps
// meanwhile.
func Hangs() Rates {
	return Rates{
		CrashBefore: 60, CrashAfter: 120, Duplicate: 1500, LostDelivery: 200, Cut: 60, ServerRestart: 20, TimePasses: 200,
		ModelHangs: 3000, ModelSlow: 2000,
	}
}

// Everything is all faults at once, each moderately often.
func Everything() Rates {
	return Rates{
		CrashBefore: 25, CrashAfter: 40, Stop: 10,
		LostAnswer: 150, LostWrite: 150, Undecided: 200, Unanswered: 150, Stale: 2000,
		LostDelivery: 150, Duplicate: 300, LostAck: 400,
		LostFeed: 1500, DoubledFeed: 500, LostPoke: 3000, LostDelta: 1000,
		Cut: 15, ServerRestart: 8, TimePasses: 300,
		HostLost: 3000, CallLost: 300,
		ModelFails: 1200, ModelSlow: 1500, ModelHangs: 500,
	}
}

func (c Config) withDefaults() Config {
	if c.Steps == 0 {
		c.Steps = 1500
	}
	if c.Healing == 0 {
		c.Healing = 2 * time.Hour
	}
	return c
}
