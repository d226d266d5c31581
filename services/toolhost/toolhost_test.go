package toolhost

import (
	"testing"
	"time"
)

func TestLimitsValidate(t *testing.T) {
	if err := (Limits{}).WithDefaults().Validate(); err != nil {
		t.Fatal(err)
	}
	if err := (Limits{ResultBytes: 4 << 10}).WithDefaults().Validate(); err != nil {
		t.Fatal(err)
	}
	for name, l := range map[string]Limits{
		"negative": {Paths: -1},
		"tiny":     {ResultBytes: 10},
		"read":     {ReadBytes: 1 << 20},
		"command":  {CommandHeadBytes: 1 << 20},
		"timeout":  {Timeout: -1},
		"timeouts": {Timeout: 2, MaxTimeout: 1},
		"cache":    {CachedResultBytes: -5},
	} {
		if err := l.WithDefaults().Validate(); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestCallTimeout(t *testing.T) {
	l := Limits{}.WithDefaults()
	for _, c := range []struct{ request, model, want time.Duration }{
		{0, 0, 2 * time.Minute},
		{time.Second, 0, time.Second},
		{time.Second, 600 * time.Second, 600 * time.Second},
		{0, 24 * time.Hour, time.Hour},
	} {
		if got := l.CallTimeout(c.request, c.model); got != c.want {
			t.Errorf("CallTimeout(%v, %v) = %v, want %v", c.request, c.model, got, c.want)
		}
	}
}
