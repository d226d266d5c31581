package verify

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

var loop = regexp.MustCompile(`(?m)^for role in ([a-z ]+); do$`)

// documented returns the secrets whose creation a text documents: by name, or in a
// loop over roles.
func documented(text string) map[string]bool {
	names := map[string]bool{}
	for _, part := range strings.Split(text, "create secret generic ")[1:] {
		name := strings.Fields(part)[0]
		names[name] = true
		before := text[:strings.Index(text, "create secret generic "+name)]
		if prefix, ok := strings.CutSuffix(name, "$role"); ok {
			loops := loop.FindAllStringSubmatch(before, -1)
			for _, role := range strings.Fields(loops[len(loops)-1][1]) {
				names[prefix+role] = true
			}
		}
	}
	return names
}

func undocumented(r *rendering, text string) (found []string) {
	known := documented(text)
	for _, w := range r.workloads() {
		for _, s := range w.secrets() {
			if name, _, _ := strings.Cut(s, "/"); !known[name] {
				found = append(found, name)
			}
		}
	}
	return found
}

func TestTheOperatorsPageMakesEverySecret(t *testing.T) {
	text, err := os.ReadFile("../../../docs/operate.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, overlay := range []string{"dev", "prod"} {
		r, err := decode(rendered(t, overlay))
		if err != nil {
			t.Fatal(err)
		}
		if missing := undocumented(r, string(text)); len(missing) != 0 {
			t.Errorf("%s: docs/operate.md does not document how to create %v", overlay, missing)
		}
		if overlay == "prod" && len(undocumented(r, strings.ReplaceAll(string(text), "toolhost provision;", "provision;"))) != 1 {
			t.Error("a role that is left out of the loop is not missed, so this test shows nothing")
		}
	}
}
