package mcp

import (
	"strings"
	"testing"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// TestPersonReadsWhoGetsTheToken: where a sign-in is at another host than its server, both are named before a person agrees.
func TestPersonReadsWhoGetsTheToken(t *testing.T) {
	t.Parallel()
	server := &harnessv1.McpServer{Name: "notes\n", Url: "https://notes.example:8443/mcp"}
	for address, want := range map[string]string{
		"https://notes.example/authorize": "",
		"https://NOTES.example/authorize": "",
		"https://github.com/login/oauth":  "sign-in at github.com is sent to the server notes at notes.example:8443:",
		"https://notes.example.evil/":     "sign-in at notes.example.evil is",
	} {
		if got := otherHost(server, address); want == "" && got != "" || !strings.Contains(got, want) || strings.Contains(got, "\n") {
			t.Errorf("%s: %q, want %q", address, got, want)
		}
	}
}
