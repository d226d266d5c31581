//go:build linux && usable

package usable

import (
	"encoding/json"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/pkg/sandbox"
)

// withDependencies are fixtures with a package of others. Each has a kind of registry as name.
// The first command is the one that needs it.
var withDependencies = map[string]fixture{
	"go": {
		needs: "go",
		files: map[string]string{
			"go.mod":    "module example.org/m\n\ngo 1.21\n\nrequire github.com/google/uuid v1.6.0\n",
			"go.sum":    "github.com/google/uuid v1.6.0 h1:NIvaJDMOsjHA8n1jAhLSgzrAzy1Hgr+hNrb57e+94F0=\ngithub.com/google/uuid v1.6.0/go.mod h1:TIyPZe4MgqvfeYDBFedMoGGpEw/LqOeaOT+nhxU+yHo=\n",
			"m_test.go": "package m\n\nimport (\n\t\"testing\"\n\n\t\"github.com/google/uuid\"\n)\n\nfunc TestUUID(t *testing.T) {\n\tif len(uuid.NewString()) != 36 {\n\t\tt.Fail()\n\t}\n}\n",
		},
		commands: []string{"go mod download && go mod verify", "go vet ./...", "go test ./..."}, want: "ok  \texample.org/m",
	},
	"npm": {
		needs: "npm node",
		files: map[string]string{
			"package.json": `{"name": "m", "version": "1.0.0", "scripts": {"test": "node --test"}, "dependencies": {"ms": "2.1.3"}}`,
			"m.test.js":    "const test = require('node:test')\nconst assert = require('node:assert')\ntest('ms', () => assert.equal(require('ms')('1s'), 1000))\n",
		},
		commands: []string{"npm ci --no-audit --no-fund", "npm test"}, want: "pass 1",
	},
	"pip": {
		needs: "python3",
		files: map[string]string{
			"requirements.txt": "pytest==8.3.4\n", "test_m.py": "def test_m():\n    assert 6 * 7 == 42\n",
		},
		commands: []string{"python3 -m venv .venv && .venv/bin/pip install -q $PIP_OPTIONS -r requirements.txt", ".venv/bin/pytest"}, want: "1 passed",
	},
	"cargo": {
		needs: "cargo cc",
		files: map[string]string{
			"Cargo.toml": "[package]\nname = \"m\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\n[dependencies]\nitoa = \"=1.0.11\"\n",
			"src/lib.rs": "#[test]\nfn formats() {\n    assert_eq!(itoa::Buffer::new().format(42), \"42\");\n}\n",
		},
		commands: []string{"cargo build", "cargo test"}, want: "test formats ... ok",
	},
}

// lock writes the lock file of a fixture, which names the registry.
var lock = map[string]string{"npm": "npm install --package-lock-only --no-audit --no-fund", "cargo": "cargo generate-lockfile"}

// fill fills the caches of a fixture. Pip finds nothing in its cache without an index, so its
// packages are in a folder.
var fill = map[string]string{
	"go": "go mod download", "npm": "npm ci --no-audit --no-fund && rm -rf node_modules", "cargo": "cargo fetch",
	"pip": "python3 -m pip wheel -q -w wheels -r requirements.txt",
}

// offline are the options by which a package manager uses caches and folders alone.
var offline = map[string]string{"npm": "npm_config_offline=true", "pip": "PIP_OPTIONS='--no-index --find-links wheels'"}

// TestRegistries runs each fixture without network on caches that were filled outside, and with
// the hosts of its registry on empty ones.
func TestRegistries(t *testing.T) {
	for kind, f := range withDependencies {
		t.Run(kind, func(t *testing.T) {
			if none := missing(f.needs); len(none) > 0 {
				t.Logf("not tried: %s is not installed", strings.Join(none, ", "))
				return
			}
			registry := registries(t)[kind]
			for name, prepared := range map[string]bool{"prepared": true, "empty": false} {
				t.Run(name, func(t *testing.T) {
					dir := t.TempDir()
					project := filepath.Join(dir, "project")
					if lock[kind] != "" { // in a home that is not used again
						enterHome(t, filepath.Join(dir, "other"))
						write(t, project, f.files)
						if o := outside(t, project, lock[kind], patience); o.code != 0 {
							t.Fatal(o.output)
						}
					}
					enterHome(t, filepath.Join(dir, "home"))
					if !prepared {
						f.run(t, dir, registry, private(t, registry))
						return
					}
					ready := f
					ready.prepare = []string{fill[kind]}
					ready.commands = slices.Clone(f.commands)
					if offline[kind] != "" {
						ready.commands[0] = "export " + offline[kind] + "; " + ready.commands[0]
					}
					ready.run(t, dir, nil, nil)
				})
			}
		})
	}
}

// registries returns the hosts of the registries, as this machine is set up to use them.
func registries(t testing.TB) map[string][]string {
	t.Helper()
	dir := t.TempDir()
	setting := func(line string) string {
		if o := outside(t, dir, line+" 2>/dev/null", patience); o.code == 0 {
			return strings.TrimSpace(o.output)
		}
		return ""
	}
	hosts := map[string][]string{}
	add := func(kind string, addresses ...string) {
		for _, address := range addresses {
			if u, err := url.Parse(address); err == nil && u.Host != "" && !slices.Contains(hosts[kind], u.Host) {
				hosts[kind] = append(hosts[kind], u.Host)
			}
		}
	}
	add("go", strings.FieldsFunc(setting("go env GOPROXY"), func(r rune) bool { return r == ',' || r == '|' })...)
	add("go", "https://"+strings.Split(setting("go env GOSUMDB"), "+")[0])
	add("npm", setting("npm config get registry"))
	add("pip", setting("python3 -m pip config get global.index-url"), os.Getenv("PIP_INDEX_URL"),
		setting(`python3 -c "from pip._internal.models.index import PyPI; print(PyPI.url)"`),
		setting(`python3 -c "from pip._internal.models.index import PyPI; print('https://' + PyPI.file_storage_domain)"`))
	add("cargo", cargoHosts(t)...)
	return hosts
}

// cargoHosts returns the addresses of Cargo's registry: of its index, in the name of a folder
// that Cargo makes for it, and of its downloads, which the index names.
func cargoHosts(t testing.TB) []string {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, withDependencies["cargo"].files)
	if len(missing("cargo")) > 0 {
		return nil
	}
	if o := outside(t, dir, "CARGO_HOME=$PWD/cargo cargo fetch", patience); o.code != 0 {
		t.Fatal(o.output)
	}
	indexes, _ := filepath.Glob(filepath.Join(dir, "cargo", "registry", "index", "*"))
	var all []string
	for _, index := range indexes {
		name := filepath.Base(index)
		all = append(all, "https://"+name[:max(0, strings.LastIndex(name, "-"))])
		text, err := os.ReadFile(filepath.Join(index, "config.json"))
		var config struct{ DL string }
		if err == nil && json.Unmarshal(text, &config) == nil {
			all = append(all, config.DL)
		}
	}
	return all
}

// private returns the hosts with an address that is not public, such as that of a mirror. An
// operator has to name these.
func private(t testing.TB, hosts []string) []string {
	t.Helper()
	var named []string
	for _, host := range hosts {
		name, _, err := net.SplitHostPort(host)
		if err != nil {
			name = host
		}
		addresses, _ := net.DefaultResolver.LookupNetIP(t.Context(), "ip", name)
		if slices.ContainsFunc(addresses, func(a netip.Addr) bool { return !sandbox.Public(a.Unmap()) }) {
			named = append(named, host)
		}
	}
	return named
}
