package screen_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/render/screen"
	"github.com/harnessmesh/harnessmesh/test/kit/rendertest"
)

// line is a line of a test: letters, so that nothing is trimmed, sometimes wide.
func line(t *rapid.T, name string) string {
	return fmt.Sprintf("%s%s.", rapid.StringMatching(`([a-z]|日|é|👍🏽){0,30}`).Draw(t, name), strings.Repeat("x", rapid.IntRange(0, 3).Draw(t, name+" end")*10))
}

func linesOf(t *rapid.T, name string, limit int) []string {
	lines := make([]string, rapid.IntRange(0, limit).Draw(t, name+" lines"))
	for i := range lines {
		lines[i] = line(t, name)
	}
	return lines
}

// Whatever is drawn, on any size: the lines above appear once and in order, and below
// them the live lines of the newest frame.
func TestLinesAboveStayAndLiveLinesAreReplaced(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		width, height := rapid.IntRange(20, 60).Draw(t, "width"), rapid.IntRange(6, 20).Draw(t, "height")
		terminal := rendertest.New(width, height)
		s := screen.New(terminal)
		fmt.Fprint(terminal, "$ command\r\n")
		want := []string{"$ command"}
		var before []string
		for range rapid.IntRange(1, 12).Draw(t, "frames") {
			up, live := linesOf(t, "up", 4), linesOf(t, "live", 4)
			if rapid.Bool().Draw(t, "much like before") {
				up, live = nil, slices.Concat(before[:rapid.IntRange(0, min(len(before), 4)).Draw(t, "kept")], live[:min(len(live), 1)])
			}
			before = live
			s.Frame(up, live, width, height)
			want = append(want, up...)
			var cut []string
			for _, l := range live {
				cut = append(cut, prefix(l, width-1))
			}
			if got, want := terminal.All(), slices.Concat(want, cut); !slices.Equal(got, want) {
				t.Fatalf("%d by %d:\n%q\nwant\n%q", width, height, got, want)
			}
		}
		s.Frame(nil, nil, width, height)
		if got := terminal.All(); !slices.Equal(got, want) || terminal.Faults() != "" {
			t.Fatalf("in the end %q, want %q; %s", got, want, terminal.Faults())
		}
	})
}

// prefix is what fits into a width, counted by the terminal's own idea of it.
func prefix(text string, width int) string {
	terminal := rendertest.New(width, 9)
	fmt.Fprint(terminal, text)
	return terminal.Screen()[0]
}

// A window that changes its size breaks the live lines; none of the pieces may stay.
func TestAWindowThatChangesItsSizeKeepsNothingThatLived(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		width := rapid.IntRange(20, 60).Draw(t, "width")
		terminal := rendertest.New(width, 40)
		s := screen.New(terminal)
		var want []string
		for range rapid.IntRange(2, 6).Draw(t, "frames") {
			up, live := linesOf(t, "up", 2), linesOf(t, "live", 3)
			s.Frame(up, live, width, 40)
			want = append(want, up...)
			width = rapid.IntRange(20, 60).Draw(t, "next width")
			terminal.Resize(width, 40)
		}
		s.Frame([]string{"end"}, nil, width, 40)
		want = append(want, "end")
		if got := terminal.All(); !slices.Equal(got, want) {
			t.Fatalf("%q\nwant\n%q", got, want)
		}
	})
}

func TestAFrameIsOneWriteAndWhatHasNotChangedIsNotDrawn(t *testing.T) {
	var w countingWriter
	s := screen.New(&w)
	live := []string{"one", "two", "three"}
	s.Frame([]string{"up"}, live, 80, 24)
	s.Frame(nil, live, 80, 24)
	if w.writes != 1 {
		t.Errorf("%d writes for a frame and the same again", w.writes)
	}
	w.last = ""
	s.Frame(nil, []string{"one", "two", "four"}, 80, 24)
	if w.writes != 2 || strings.Contains(w.last, "one") || !strings.Contains(w.last, "four") {
		t.Errorf("%d writes, the last %q", w.writes, w.last)
	}
}

type countingWriter struct {
	writes int
	last   string
}

func (c *countingWriter) Write(p []byte) (int, error) {
	c.writes++
	c.last = string(p)
	return len(p), nil
}

func TestMoreLiveLinesThanRowsShowTheLast(t *testing.T) {
	terminal := rendertest.New(30, 5)
	s := screen.New(terminal)
	var live []string
	for i := range 20 {
		live = append(live, fmt.Sprint("line ", i))
		s.Frame(nil, live, 30, 5)
	}
	if got, want := terminal.All(), live[16:]; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
