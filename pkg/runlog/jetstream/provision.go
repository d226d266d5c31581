package jetstream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
)

// Names of consumers.
const (
	execPrefix    = "exec-"
	wakeConsumer  = "wake"
	timerConsumer = "timers"
	jobConsumer   = workflow.Inference
)

func execConsumer(executor string) string { return execPrefix + executor }

// Layout configures Provision.
type Layout struct {
	// Partitions is the number of streams that runs are spread over; it never changes.
	// Default: unchanged, 1 at the installation.
	Partitions int
	// Replicas of each stream: 1, 3 or 5. Default: unchanged, 1 at the installation.
	Replicas int
	// Executors get a durable consumer, in addition to the stock ones.
	Executors []string
	// MaxBytes bounds each RUNS stream; BLOBS streams get twice as much, TIMERS streams
	// an eighth. The server reserves the space, so it must fit its storage limit.
	// Default: unchanged, 8 GiB at the installation. A full stream refuses new records.
	MaxBytes int64
	// Takeover is how long a worker may be dead, hung or disconnected before another
	// one gets its step, at least 1 s. Default: unchanged, 5 s at the installation.
	Takeover time.Duration
}

// maxAckPending bounds the unacknowledged steps of one executor.
const maxAckPending = 65_536

// Provision creates the streams and consumers, or checks that existing ones have the
// settings that the log needs. It never changes the data of a stream.
func Provision(ctx context.Context, cfg Config, layout Layout) error {
	end := time.Now().Add(max(cfg.Wait, defaultWait))
	l, err := connect(ctx, cfg)
	if err != nil {
		return err
	}
	defer l.Close()
	for {
		// A request that is lost while a cluster elects its leaders must not use up all
		// of the time.
		try, cancel := l.denied.until(ctx, attempt)
		err := provision(try, l.js, layout)
		cancel()
		if denied := l.denied.err(l.url); err != nil && denied != nil {
			return denied
		}
		if err == nil || !starting(err) || time.Now().After(end) || !pause(ctx, dialPause) {
			return err
		}
	}
}

// AddExecutor creates the missing consumers of a custom executor on a provisioned bus:
// a bridge needs them before its first step. It waits cfg.Wait for the bus to be
// provisioned and does not change existing consumers.
func AddExecutor(ctx context.Context, cfg Config, name string) error {
	l, err := Open(ctx, cfg)
	if err != nil {
		return err
	}
	defer l.Close()
	layout := Layout{Partitions: l.partitions, Executors: []string{name}, Takeover: runlog.TakeoverOf(l.AckWait())}
	for p := range l.partitions {
		for _, consumer := range consumers(p, layout) {
			if consumer.Durable != execConsumer(name) {
				continue
			}
			_, err := l.js.Consumer(ctx, runsStream(p), consumer.Durable)
			if errors.Is(err, jetstream.ErrConsumerNotFound) {
				_, err = l.js.CreateConsumer(ctx, runsStream(p), consumer)
			}
			if err != nil && !errors.Is(err, jetstream.ErrConsumerExists) {
				return fmt.Errorf("consumer %s on %s: %w: a user with that permission must run `harness provision --executor %s`", consumer.Durable, runsStream(p), err, name)
			}
		}
	}
	return nil
}

// minBytes is the smallest size of a stream of records.
const minBytes = 1 << 20

// Bounds of one try to provision a bus, which creates streams, and to inspect it. A
// request that is lost between two leaders uses all of it.
const (
	attempt    = 10 * time.Second
	inspection = 3 * time.Second
)

func provision(ctx context.Context, js jetstream.JetStream, layout Layout) error {
	if layout.MaxBytes != 0 && layout.MaxBytes < minBytes {
		return fmt.Errorf("max bytes %d: expected at least %d, set with --max-bytes", layout.MaxBytes, minBytes)
	}
	if layout.Takeover != 0 && layout.Takeover < runlog.MinTakeover {
		return fmt.Errorf("takeover time %s: expected at least %s, because workers send five heartbeats within it", layout.Takeover, runlog.MinTakeover)
	}
	for _, name := range layout.Executors {
		if !runlog.Name.MatchString(name) || runlog.IsRest(name) || name == workflow.Inference {
			return fmt.Errorf("executor %q: a name matches %s and is not park, end or %s", name, runlog.Name, workflow.Inference)
		}
	}
	have, err := installed(ctx, js)
	switch {
	case err != nil:
		return err
	case layout.Partitions <= 0:
		layout.Partitions = max(have, 1)
	case have != 0 && have != layout.Partitions:
		return fmt.Errorf("the bus has %d partitions, not %d: the number cannot change; provision with --partitions %d", have, layout.Partitions, have)
	}
	asked := layout
	if first, err := js.Stream(ctx, runsStream(0)); err == nil {
		layout.Replicas = cmp.Or(layout.Replicas, first.CachedInfo().Config.Replicas)
		layout.MaxBytes = cmp.Or(layout.MaxBytes, first.CachedInfo().Config.MaxBytes)
	}
	layout.Replicas = max(layout.Replicas, 1)
	if layout.MaxBytes <= 0 {
		layout.MaxBytes = 8 << 30
	}
	if layout.Takeover == 0 {
		layout.Takeover = runlog.DefaultTakeover
		if wake, err := js.Consumer(ctx, runsStream(0), wakeConsumer); err == nil {
			layout.Takeover = runlog.TakeoverOf(wake.CachedInfo().Config.AckWait)
		}
	}
	// From the last to the first: inspect counts partitions from 0 up to the first one
	// that is missing, so an interrupted installation can be repeated.
	for p := layout.Partitions - 1; p >= 0; p-- {
		for _, cfg := range streams(p, layout) {
			if err := ensureStream(ctx, js, cfg, layout.Partitions, asked); err != nil {
				return err
			}
		}
		timer := jetstream.ConsumerConfig{
			Durable:       timerConsumer,
			AckPolicy:     jetstream.AckExplicitPolicy,
			AckWait:       runlog.AckWaitOf(layout.Takeover),
			MaxDeliver:    -1,
			FilterSubject: fmt.Sprintf("hm.timer.%d.*.*.*.fired", p),
		}
		if _, err := js.CreateOrUpdateConsumer(ctx, timersStream(p), timer); err != nil {
			return fmt.Errorf("consumer %s on %s: %w", timerConsumer, timersStream(p), err)
		}
		for _, cfg := range consumers(p, layout) {
			if _, err := js.CreateOrUpdateConsumer(ctx, runsStream(p), cfg); err != nil {
				return fmt.Errorf("consumer %s on %s: %w", cfg.Durable, runsStream(p), err)
			}
		}
	}
	return ensureStream(ctx, js, values(layout), layout.Partitions, asked)
}

func streams(p int, layout Layout) []jetstream.StreamConfig {
	root := fmt.Sprintf("hm.%%s.%d.", p)
	runs := jetstream.StreamConfig{
		Name:        runsStream(p),
		Subjects:    []string{fmt.Sprintf(root, "run") + ">"},
		Retention:   jetstream.LimitsPolicy,
		Storage:     jetstream.FileStorage,
		Discard:     jetstream.DiscardNew,
		MaxBytes:    layout.MaxBytes,
		Replicas:    layout.Replicas,
		Metadata:    map[string]string{partitionsKey: strconv.Itoa(max(layout.Partitions, 1))},
		AllowDirect: true,
		RePublish: &jetstream.RePublish{
			Source:      fmt.Sprintf("hm.run.%d.*.*.log.>", p),
			Destination: fmt.Sprintf("hm.live.%d.{{wildcard(1)}}.{{wildcard(2)}}.>", p),
		},
	}
	blobs := runs
	blobs.Name, blobs.Subjects, blobs.RePublish = blobsStream(p), []string{fmt.Sprintf(root, "blob") + ">"}, nil
	blobs.MaxBytes *= 2
	timers := runs
	timers.Name, timers.Subjects, timers.RePublish = timersStream(p), []string{fmt.Sprintf(root, "timer") + ">"}, nil
	timers.MaxBytes /= 8
	// Scheduling implies roll-up, which RUNS must never allow.
	timers.Discard, timers.AllowMsgSchedules, timers.AllowRollup = jetstream.DiscardOld, true, true
	return []jetstream.StreamConfig{runs, blobs, timers}
}

func consumers(p int, layout Layout) []jetstream.ConsumerConfig {
	at := fmt.Sprintf("hm.run.%d.*.*.", p)
	durable := func(name string, filters ...string) jetstream.ConsumerConfig {
		return jetstream.ConsumerConfig{
			Durable:        name,
			AckPolicy:      jetstream.AckExplicitPolicy,
			AckWait:        runlog.AckWaitOf(layout.Takeover),
			MaxDeliver:     -1,
			MaxAckPending:  maxAckPending,
			FilterSubjects: filters,
		}
	}
	made := map[string]bool{}
	var all []jetstream.ConsumerConfig
	for _, name := range append(workflow.Default(), layout.Executors...) {
		if !made[name] {
			made[name] = true
			all = append(all, durable(execConsumer(name), at+"log.step."+name))
		}
	}
	all = append(all, durable(jobConsumer, at+"job.*"))
	return append(all, durable(wakeConsumer, at+"inbox", at+"log.step."+runlog.Park, at+"log.step."+runlog.End))
}

// partitionsKey is the key under which a stream stores the number of partitions.
const partitionsKey = "harness.partitions"

// checkPartitions refuses a stream of an installation with another number of
// partitions: its runs would not be found.
func checkPartitions(cfg jetstream.StreamConfig, partitions int) error {
	if made := cfg.Metadata[partitionsKey]; made != "" && made != strconv.Itoa(partitions) {
		return fmt.Errorf("stream %s was created for %s partitions, not %d: the number cannot change; run `harness provision --partitions %s`", cfg.Name, made, partitions, made)
	}
	return nil
}

// installed returns the number of partitions that the bus was installed with, 0 for
// none. Some of their streams may be missing, after an interrupted installation or
// damage; Provision re-creates them.
func installed(ctx context.Context, js jetstream.JetStream) (int, error) {
	n, err := countPartitions(ctx, js)
	if err != nil || n == 0 {
		return n, err
	}
	first, err := js.Stream(ctx, runsStream(0))
	if err != nil {
		return 0, fmt.Errorf("read stream %s: %w", runsStream(0), err)
	}
	if made, err := strconv.Atoi(first.CachedInfo().Config.Metadata[partitionsKey]); err == nil {
		return made, nil
	}
	return n, nil
}

// codeNoStorage is the server's error code for a stream that exceeds its storage.
const codeNoStorage jetstream.ErrorCode = 10047

// ensureStream creates a stream, or checks the existing one and sets its replicas and
// its bytes.
func ensureStream(ctx context.Context, js jetstream.JetStream, cfg jetstream.StreamConfig, partitions int, asked Layout) error {
	stream, err := js.Stream(ctx, cfg.Name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		_, err = js.CreateStream(ctx, cfg)
		return refusedStream("create", cfg, err)
	}
	if err != nil {
		return fmt.Errorf("stream %s: %w", cfg.Name, err)
	}
	have := stream.CachedInfo().Config
	if err := checkPartitions(have, partitions); err != nil {
		return err
	}
	if err := checkStream(have); err != nil {
		return err
	}
	want := have
	if asked.Replicas > 0 {
		want.Replicas = cfg.Replicas
	}
	if asked.MaxBytes > 0 {
		want.MaxBytes = cfg.MaxBytes
	}
	if want.Replicas == have.Replicas && want.MaxBytes == have.MaxBytes {
		return nil
	}
	if used := stream.CachedInfo().State.Bytes; uint64(want.MaxBytes) <= used { //nolint:gosec // not negative
		return fmt.Errorf("stream %s has %d bytes, more than its new limit of %d: provision with a larger --max-bytes", cfg.Name, used, want.MaxBytes)
	}
	_, err = js.UpdateStream(ctx, want)
	return refusedStream("change", want, err)
}

// refusedStream returns an error with the remedy for a stream that the server refuses.
func refusedStream(verb string, cfg jetstream.StreamConfig, err error) error {
	switch {
	case err == nil:
		return nil
	case apiCode(err) == codeNoStorage:
		return fmt.Errorf("%s stream %s: the server cannot reserve %d bytes of storage: raise max_file_store in its configuration, or provision with a smaller --max-bytes", verb, cfg.Name, cfg.MaxBytes)
	}
	return fmt.Errorf("%s stream %s, with %d replica(s): %w", verb, cfg.Name, cfg.Replicas, err)
}

// checkStream refuses settings with which the log could lose records.
func checkStream(cfg jetstream.StreamConfig) error {
	bad := func(what string) error {
		return fmt.Errorf("stream %s %s: the log could lose records; move its data to a stream made by `harness provision`", cfg.Name, what)
	}
	switch {
	case cfg.MaxAge != 0:
		return bad("has a maximum age")
	case cfg.MaxMsgsPerSubject > 0 && cfg.Name != valuesStream:
		return bad("has a maximum of messages per subject")
	case cfg.Storage != jetstream.FileStorage:
		return bad("is kept in memory")
	case cfg.PersistMode != jetstream.DefaultPersistMode:
		return bad("acknowledges before it writes")
	case cfg.NoAck:
		return bad("does not acknowledge")
	case cfg.Retention != jetstream.LimitsPolicy:
		return bad("does not keep by limits")
	case !cfg.AllowDirect:
		return bad("does not allow direct gets")
	case strings.HasPrefix(cfg.Name, "TIMERS_"):
		return nil
	case cfg.AllowRollup || cfg.AllowMsgSchedules:
		return bad("allows roll-up or schedules")
	case cfg.Discard != jetstream.DiscardNew:
		return bad("discards old messages")
	}
	return nil
}
