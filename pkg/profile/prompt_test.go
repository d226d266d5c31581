package profile_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/profile"
	"github.com/harnessmesh/harnessmesh/pkg/quality"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runlog/jetstream"
	"github.com/harnessmesh/harnessmesh/test/kit/sim"
)

// each runs a test on the log of the simulator and on that of NATS.
func each(t *testing.T, test func(t *testing.T, log runlog.Log)) {
	t.Helper()
	t.Run("simulator", func(t *testing.T) { with(t, test) })
	t.Run("NATS", func(t *testing.T) {
		nats, err := jetstream.StartEmbedded(jetstream.EmbeddedConfig{Dir: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		defer nats.Stop()
		log, err := nats.Open(t.Context(), jetstream.Config{}, jetstream.Layout{})
		if err != nil {
			t.Fatal(err)
		}
		defer log.Close()
		test(t, log)
	})
}

// set sets a prompt and returns the one that counts then.
func set(t *testing.T, p *profile.Profiles, id, tier, text string) *harnessv1.Prompt {
	t.Helper()
	counts, err := p.SetPrompt(t.Context(), namespace, &harnessv1.Prompt{Id: id, Tier: tier, Text: text, SetBy: "nina"})
	if err != nil {
		t.Fatal(err)
	}
	return counts
}

// observed returns the text that counts for runs of a tier.
func observed(t *testing.T, p *profile.Profiles, tier string) string {
	t.Helper()
	s := observe(t, p, &harnessv1.ProfileChange{Tier: tier})
	if s.GetProblem() != "" {
		t.Fatal(s.GetProblem())
	}
	return quality.Texts(s.GetPrompts()).Of(quality.PromptHealing)
}

// TestPromptOfTheTierCounts, else that of all, else the built-in one. Another process sees a change
// 2 seconds later.
func TestPromptOfTheTierCounts(t *testing.T) {
	each(t, func(t *testing.T, log runlog.Log) {
		now := time.Unix(1000, 0)
		clock := func() time.Time { return now }
		p, other := profile.New(profile.Config{Values: log, Now: clock}), profile.New(profile.Config{Values: log, Now: clock})
		builtIn, _ := quality.BuiltIn(quality.PromptHealing)
		for _, c := range []struct{ tier, text, counts, gold, plain string }{
			{"", "", builtIn, builtIn, builtIn},
			{"gold", "of gold", "of gold", "of gold", builtIn},
			{"", "of all", "of all", "of gold", "of all"},
			{"gold", "", "of all", "of all", "of all"},
			{"", "", builtIn, builtIn, builtIn},
		} {
			before := observed(t, other, "gold")
			if counts := set(t, p, quality.PromptHealing, c.tier, c.text); counts.GetText() != c.counts || counts.GetDigest() != quality.PromptDigest(c.counts) {
				t.Errorf("%q of %q: %v", c.text, c.tier, counts)
			}
			if gold, plain := observed(t, p, "gold"), observed(t, p, "plain"); gold != c.gold || plain != c.plain {
				t.Errorf("%q of %q: gold has %q, plain %q", c.text, c.tier, gold, plain)
			}
			if now = now.Add(2*time.Second - 1); observed(t, other, "gold") != before {
				t.Error("a change was read early")
			}
			if now = now.Add(1); observed(t, other, "gold") != c.gold {
				t.Error("a change was not read")
			}
		}
	})
}

// TestPromptsAreBounded: 14 of the largest fit into a namespace, and one of them can be replaced.
func TestPromptsAreBounded(t *testing.T) {
	each(t, func(t *testing.T, log runlog.Log) {
		p, large := profile.New(profile.Config{Values: log}), strings.Repeat("x", 16<<10)
		for n := range 14 {
			set(t, p, quality.PromptHealing, fmt.Sprint("t", n), large)
		}
		set(t, p, quality.PromptHealing, "t3", "other")
		for _, c := range []struct{ id, tier, text, want string }{
			{quality.PromptHealing, "t14", "x", "the namespace has 14 prompts already: unset one first"},
			{quality.PromptHealing, "t3", large + "x", "text: 16385 bytes: at most 16384"},
			{"heal", "", "x", "id: unknown prompt \"heal\": must be one of complexity_classifier, "},
			{quality.PromptHealing, "a b", "x", "tier: \"a b\": must match"},
			{quality.PromptHealing, strings.Repeat("t", 65), "x", "must match"},
		} {
			if _, err := p.SetPrompt(t.Context(), namespace, &harnessv1.Prompt{Id: c.id, Tier: c.tier, Text: c.text}); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s %s: %v, want %q", c.id, c.tier, err, c.want)
			}
		}
		if list, err := p.Prompts(t.Context(), namespace); err != nil || len(list) != 14 || observed(t, p, "t3") != "other" {
			t.Errorf("%d prompts: %v", len(list), err)
		}
		if list, err := p.Prompts(t.Context(), "another"); err != nil || len(list) != 0 {
			t.Errorf("another namespace has %v, %v", list, err)
		}
	})
}

// TestPromptsOfNewerProgramAreUnchanged, and runs have the built-in ones.
func TestPromptsOfNewerProgramAreUnchanged(t *testing.T) {
	each(t, func(t *testing.T, log runlog.Log) {
		key := runlog.ValueKey{Namespace: namespace, Kind: "prompt", Name: "all"}
		data, err := proto.Marshal(&harnessv1.StoredPrompts{Format: 2, Prompts: []*harnessv1.Prompt{{Id: quality.PromptHealing, Text: "new"}}})
		if err != nil {
			t.Fatal(err)
		}
		revision, err := log.PutValue(t.Context(), key, data, 0)
		if err != nil {
			t.Fatal(err)
		}
		p := profile.New(profile.Config{Values: log})
		if _, err := p.SetPrompt(t.Context(), namespace, &harnessv1.Prompt{Id: quality.PromptHealing, Text: "x"}); !errors.Is(err, profile.ErrNewer) {
			t.Errorf("set: %v", err)
		}
		if s := observe(t, p, &harnessv1.ProfileChange{}); !strings.Contains(s.GetProblem(), "newer program") || len(s.GetPrompts()) > 0 {
			t.Errorf("%v", s)
		}
		if _, now, err := log.Value(t.Context(), key); err != nil || now != revision {
			t.Errorf("revision %d after %d: %v", now, revision, err)
		}
	})
}

// TestDamagedValuesCanBeReplaced: they fail no run, and setting a prompt or resetting the profile
// replaces them.
func TestDamagedValuesCanBeReplaced(t *testing.T) {
	each(t, func(t *testing.T, log runlog.Log) {
		for _, key := range []runlog.ValueKey{{Namespace: namespace, Kind: "prompt", Name: "all"}, {Namespace: namespace, Kind: "profile", Name: profile.Key("w")}} {
			if _, err := log.PutValue(t.Context(), key, []byte("\xff\xff\xff"), 0); err != nil {
				t.Fatal(err)
			}
		}
		p := profile.New(profile.Config{Values: log})
		if s := observe(t, p, &harnessv1.ProfileChange{}); !strings.Contains(s.GetProblem(), "damaged: set one") {
			t.Errorf("%v", s)
		}
		set(t, p, quality.PromptHealing, "", "x")
		if got := observed(t, p, ""); got != "x" {
			t.Errorf("%q", got)
		}
		if s := observe(t, p, counted("a", 1, nil)); !strings.Contains(s.GetProblem(), "damaged: reset it") {
			t.Errorf("%v", s)
		}
		if err := p.Reset(t.Context(), namespace, profile.Key("w")); err != nil {
			t.Fatal(err)
		}
		if s := observe(t, p, counted("a", 1, nil)); s.GetTotalRuns() != 1 {
			t.Errorf("%v", s)
		}
	})
}

// setTogether sets seven prompts through each of two Profiles at the same time, and returns how
// many are stored.
func setTogether(t *testing.T, log runlog.Log) int {
	t.Helper()
	var group sync.WaitGroup
	for writer := range 2 {
		p := profile.New(profile.Config{Values: log})
		group.Go(func() {
			for n := range 7 {
				prompt := &harnessv1.Prompt{Id: quality.PromptHealing, Tier: fmt.Sprintf("t%d-%d", writer, n), Text: "x"}
				if _, err := p.SetPrompt(context.Background(), namespace, prompt); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	list, err := profile.New(profile.Config{Values: log}).Prompts(t.Context(), namespace)
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

// TestConcurrentPromptsAreKept: no writer undoes the change of another one.
func TestConcurrentPromptsAreKept(t *testing.T) {
	each(t, func(t *testing.T, log runlog.Log) {
		if n := setTogether(t, log); n != 14 {
			t.Errorf("%d of 14 prompts", n)
		}
	})
	with(t, func(t *testing.T, log runlog.Log) {
		if n := setTogether(t, sim.UnfencedValues(log)); n == 14 {
			t.Error("writes without a revision lose nothing: the test shows nothing")
		}
	})
}
