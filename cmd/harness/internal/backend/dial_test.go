package backend

import "testing"

func TestServerAddresses(t *testing.T) {
	for address, want := range map[string]struct {
		target string
		plain  bool
	}{
		"127.0.0.1:7447":         {"127.0.0.1:7447", true},
		"localhost:1":            {"localhost:1", true},
		"[::1]:1":                {"[::1]:1", true},
		"example.org:443":        {"example.org:443", false},
		"http://example.org:1":   {"example.org:1", true},
		"https://127.0.0.1:1":    {"127.0.0.1:1", false},
		"unix:/run/harness.sock": {"unix:/run/harness.sock", true},
	} {
		target, plain, err := parseServer(address)
		if err != nil || target != want.target || plain != want.plain {
			t.Errorf("%s: %s, %v, %v", address, target, plain, err)
		}
	}
	for _, address := range []string{"", "x", "x:", "ftp://x:1", "http://x"} {
		if target, _, err := parseServer(address); err == nil {
			t.Errorf("%q became %q", address, target)
		}
	}
}
