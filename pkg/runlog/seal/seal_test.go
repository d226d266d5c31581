package seal_test

import (
	"bytes"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runlog/seal"
)

var (
	one, two = strings.Repeat("1", 32), strings.Repeat("2", 40)
	run      = runlog.Run{Namespace: "default", ID: "r-1"}
)

func keys(t testing.TB, lines ...string) seal.Keys {
	k, err := seal.Parse(strings.Join(lines, "\n"))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// TestSealIsOfOneInputOfOneRun: any change of the run, of a byte or of the seal makes it invalid.
func TestSealIsOfOneInputOfOneRun(t *testing.T) {
	t.Parallel()
	k := keys(t, one)
	rapid.Check(t, func(t *rapid.T) {
		stored := rapid.SliceOfN(rapid.Byte(), 0, 200).Draw(t, "stored")
		s := k.Seal(run, stored)
		if !k.Valid(run, stored, s) {
			t.Fatal("its own seal is not valid")
		}
		for _, other := range []runlog.Run{{Namespace: "default", ID: "r-2"}, {Namespace: "defaul", ID: "tr-1"}, {Namespace: "default", ID: "r-1x"}, {}} {
			if k.Valid(other, stored, s) {
				t.Fatalf("it is valid for %s", other)
			}
		}
		changed := append(bytes.Clone(stored), 0)
		if len(stored) > 0 && rapid.Bool().Draw(t, "in place") {
			changed = bytes.Clone(stored)
			changed[rapid.IntRange(0, len(stored)-1).Draw(t, "at")] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
		}
		if k.Valid(run, changed, s) {
			t.Fatal("it is valid for other bytes")
		}
		for _, forged := range []string{"", s[1:], s + "00", strings.Repeat("0", len(s)), "x" + s[1:]} {
			if k.Valid(run, stored, forged) {
				t.Fatalf("%q is valid", forged)
			}
		}
	})
}

// TestKeysAreReplacedWithAnOverlap: the first key seals, and all are valid.
func TestKeysAreReplacedWithAnOverlap(t *testing.T) {
	t.Parallel()
	stored := []byte("an input")
	older, both, swapped, newer := keys(t, one), keys(t, "# until Friday", one, "", two), keys(t, two, one), keys(t, " "+two+"\r")
	for name, c := range map[string]struct {
		by, at seal.Keys
		valid  bool
	}{
		"old by both": {older, both, true}, "both by old": {both, older, true}, "both by swapped": {both, swapped, true}, "swapped by both": {swapped, both, true},
		"swapped by new": {swapped, newer, true}, "new by swapped": {newer, swapped, true}, "new by old": {newer, older, false}, "old by new": {older, newer, false},
		"both by new": {both, newer, false}, "none by one": {seal.Keys{}, older, false}, "one by none": {older, seal.Keys{}, false},
		"derived": {seal.Derive(one), seal.Derive(one), true}, "derived by the secret": {seal.Derive(one), older, false}, "derived from another": {seal.Derive(one), seal.Derive(two), false},
	} {
		if got := c.at.Valid(run, stored, c.by.Seal(run, stored)); got != c.valid {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestFilesOfKeys(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"": "missing key", "# " + one: "missing key", "\n\n": "missing key",
		one[1:]: "line 1", "\n# x\nsecretsecret": "line 3", one + "\n" + one + " " + two: "line 2",
	} {
		k, err := seal.Parse(text)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secretsecret") || strings.Contains(err.Error(), one[:8]) || k.Seal(run, nil) != "" {
			t.Errorf("%q: %v", text, err)
		}
	}
}
