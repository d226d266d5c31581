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
	// Bytes is the size of the conversations of its stored runs, with their images and documents.
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

// start counts a start of a run, or refuses it.
func (h *holders) start(c Caller) error {
	quotas := c.Quotas.orDefaults()
	each := rate.Every(time.Minute / time.Duration(quotas.Starts))
	h.mu.Lock()
	defer h.mu.Unlock()
	holder := h.of(c.Name)
	switch {
	case holder.starts == nil:
		holder.starts = rate.NewLimiter(each, quotas.Starts)
	case holder.starts.Burst() != quotas.Starts: // another line of the name; used starts stay used
		holder.starts.SetLimit(each)
		holder.starts.SetBurst(quotas.Starts)
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

// Exceeded returns the refusal of a request beyond a quota, a *fault.Error. The text names the numbers and the remedy.
func Exceeded(quota string, most int, what string, more ...string) error {
	return fault.New(codes.ResourceExhausted, harnessv1.ErrorReason_ERROR_REASON_QUOTA_EXCEEDED,
		what+"; "+quota+"= in its line of the tokens file sets that", append([]string{"quota", quota, "limit", strconv.Itoa(most)}, more...)...)
}

// exceeded returns Exceeded as a gRPC status.
func exceeded(quota string, most int, what string, more ...string) error {
	st, _ := fault.Status(Exceeded(quota, most, what, more...))
	return st.Err()
}

// checkQuota refuses a start beyond those that a token has in a minute, and counts others. The gateway, which knows the
// runs, decides by the quotas of runs and bytes: see StoredQuotas.
func (g *Guard) checkQuota(c Caller, req any) error {
	if !c.token() || g.tokens == nil {
		return nil
	}
	switch r := req.(type) {
	case *harnessv1.StartRunRequest:
		return g.tokens.holders.start(c)
	case *harnessv1.RunRequest:
		if r.GetStart() != nil {
			return g.tokens.holders.start(c)
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
