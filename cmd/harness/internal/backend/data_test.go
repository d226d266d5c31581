package backend

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/harnessmesh/harnessmesh/pkg/transport/localkey"
)

// TestDataDirectoryOfAGateway: that of a gateway of this user whose key is in it, and of no other.
func TestDataDirectoryOfAGateway(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	env := func(name string) string { return map[string]string{"HOME": home}[name] }
	notes, err := localkey.UserNotes(env)
	if err != nil {
		t.Fatal(err)
	}
	gateway := func(address, keyFile string, folders ...string) string {
		t.Helper()
		dir := t.TempDir()
		for _, folder := range folders {
			if err := os.Mkdir(filepath.Join(dir, folder), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		file := filepath.Join(dir, keyFile)
		if _, _, err := localkey.Ensure(file); err != nil {
			t.Fatal(err)
		}
		if err := notes.Put(address, file); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	dir := gateway("127.0.0.1:7447", "gateway.key", "tools")
	gateway("127.0.0.1:7448", "another.key", "tools")
	gateway("127.0.0.1:7449", "gateway.key")
	for server, want := range map[string]string{
		"127.0.0.1:7447":        dir,
		"localhost:7447":        dir,
		"http://127.0.0.1:7447": dir,
		"127.0.0.1:7448":        "", // --key-file: its folder may be any
		"127.0.0.1:7449":        "", // no tool host has worked there
		"127.0.0.1:7450":        "",
		"10.0.0.1:7447":         "",
		"ftp://127.0.0.1:7447":  "",
		"":                      "",
	} {
		if got := DataOf(env, server); got != want {
			t.Errorf("%q: got %q, want %q", server, got, want)
		}
	}
	if got := DataOf(func(string) string { return "" }, "127.0.0.1:7447"); got != "" {
		t.Errorf("without a home: %q", got)
	}
}
