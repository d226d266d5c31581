package verify

import (
	"fmt"
	"strings"
	"testing"
)

// checks are pure. Each returns the faults of a rendering, a line each.
var checks = map[string]func(*rendering) []string{
	"selectors":    checkSelectors,
	"ports":        checkPorts,
	"security":     checkSecurity,
	"images":       checkImages,
	"grace":        checkGrace,
	"resources":    checkResources,
	"volumes":      checkVolumes,
	"secrets":      checkSecrets,
	"certificates": checkCertificates,
	"network":      checkNetwork,
	"entries":      checkEntries,
	"storage":      checkStorage,
	"scaler":       checkScaler,
	"bus":          checkBus,
}

func rendered(t *testing.T, name string) string {
	t.Helper()
	switch name {
	case "dev", "prod", "prod-keda":
		return render(t, "../overlays/"+name)
	}
	return render(t, "testdata/"+name)
}

func TestEveryOverlayIsSound(t *testing.T) {
	for _, overlay := range []string{"dev", "prod", "prod-keda", "everything"} {
		r, err := decode(rendered(t, overlay))
		if err != nil {
			t.Errorf("%s: %v", overlay, err)
			continue
		}
		for name, check := range checks {
			for _, flaw := range check(r) {
				t.Errorf("%s: %s: %s", overlay, name, flaw)
			}
		}
	}
}

// Each case breaks a rendering at one place and expects a check to report it, so no
// check passes because it checks nothing.
func TestEachCheckFailsOnABreakage(t *testing.T) {
	texts := map[string]string{}
	for _, overlay := range []string{"dev", "prod", "prod-keda", "everything"} {
		texts[overlay] = rendered(t, overlay)
	}
	covered := map[string]bool{}
	for _, c := range breakages {
		t.Run(c.check+": "+c.want, func(t *testing.T) {
			covered[c.check] = true
			text := texts[c.overlay]
			if !strings.Contains(text, c.old) {
				t.Fatalf("%s does not contain %q", c.overlay, c.old)
			}
			broken, err := decode(strings.Replace(text, c.old, c.new, 1))
			var flaws []string
			if c.check == "decoding" {
				flaws = []string{fmt.Sprint(err)}
			} else if err != nil {
				t.Fatal(err)
			} else {
				flaws = checks[c.check](broken)
			}
			if !strings.Contains(strings.Join(flaws, "\n"), c.want) {
				t.Errorf("got %q, want %q among it", flaws, c.want)
			}
		})
	}
	for name := range checks {
		if !covered[name] {
			t.Errorf("no breakage is detected by the check of %s", name)
		}
	}
}
