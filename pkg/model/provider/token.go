package provider

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/harnessmesh/harnessmesh/pkg/model"
)

const (
	// tokenTimeout is how long a token command may take.
	tokenTimeout = 10 * time.Second
	// tokenLife is how long a token is used whose command prints no expiry.
	tokenLife = 5 * time.Minute
	// tokenMargin is how long before its expiry a token is no longer used.
	tokenMargin = time.Minute
	// maxToken bounds the output of a token command, in bytes.
	maxToken = 64 << 10
	// outputWait is how long the output of a token command may stay open after its end.
	outputWait = time.Second
)

// tokenSource runs a program that prints a short-lived key, and keeps the key while it
// is valid. At most one program runs at a time. It is safe for concurrent use.
type tokenSource struct {
	provider string
	command  []string
	timeout  time.Duration
	now      func() time.Time

	mu      sync.Mutex
	token   string
	until   time.Time
	running *tokenRun
}

// tokenRun is one run of the program; its results are set when done is closed.
type tokenRun struct {
	done  chan struct{}
	token string
	err   error
}

func newTokenSource(provider string, command []string) *tokenSource {
	return &tokenSource{provider: provider, command: command, timeout: tokenTimeout, now: time.Now}
}

// get returns a token, and whether a program was started for it. Its error is a
// *model.Error that names the provider and the program, and has nothing of its output.
func (s *tokenSource) get(ctx context.Context) (token string, fresh bool, err error) {
	for {
		s.mu.Lock()
		if s.token != "" && s.now().Before(s.until) {
			defer s.mu.Unlock()
			return s.token, false, nil
		}
		run, mine := s.running, false
		if run == nil {
			run, mine = &tokenRun{done: make(chan struct{})}, true
			s.running = run
		}
		s.mu.Unlock()
		if mine {
			s.finish(run, func() (string, time.Time, error) { return s.run(ctx) })
			return run.token, true, run.err
		}
		select {
		case <-run.done:
		case <-ctx.Done():
			return "", false, context.Cause(ctx)
		}
		if !errors.Is(run.err, errGivenUp) {
			return run.token, true, run.err
		}
	}
}

// finish sets the results of a run.
func (s *tokenSource) finish(run *tokenRun, f func() (string, time.Time, error)) {
	token, until, err := f()
	s.mu.Lock()
	defer s.mu.Unlock()
	run.token, run.err = token, err
	s.token, s.until, s.running = token, until, nil
	close(run.done)
}

// drop forgets a token that the provider has refused.
func (s *tokenSource) drop(token string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.token == token {
		s.until = time.Time{}
	}
}

// last returns the last token, which may have expired; empty if there was none.
func (s *tokenSource) last() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.token
}

// errGivenUp is the cause of a run that ended because its caller no longer waits.
var errGivenUp = errors.New("the caller no longer waits")

// run starts the program and reads its output.
func (s *tokenSource) run(parent context.Context) (token string, until time.Time, err error) {
	ctx, cancel := context.WithTimeout(parent, s.timeout)
	defer cancel()
	var out limitedBuffer
	cmd := exec.CommandContext(ctx, s.command[0], s.command[1:]...)
	cmd.Stdout, cmd.WaitDelay = &out, outputWait
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	err = cmd.Run()
	if errors.Is(err, exec.ErrWaitDelay) { // it has ended, and a child of it keeps the output open
		err = cmd.Cancel()
	}
	switch {
	case parent.Err() != nil:
		return "", time.Time{}, errGivenUp
	case ctx.Err() != nil:
		return "", time.Time{}, s.fail(true, "took longer than %v", s.timeout)
	case err != nil:
		return "", time.Time{}, s.fail(true, "failed: %v", err)
	}
	return s.parse(&out)
}

// parse reads the only line of output: the token, and optionally when it expires, in
// seconds since 1970 or as in RFC 3339.
func (s *tokenSource) parse(out *limitedBuffer) (token string, until time.Time, err error) {
	text := strings.Trim(out.kept.String(), "\r\n")
	fields := strings.Fields(text)
	switch {
	case out.exceeded:
		return "", until, s.fail(false, "printed more than %d bytes", maxToken)
	case len(fields) == 0:
		return "", until, s.fail(false, "printed no token")
	case strings.ContainsAny(text, "\r\n"):
		return "", until, s.fail(false, "printed more than one line: it must print the token, and optionally its expiry, alone")
	case len(fields) > 2: //nolint:mnd // token and expiry
		return "", until, s.fail(false, "printed more than a token and its expiry")
	case strings.ContainsFunc(fields[0], func(r rune) bool { return r <= ' ' || r > '~' }):
		return "", until, s.fail(false, "printed a token that is not plain text")
	}
	until = s.now().Add(tokenLife)
	if len(fields) > 1 {
		expiry, err := parseExpiry(fields[1])
		if err != nil {
			return "", until, s.fail(false, "printed an expiry that is neither a number of seconds since 1970 nor a time as in RFC 3339")
		}
		until = expiry.Add(-tokenMargin)
	}
	return fields[0], until, nil
}

func parseExpiry(text string) (time.Time, error) {
	if seconds, err := strconv.ParseInt(text, 10, 64); err == nil {
		return time.Unix(seconds, 0), nil
	}
	return time.Parse(time.RFC3339, text)
}

func (s *tokenSource) fail(retryable bool, format string, args ...any) error {
	message := fmt.Sprintf("the token command of %s, %s, %s", s.provider, s.command[0], fmt.Sprintf(format, args...))
	return &model.Error{Retryable: retryable, RetryAfter: -1, Message: message}
}

// limitedBuffer keeps the first maxToken bytes that are written to it.
type limitedBuffer struct {
	kept     bytes.Buffer // not embedded, because its ReadFrom has no limit
	exceeded bool
}

// Write drops what exceeds the limit.
func (b *limitedBuffer) Write(data []byte) (int, error) {
	if rest := maxToken - b.kept.Len(); len(data) > rest {
		b.exceeded = true
		_, _ = b.kept.Write(data[:rest])
	} else {
		_, _ = b.kept.Write(data)
	}
	return len(data), nil
}
