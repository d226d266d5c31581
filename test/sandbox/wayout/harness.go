//go:build linux

package wayout

import (
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// at returns a way to read a file below a folder of the target.
func at(name string, folder func(*Target) string, path string) Way {
	return Way{
		Name: name, Try: func(t *Target) error { return read(filepath.Join(folder(t), path)) },
		Prepare: func(t *Target) error { return secret(filepath.Join(folder(t), path)) },
	}
}

// planted returns a way to write a file into a cache of the user.
func planted(name, path string) Way {
	file := func(t *Target) string { return filepath.Join(t.Home, path, "planted") }
	return Way{
		Name: name, Try: func(t *Target) error { return os.WriteFile(file(t), []byte("x"), 0o600) },
		Prepare: func(t *Target) error {
			_ = os.Remove(file(t))
			return os.MkdirAll(filepath.Dir(file(t)), 0o755)
		},
		Seen: func(t *Target) bool {
			_, err := os.Lstat(file(t))
			return err == nil
		},
	}
}

// withNetwork returns a way that is tried with network.
func withNetwork(w Way) Way {
	w.Name, w.Network = w.Name+", with network", true
	return w
}

func secret(path string) error {
	return errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(Secret), 0o600))
}

func home(t *Target) string { return t.Home }
func data(t *Target) string { return t.Data }

// harness is what belongs to the harness, and to its user.
var harness = []Way{
	at("read the ledger", data, "old.ledger"),
	{
		Name: "overwrite the ledger", Try: func(t *Target) error {
			return os.WriteFile(filepath.Join(t.Data, "earlier.ledger"), []byte("x"), 0o600)
		},
		Prepare: func(t *Target) error { return secret(filepath.Join(t.Data, "earlier.ledger")) },
		Seen:    func(t *Target) bool { return read(filepath.Join(t.Data, "earlier.ledger")) != nil },
	},
	at("read a key of the harness", data, "gateway.key"),
	at("read the home of another run", data, "sandbox/another/home/notes"),
	at("read temporary files of another run", data, "sandbox/another/tmp/notes"),
	at("read a private key", home, ".ssh/id_ed25519"),
	at("read passwords", home, ".netrc"),
	at("read the token of npm", home, ".npmrc"),
	at("read the token of Cargo", home, ".cargo/credentials.toml"),
	at("read the settings of Maven", home, ".m2/settings.xml"),
	at("read the settings of Gradle", home, ".gradle/gradle.properties"),
	at("read the configuration of the user", home, ".config/gh/hosts.yml"),
	at("read other projects", home, "projects/other/main.go"),
	{Name: "change what the user's shell runs", Prepare: func(t *Target) error {
		return secret(filepath.Join(t.Home, ".profile"))
	}, Try: func(t *Target) error {
		return os.WriteFile(filepath.Join(t.Home, ".profile"), []byte("x"), 0o600)
	}, Seen: func(t *Target) bool { return read(filepath.Join(t.Home, ".profile")) != nil }},
	{Name: "read secrets of the machine (/etc)", Prepare: func(*Target) error { return etcSecret() }, Try: func(*Target) error { return etcSecret() }},
	{Name: "learn variables of the host", Try: func(*Target) error {
		if os.Getenv("HARNESS_TEST_SECRET") == "" {
			return errNothing
		}
		return nil
	}},
	planted("plant in the module cache of Go", "go/pkg/mod"),
	planted("plant in the build cache of Go", ".cache/go-build"),
	planted("plant in the cache of npm", ".npm/_cacache"),
	planted("plant in the cache of pip", ".cache/pip"),
	planted("plant in the registry of Cargo", ".cargo/registry"),
	planted("plant among the programs of Cargo", ".cargo/bin"),
	withNetwork(planted("plant in the module cache of Go", "go/pkg/mod")),
	withNetwork(planted("plant in the cache of npm", ".npm/_cacache")),
}

// etcSecret opens one of the files of /etc that no command needs.
func etcSecret() error {
	err := error(unix.ENOENT)
	for _, path := range []string{"/etc/shadow", "/etc/gshadow", "/etc/sudoers", "/etc/ssh/ssh_config", "/etc/machine-id", "/etc/security/limits.conf"} {
		if err = open(path, unix.O_RDONLY); err == nil {
			return nil
		}
	}
	return err
}
