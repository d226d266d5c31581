package sim

import "time"

// Config configures a simulation. The zero Config has one server, no faults and seed 0.
type Config struct {
	// Seed decides everything that is left open: which pending interaction is next, its
	// result, and the actions of clients and model. The same seed gives the same
	// schedule.
	Seed uint64
	// Replicated simulates three servers: a replica that lags may answer a read, and an
	// append is proposed first and lands later.
	Replicated bool
	// Rates of the faults. Default: no faults.
	Rates Rates
	// Executors that have a durable consumer. The consumers of park and end, of timers
	// and of jobs always exist.
	Executors []string
	// Takeover is how long a worker may be dead before another one gets its step.
	// Default runlog.DefaultTakeover.
	Takeover time.Duration
	// Steps bounds the interactions with faults. Default 1,500.
	Steps int
	// Healing bounds the simulated time in which all runs have to be parked or ended
	// after the last fault. Default 2 h.
	Healing time.Duration
	// Check contains custom invariants, in addition to the stock ones.
	Check []Invariant
}

// Rates are the frequencies of faults: in 10,000 interactions of the named kind.
type Rates struct {
	// CrashBefore and CrashAfter kill the process of an interaction, before it takes
	// place or after. Stop ends a process in an orderly way.
	CrashBefore, CrashAfter, Stop int
	// LostAnswer carries out a write without an answer, LostWrite does neither.
	// Undecided leaves a write in flight, to land later or never.
	LostAnswer, LostWrite, Undecided int
	// Unanswered is a read without an answer. Stale is the answer of a replica that
	// lags, on a replicated bus.
	Unanswered, Stale int
	// LostDelivery never arrives and is repeated after AckWait. Duplicate is delivered
	// to another worker too. LostAck is an acknowledgement, a Nak or a heartbeat that
	// never arrives.
	LostDelivery, Duplicate, LostAck int
	// LostFeed and DoubledFeed are records of the feed. LostPoke and LostDelta are pokes
	// and ends of jobs, and pieces of the model's text.
	LostFeed, DoubledFeed, LostPoke, LostDelta int
	// Cut disconnects a process from the bus for some seconds. ServerRestart makes the
	// server forget its deliveries. Both are in 10,000 interactions of any kind.
	Cut, ServerRestart int
	// TimePasses lets time pass while interactions are pending, so that they are slow.
	TimePasses int
	// HostLost is how often a tool host that dies loses its ledger. CallLost is how
	// often a request to it, or its answer, is lost.
	HostLost, CallLost int
	// ModelFails, ModelSlow and ModelHangs are calls of the model.
	ModelFails, ModelSlow, ModelHangs int
}

// Crashes returns the rates of processes that die and restart, without other faults.
func Crashes() Rates {
	return Rates{CrashBefore: 60, CrashAfter: 80, Stop: 20, TimePasses: 200, ModelSlow: 1500, ModelFails: 500}
}

// Lag returns the rates of a bus with replicas that lag and slow appends.
func Lag() Rates {
	return Rates{Stale: 4000, TimePasses: 300, LostFeed: 1000, ModelSlow: 800, Duplicate: 300}
}

// Hangs returns the rates of a model that often never answers, and of workers that lose
// their steps meanwhile.
func Hangs() Rates {
	return Rates{
		CrashBefore: 60, CrashAfter: 120, Duplicate: 1500, LostDelivery: 200, Cut: 60, ServerRestart: 20, TimePasses: 200,
		ModelHangs: 3000, ModelSlow: 2000,
	}
}

// Everything returns the rates of all faults together, each moderate.
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
