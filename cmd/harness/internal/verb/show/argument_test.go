package show

import (
	"testing"
)

func TestArgumentsAreShownUnescaped(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		`{"command":"cat <<'EOF'\nrm -rf \"x\"\nEOF\n","timeout":3}`: "  command:\n    cat <<'EOF'\n    rm -rf \"x\"\n    EOF\n  timeout: 3\n",
		`{"edits":[{"old":"a"}],"path":"\u001b[2J"}`:                 "  edits:\n    [\n      {\n        \"old\": \"a\"\n      }\n    ]\n  path: \ufffd[2J\n",
		`{}`:        "",
		`not JSON`:  "  not JSON\n",
		`{"a":1,"b`: "  {\"a\":1,\"b\n",
	} {
		if got := argumentText(raw); got != want {
			t.Errorf("%s:\n%s\nwant\n%s", raw, got, want)
		}
	}
}
