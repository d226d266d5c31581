package access

import (
	"fmt"
	"math"
	"strconv"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"google.golang.org/grpc/codes"

	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// Quotas are how much of a gateway the holder of a token uses. Lines of the same name share them.
// Zero values are the defaults.
type Quotas struct {
	// Runs are its runs at work at the same time, in all gateways, with those of its sub-agents.
	Runs int
	// Bytes is the size of the conversations of its stored runs.
	Bytes int
	// Starts are the runs that it starts in a minute at one gateway.
	Starts int
	// Watchers are its open streams and HTTP requests at the same time at one gateway.
	Watchers int
}

// Defaults of Quotas, and the most that a line can name.
const (
	defaultRuns     = 1_000
	defaultBytes    = 64 << 30
	defaultStarts   = 600
	defaultWatchers = 1_000
	maxQuota        = 1_000_000_000_000
)

func (q Quotas) orDefaults() Quotas {
	for value, usual := range map[*int]int{&q.Runs: defaultRuns, &q.Bytes: defaultBytes, &q.Starts: defaultStarts, &q.Watchers: defaultWatchers} {
		if *value == 0 {
			*value = usual
		}
	}
	return q
}

// quotaOf parses the value of a quota.
func quotaOf(value string) (int, error) {
	n, err := strconv.Atoi(value)
	if err != nil || n < 1 || n > maxQuota {
		return 0, fmt.Errorf("expected a number from 1 to %d", maxQuota)
	}
	return n, nil
}

// holders have the usage of the holders of tokens, by their names.
type holders struct {
	mu  sync.Mutex
	all map[string]*holder
}

type holder struct {
	watchers int
	starts   *rate.Limiter
	most     int // what starts was made for
}

// of returns a holder. h.mu is locked.
func (h *holders) of(name string) *holder {
	if h.all == nil {
		h.all = map[string]*holder{}
	}
	found := h.all[name]
	if found == nil {
		found = &holder{}
		h.all[name] = found
	}
	return found
}

// Usage returns how many runs of a caller, by its name, are at work, and the size of the conversations
// of all that are stored, in bytes. It returns zeros while that is not known.
type Usage func(name string) (atWork int, bytes uint64)

// start counts a start of a run, or refuses it. usage may be nil.
func (h *holders) start(c Caller, usage Usage) error {
	quotas := c.Quotas.orDefaults()
	if usage != nil {
		switch atWork, bytes := usage(c.Name); {
		case atWork >= quotas.Runs:
			return exceeded("runs", quotas.Runs, fmt.Sprintf("%d runs of this token are at work, and it may have %d: wait until one has ended, or cancel one", atWork, quotas.Runs))
		case bytes >= uint64(quotas.Bytes): //nolint:gosec // above 0
			return exceeded("bytes", quotas.Bytes, fmt.Sprintf("the stored runs of this token have %d bytes, and it may have %d: delete runs that are not needed", bytes, quotas.Bytes))
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	holder := h.of(c.Name)
	if holder.starts == nil || holder.most != quotas.Starts {
		holder.most, holder.starts = quotas.Starts, rate.NewLimiter(rate.Every(time.Minute/time.Duration(quotas.Starts)), quotas.Starts)
	}
	if next := holder.starts.Reserve(); next.Delay() > 0 {
		wait := next.Delay()
		next.Cancel()
		return exceeded("starts", quotas.Starts, fmt.Sprintf("this token may start %d runs a minute: wait, and start it again with the same run_id", quotas.Starts),
			"retry_after", strconv.Itoa(int(math.Ceil(wait.Seconds()))))
	}
	return nil
}

// reserve are the HTTP requests that end or interrupt runs and that a holder may have next to its watchers.
const reserve = 8

// watch counts an open stream or HTTP request until leave is called, or refuses it. ends is set for a
// request that ends or interrupts a run.
func (h *holders) watch(c Caller, ends bool) (leave func(), err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	holder, most := h.of(c.Name), c.Quotas.orDefaults().Watchers
	if ends && holder.watchers < most+reserve {
		most += reserve
	}
	if holder.watchers >= most {
		return nil, exceeded("watchers", most, fmt.Sprintf("this token has %d open streams and requests, as many as it may: end one", holder.watchers))
	}
	holder.watchers++
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		holder.watchers--
	}, nil
}

// exceeded returns the refusal of what exceeds a quota.
func exceeded(quota string, most int, what string, more ...string) error {
	st, _ := fault.Status(fault.New(codes.ResourceExhausted, harnessv1.ErrorReason_ERROR_REASON_QUOTA_EXCEEDED,
		what+"; "+quota+"= in its line of the tokens file sets that", append([]string{"quota", quota, "limit", strconv.Itoa(most)}, more...)...))
	return st.Err()
}

// Counting returns a guard that bounds the usage of a token's runs.
func (g *Guard) Counting(usage Usage) *Guard {
	counting := *g
	counting.usage = usage
	return &counting
}

// checkQuota refuses a start for which the quotas of a token do not suffice, and counts others.
func (g *Guard) checkQuota(c Caller, req any) error {
	if !c.token() || g.tokens == nil {
		return nil
	}
	switch r := req.(type) {
	case *harnessv1.StartRunRequest:
		return g.tokens.holders.start(c, g.usage)
	case *harnessv1.RunRequest:
		if r.GetStart() != nil {
			return g.tokens.holders.start(c, g.usage)
		}
	}
	return nil
}

// setQuota returns the setter of a quota of a line.
func setQuota(quota func(*Quotas) *int) func(*Caller, string) error {
	return func(c *Caller, value string) error {
		n, err := quotaOf(value)
		*quota(&c.Quotas) = n
		return err
	}
}
