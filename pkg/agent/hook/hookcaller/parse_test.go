package hookcaller

import (
	"encoding/json"
	"testing"

	"google.golang.org/protobuf/proto"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

func FuzzParse(f *testing.F) {
	for _, seed := range []string{"", "talk", "{}", `{"action":"deny","reason":"no"}`, `{"action":"replace","payload":{"plan":"x"}}`, `{"payload":null}`, `{"action":1}`, "{\"reason\":\"\xff\"}"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		v, err := parse(text)
		if err != nil {
			return
		}
		if v.GetAction() == harnessv1.HookAction_HOOK_ACTION_UNSPECIFIED {
			t.Fatalf("%q has no action", text)
		}
		if v.GetPayload() != "" && !json.Valid([]byte(v.GetPayload())) {
			t.Fatalf("%q: payload %q", text, v.GetPayload())
		}
		if _, err := proto.Marshal(&harnessv1.HookOutcome{Verdict: v}); err != nil {
			t.Fatalf("%q cannot be stored: %v", text, err)
		}
	})
}
