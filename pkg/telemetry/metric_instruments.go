package telemetry

// Kind is the kind of an instrument.
type Kind string

// The kinds of instruments.
const (
	Counter   Kind = "counter"   // a total; a float only for money
	UpDown    Kind = "updown"    // the current number in this process
	Histogram Kind = "histogram" // the distribution of values
	Gauge     Kind = "gauge"     // a value at the time of collection
)

// instrument describes one instrument. Prometheus shows it under its name with
// underscores, its unit, and _total for a counter.
type instrument struct {
	Name string
	Kind Kind
	// Unit in UCUM: s, By, or a word in braces, which does not become part of the name.
	Unit        string
	Description string
	// Attributes of a value, at most 4, all of them bounded. An empty one is left out.
	Attributes []string
	// Buckets are the upper bounds of a histogram.
	Buckets []float64
}

// Upper bounds of histograms.
var (
	// quick covers the mesh's own work: 100 µs to a minute.
	quick = []float64{0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60}
	// long covers the work of models and tools: 1 ms to an hour.
	long = []float64{0.001, 0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600}
	// answers and tokens are those of the GenAI conventions.
	answers = []float64{0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92}
	tokens  = []float64{1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864}
)

// Attributes of the GenAI conventions, and the general ones.
const (
	attrOperation = "gen_ai.operation.name"
	attrProvider  = "gen_ai.provider.name"
	attrModel     = "gen_ai.request.model"
	attrTokenType = "gen_ai.token.type"
	attrTool      = "gen_ai.tool.name"
	attrError     = "error.type"
	attrMethod    = "http.request.method"
	attrRoute     = "http.route"
	attrStatus    = "http.response.status_code"
)

// The instruments. docs/metrics.md has them as a table.
var (
	stepDuration = instrument{Name: "harness.step.duration", Kind: Histogram, Unit: "s", Buckets: long,
		Description: "Time from the start of a step to its commit, including the model and the tools of a turn, without waits.", Attributes: []string{"executor", "outcome"}}
	stepsWaiting = instrument{Name: "harness.step.waiting", Kind: UpDown, Unit: "{step}",
		Description: "Steps that wait in this process for something outside, without a slot of the worker.", Attributes: []string{"executor"}}
	waitDuration = instrument{Name: "harness.step.wait.duration", Kind: Histogram, Unit: "s", Buckets: long,
		Description: "Time of a wait of a step. outcome is what ended it: changed, input, until, stopped, or poll if nothing was reported.", Attributes: []string{"executor", "outcome"}}
	hopLatency = instrument{Name: "harness.hop.latency", Kind: Histogram, Unit: "s", Buckets: quick,
		Description: "Time from a record's commit to the start of the step by its executor; first deliveries only.", Attributes: []string{"executor"}}
	redeliveries = instrument{Name: "harness.step.redeliveries", Kind: Counter, Unit: "{delivery}",
		Description: "Deliveries of steps that had been delivered before.", Attributes: []string{"executor"}}
	takeovers = instrument{Name: "harness.step.takeovers", Kind: Counter, Unit: "{takeover}",
		Description: "Turns that a worker took over from another one.", Attributes: []string{"executor"}}
	deadLetters = instrument{Name: "harness.step.dead_letters", Kind: Counter, Unit: "{step}",
		Description: "Steps that cannot be executed or read: their runs failed as poison.", Attributes: []string{"executor"}}
	failures = instrument{Name: "harness.step.failures", Kind: Counter, Unit: "{failure}",
		Description: "Errors and panics of executors; five at one step make a dead letter.", Attributes: []string{"executor"}}

	turns = instrument{Name: "harness.turns", Kind: Counter, Unit: "{turn}",
		Description: "Turns by outcome: completed, or the kind of their error.", Attributes: []string{"outcome"}}
	turnOverhead = instrument{Name: "harness.turn.overhead", Kind: Histogram, Unit: "s", Buckets: quick,
		Description: "Time of a cycle of the loop minus the time of its model, its tools and the building of the request; a sample of the cycles.", Attributes: nil}
	turnDuration = instrument{Name: "harness.turn.duration", Kind: Histogram, Unit: "s", Buckets: long,
		Description: "Total time of a cycle of the loop; the same sample.", Attributes: nil}

	runsStarted = instrument{Name: "harness.run.started", Kind: Counter, Unit: "{run}",
		Description: "Runs that were started.", Attributes: nil}
	runsEnded = instrument{Name: "harness.run.ended", Kind: Counter, Unit: "{run}",
		Description: "Ends of runs. A run that a message reopens ends again.", Attributes: []string{"status", "reason"}}
	runsParked = instrument{Name: "harness.run.parked", Kind: Counter, Unit: "{park}",
		Description: "Parks of runs.", Attributes: []string{"reason"}}
	runs = instrument{Name: "harness.runs", Kind: Gauge, Unit: "{run}",
		Description: "Runs by state, without deleted ones; exposed by each gateway, so use max.", Attributes: []string{"status", "reason"}}

	modelDuration = instrument{Name: "gen_ai.client.operation.duration", Kind: Histogram, Unit: "s", Buckets: answers,
		Description: "Time of one try at a model.", Attributes: []string{attrOperation, attrProvider, attrModel, attrError}}
	modelTokens = instrument{Name: "gen_ai.client.token.usage", Kind: Histogram, Unit: "{token}", Buckets: tokens,
		Description: "Tokens of an answer as the provider reports them, cached input included.", Attributes: []string{attrOperation, attrProvider, attrModel, attrTokenType}}
	modelCached = instrument{Name: "harness.model.cached_tokens", Kind: Counter, Unit: "{token}",
		Description: "Input tokens that the provider served from its cache.", Attributes: []string{attrProvider, attrModel}}
	modelCacheWrites = instrument{Name: "harness.model.cache_write_tokens", Kind: Counter, Unit: "{token}",
		Description: "Input tokens that the provider wrote to its cache.", Attributes: []string{attrProvider, attrModel}}
	modelReasoning = instrument{Name: "harness.model.reasoning_tokens", Kind: Counter, Unit: "{token}",
		Description: "Output tokens of the model's reasoning.", Attributes: []string{attrProvider, attrModel}}
	modelLimit = instrument{Name: "harness.model.rate_limit", Kind: Gauge, Unit: "{unit}",
		Description: "Rate limit that the provider last reported to this process. kind: requests, tokens, input_tokens, output_tokens.", Attributes: []string{attrProvider, attrModel, "kind"}}
	modelRemaining = instrument{Name: "harness.model.rate_limit_remaining", Kind: Gauge, Unit: "{unit}",
		Description: "What was left of that limit after the last answer.", Attributes: []string{attrProvider, attrModel, "kind"}}
	modelCost = instrument{Name: "harness.model.cost_usd", Kind: Counter, Unit: "{USD}",
		Description: "Price of the answers; nothing for models without a known price.", Attributes: []string{attrProvider, attrModel}}
	modelRetries = instrument{Name: "harness.model.retries", Kind: Counter, Unit: "{try}",
		Description: "Failed tries at a model. outcome: retried, adjusted if the provider asked for another form of request, or given_up if the next model is used or the turn fails.", Attributes: []string{attrProvider, attrModel, attrError, "outcome"}}

	jobDuration = instrument{Name: "harness.job.duration", Kind: Histogram, Unit: "s", Buckets: long,
		Description: "Time of a delivery of a job, with all tries and waits. outcome: answered, failed, repeated if another delivery was first, gone if the run was deleted, put_back.", Attributes: []string{"purpose", "outcome"}}
	jobTokens = instrument{Name: "harness.job.tokens", Kind: Counter, Unit: "{token}",
		Description: "Tokens of the calls for jobs; gen_ai.client.token.usage includes them.", Attributes: []string{"purpose", attrTokenType}}

	toolDuration = instrument{Name: "gen_ai.execute_tool.duration", Kind: Histogram, Unit: "s", Buckets: long,
		Description: "Time that a tool ran. error.type: error, cancelled or unknown.", Attributes: []string{attrTool, attrError}}
	toolUnknown = instrument{Name: "harness.tool.unknown_ends", Kind: Counter, Unit: "{call}",
		Description: "Calls with an unknown end.", Attributes: nil}
	toolCalls = instrument{Name: "harness.tool.calls", Kind: Counter, Unit: "{call}",
		Description: "Calls in the models' answers by result. An unknown tool is other.", Attributes: []string{attrTool, "disposition"}}

	appends = instrument{Name: "harness.bus.append.duration", Kind: Histogram, Unit: "s", Buckets: quick,
		Description: "Time of a write to a run's log. outcome: stored, fenced_off, unsettled, refused.", Attributes: []string{"executor", "outcome"}}
	unsettled = instrument{Name: "harness.bus.unsettled", Kind: Counter, Unit: "{append}",
		Description: "Writes to a run's log whose result the bus did not return in time.", Attributes: []string{"executor"}}
	undecided = instrument{Name: "harness.bus.undecided", Kind: Counter, Unit: "{append}",
		Description: "Writes without a decisive first answer, by cause: conflict, conflict_replicated, unanswered.", Attributes: []string{"cause"}}
	settled = instrument{Name: "harness.bus.settled", Kind: Counter, Unit: "{append}",
		Description: "Results of undecided writes: landed, resent.", Attributes: []string{"outcome"}}
	stale = instrument{Name: "harness.bus.stale_reads", Kind: Counter, Unit: "{read}",
		Description: "Answers of replicas that lag; the read was repeated.", Attributes: nil}
	connected = instrument{Name: "harness.bus.connected", Kind: Gauge, Unit: "{connection}",
		Description: "1 while this process is connected to NATS.", Attributes: nil}
	reconnects = instrument{Name: "harness.bus.reconnects", Kind: Counter, Unit: "{reconnect}",
		Description: "Reconnects of this process to NATS.", Attributes: nil}
	pending = instrument{Name: "harness.consumer.pending", Kind: Gauge, Unit: "{message}",
		Description: "Steps that wait for their executor and were never delivered: its lag. Exposed by each gateway, so use max; wake and timers are consumers of repair.", Attributes: []string{"executor"}}
	ackPending = instrument{Name: "harness.consumer.ack_pending", Kind: Gauge, Unit: "{message}",
		Description: "Steps that were delivered and not acknowledged.", Attributes: []string{"executor"}}
	redelivering = instrument{Name: "harness.consumer.redelivered", Kind: Gauge, Unit: "{message}",
		Description: "Of these, steps that were delivered more than once.", Attributes: []string{"executor"}}
	waiting = instrument{Name: "harness.consumer.waiting", Kind: Gauge, Unit: "{request}",
		Description: "Open requests of workers for steps: 0 if there are no workers, or all are busy.", Attributes: []string{"executor"}}
	streamBytes = instrument{Name: "harness.stream.size", Kind: Gauge, Unit: "By",
		Description: "Bytes stored in a stream; exposed by each gateway.", Attributes: []string{"stream"}}
	streamLimit = instrument{Name: "harness.stream.limit", Kind: Gauge, Unit: "By",
		Description: "Bytes at which a stream refuses new records.", Attributes: []string{"stream"}}

	rpcDuration = instrument{Name: "harness.rpc.duration", Kind: Histogram, Unit: "s", Buckets: quick,
		Description: "Time of a unary gRPC call to this process.", Attributes: []string{"method", "code"}}
	rpcStreams = instrument{Name: "harness.rpc.streams", Kind: Counter, Unit: "{stream}",
		Description: "gRPC streams that have ended, by code.", Attributes: []string{"method", "code"}}
	rpcOpen = instrument{Name: "harness.rpc.open_streams", Kind: UpDown, Unit: "{stream}",
		Description: "gRPC streams that are open: watchers, sessions.", Attributes: []string{"method"}}
	httpDuration = instrument{Name: "http.server.request.duration", Kind: Histogram, Unit: "s", Buckets: quick,
		Description: "Time of an HTTP request to this process, streams included.", Attributes: []string{attrMethod, attrRoute, attrStatus}}

	roleReady = instrument{Name: "harness.role.ready", Kind: Gauge, Unit: "{role}",
		Description: "1 while a role of this process is ready, else 0; /readyz has the reason. A bridge also shows its executor's name.", Attributes: []string{"role"}}
	buildInfo = instrument{Name: "harness.build.info", Kind: Gauge, Unit: "{process}",
		Description: "Always 1; the version of this program.", Attributes: []string{"version", "goversion"}}
)
