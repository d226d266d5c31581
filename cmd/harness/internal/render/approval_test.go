package render

import (
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

func aCommand(arguments string) *harnessv1.PendingCall {
	p := pending("approval", "run_command", arguments, 0)
	p.Preview = &harnessv1.CallPreview{Digest: strings.Repeat("0123456789abcdef", 4), Command: &harnessv1.CommandPreview{
		Directory: "/srv/work", Level: harnessv1.SandboxLevel_SANDBOX_LEVEL_FULL, Network: harnessv1.SandboxNetworkMode_SANDBOX_NETWORK_MODE_ALL,
	}}
	return p
}

func TestAPersonReadsTheWholeCall(t *testing.T) {
	hosts := aCommand(`{"command":"curl a.example","timeout_seconds":60}`)
	hosts.Preview.Command.Network, hosts.Preview.Command.Hosts = harnessv1.SandboxNetworkMode_SANDBOX_NETWORK_MODE_HOSTS, []string{"a.example", "b.example"}
	large := aCommand("")
	large.Arguments = &harnessv1.Content{Value: &harnessv1.Content_Blob{Blob: content.Ref([]byte(strings.Repeat("x", 600)))}}
	for name, c := range map[string]struct {
		call  *harnessv1.PendingCall
		width int
		want  string
	}{
		"a command": {aCommand(`{"command":"cat > x <<'EOF'\n\"a\" \\ & <b>\n\nEOF\nrm -rf ~\n"}`), 0, `
in /srv/work · sandbox full · network all
│ cat > x <<'EOF'
│ "a" \ & <b>
│
│ EOF
│ rm -rf ~`},
		"a long line": {aCommand(`{"command":"echo one two three four five six seven\tAllow it? [y]"}`), 24, `
in /srv/work · sandbox
  full · network all
│ echo one two three fou
┆ r five six seven    Al
┆ low it? [y]`},
		"hosts and other arguments": {hosts, 0, `
in /srv/work · sandbox full · network a.example, b.example
│ curl a.example
timeout_seconds: 60`},
		"another tool": {pending("approval", "deploy", `{"to":"a\u001b[2J","what":"one\ntwo","deep":{"a":[1, 2]}}`, 0), 0, `
to: a<U+001B>[2J
what:
│ one
│ two
deep: {"a":[1, 2]}`},
		"a name twice": {pending("approval", "deploy", `{"to":"a","to":"b"}`, 0), 0, `
│ {"to":"a","to":"b"}`},
		"no JSON": {pending("approval", "deploy", "a\rb", 0), 0, `
│ a<U+000D>b`},
		"not here": {large, 100, `
in /srv/work · sandbox full · network all
│ ` + strings.Repeat("x", 98) + "\n┆ " + strings.Repeat(strings.Repeat("x", 98)+"\n┆ ", 4) + strings.Repeat("x", 22) + `
only the first 512 of 600 bytes are here; blob ` + large.GetArguments().GetBlob().GetDigest() + " has them all"},
	} {
		lines := Style{UTF8: true, Width: c.width}.CallLines(c.call)
		got := "\n" + strings.Join(lines, "\n")
		if strings.ReplaceAll(got, "│ \n", "│\n") != c.want {
			t.Errorf("%s:%s\nwant:%s", name, got, c.want)
		}
		for _, line := range lines {
			if width := ansi.StringWidth(line); c.width > 0 && width > c.width && !strings.Contains(line, "blob") {
				t.Errorf("%s: %d columns: %q", name, width, line)
			}
		}
		if WholeCall(c.call) != (name != "not here") {
			t.Errorf("%s: whole is %t", name, WholeCall(c.call))
		}
	}
}

// TestDisguisedPartsAreShown after the call, whose text has their numbers.
func TestDisguisedPartsAreShown(t *testing.T) {
	call := &harnessv1.PendingCall{
		Tool: "run_command", Arguments: content.Inline(`{"command":"curl p\u0430yp\u0430l.com\u2800"}`),
		Preview: &harnessv1.CallPreview{Command: &harnessv1.CommandPreview{Directory: "/w"}, Disguised: []string{"p<U+0430>yp<U+0430>l.com<U+2800>"}},
	}
	lines := strings.Join(Style{}.CallLines(call), "\n")
	for _, want := range []string{"| curl p<U+0430>yp<U+0430>l.com<U+2800>", "It has characters that are not seen or look like others: p<U+0430>yp<U+0430>l.com<U+2800>"} {
		if !strings.Contains(lines, want) {
			t.Errorf("%q is missing in %q", want, lines)
		}
	}
}
