package toolhost

import (
	"testing"
	"time"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/tool"
)

func TestCatalogueIsASet(t *testing.T) {
	set, err := tool.NewSet(Catalogue())
	if err != nil {
		t.Fatal(err)
	}
	for name, arguments := range map[string]string{
		ReadFile:      `{"path":"a","offset":1,"limit":2}`,
		WriteFile:     `{"path":"a","content":""}`,
		EditFile:      `{"path":"a","old":"x","new":""}`,
		ListDirectory: ``,
		FindFiles:     `{"pattern":"**/*.go"}`,
		SearchFiles:   `{"pattern":"x","path":"a"}`,
		RunCommand:    `{"command":"true","timeout_seconds":5}`,
	} {
		if err := set.Validate(name, arguments); err != nil {
			t.Error(err)
		}
		if err := set.Validate(name, `{"surprise":1}`); err == nil {
			t.Errorf("%s takes what it does not know", name)
		}
	}
}

func TestAnnotationsKeepThePromises(t *testing.T) {
	for _, spec := range Catalogue() {
		a := spec.GetAnnotations()
		if spec.GetOrigin() != harnessv1.ToolOrigin_TOOL_ORIGIN_TOOL_HOST {
			t.Errorf("%s: origin %v", spec.GetName(), spec.GetOrigin())
		}
		if a.GetWrites() && a.GetParallelSafe() {
			t.Errorf("%s writes beside others", spec.GetName())
		}
		if a.GetExecutes() && a.GetIdempotent() {
			t.Errorf("%s executes and calls itself idempotent", spec.GetName())
		}
		if a.GetDurability() == harnessv1.Durability_DURABILITY_UNSPECIFIED {
			t.Errorf("%s has no durability", spec.GetName())
		}
	}
}

func TestLimits(t *testing.T) {
	if err := (Limits{}).WithDefaults().Validate(); err != nil {
		t.Fatal(err)
	}
	if err := (Limits{ResultBytes: 4 << 10}).WithDefaults().Validate(); err != nil {
		t.Fatal(err)
	}
	for name, l := range map[string]Limits{
		"negative":  {Paths: -1},
		"tiny":      {ResultBytes: 10},
		"read":      {ReadBytes: 1 << 20},
		"command":   {CommandHeadBytes: 1 << 20},
		"timeout":   {Timeout: -1},
		"timeouts":  {Timeout: 2, MaxTimeout: 1},
		"remembers": {RememberedBytes: -5},
	} {
		if err := l.WithDefaults().Validate(); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestCallTimeout(t *testing.T) {
	l := Limits{}.WithDefaults()
	for _, c := range []struct{ requested, asked, want time.Duration }{
		{0, 0, 2 * time.Minute},
		{time.Second, 0, time.Second},
		{time.Second, 600 * time.Second, 600 * time.Second},
		{0, 24 * time.Hour, time.Hour},
	} {
		if got := l.CallTimeout(c.requested, c.asked); got != c.want {
			t.Errorf("CallTimeout(%v, %v) = %v, want %v", c.requested, c.asked, got, c.want)
		}
	}
}
