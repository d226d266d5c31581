package verify

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	corev1 "k8s.io/api/core/v1"
)

// patience is how long anything may take before a test fails.
const patience = 60 * time.Second

// mesh is a rendering that runs on loopback.
type mesh struct {
	t         *testing.T
	r         *rendering
	servers   []*server.Server
	authority *authority // nil without TLS
	processes []*process
}

// startMesh starts the NATS servers of an overlay and runs its provisioning job to
// the end.
func startMesh(t *testing.T, overlay string) *mesh {
	t.Helper()
	r, err := decode(rendered(t, overlay))
	if err != nil {
		t.Fatal(err)
	}
	m := &mesh{t: t, r: r}
	if slices.Contains(r.workload("nats").secrets(), "tls-nats") {
		m.authority = newAuthority(t)
	}
	m.startNATS()
	job := m.start(m.r.workload("provision"))
	m.processes = nil
	if err := job.wait(); err != nil {
		t.Fatalf("the provisioning job: %v\n%s", err, job.all())
	}
	return m
}

// startNATS starts as many servers as there are replicas, from the rendered file.
func (m *mesh) startNATS() {
	m.t.Helper()
	w := m.r.workload("nats")
	var options []*server.Options
	for i := range int(w.replicas) {
		mounts := m.mount(w)
		// server_name is the name of the pod.
		m.t.Setenv("POD_NAME", fmt.Sprintf("nats-%d", i))
		config := mounts.place("/etc/nats/nats.conf")
		text, err := os.ReadFile(config)
		if err != nil {
			m.t.Fatal(err)
		}
		write(m.t, config, mounts.replace(string(text)))
		o, err := server.ProcessConfigFile(config)
		if err != nil {
			m.t.Fatalf("NATS refuses its configuration: %v", err)
		}
		if !o.SyncAlways || o.Port != 4222 || o.HTTPPort != 8222 {
			m.t.Errorf("NATS would sync always: %v, listen on %d and %d", o.SyncAlways, o.Port, o.HTTPPort)
		}
		// Three servers share this machine.
		o.Host, o.Port, o.HTTPHost, o.HTTPPort, o.NoSigs, o.NoLog = "127.0.0.1", -1, "127.0.0.1", -1, true, true
		if o.Cluster.Name != "" {
			o.Cluster.Host, o.Cluster.Port, o.Cluster.NoAdvertise = "127.0.0.1", -1, true
		}
		options = append(options, o)
	}
	for i, o := range options {
		if i > 0 {
			o.Routes = []*url.URL{{Scheme: "nats-route", Host: m.servers[0].ClusterAddr().String()}}
		} else {
			o.Routes = nil
			if len(options) > 1 {
				// A server of a cluster needs a route to begin with; the others come to it.
				o.Routes = []*url.URL{{Scheme: "nats-route", Host: "127.0.0.1:1"}}
			}
		}
		s, err := server.NewServer(o)
		if err != nil {
			m.t.Fatalf("NATS refuses to start: %v", err)
		}
		s.Start()
		m.t.Cleanup(func() {
			s.Shutdown()
			s.WaitForShutdown()
		})
		if !s.ReadyForConnections(patience) {
			m.t.Fatal("NATS does not take connections")
		}
		m.servers = append(m.servers, s)
	}
}

// mounts are the directories that stand for the volumes of a pod, by mount path.
type mounts map[string]string

// mount makes a directory for each mount of a workload's container and fills those
// of configuration and secrets.
func (m *mesh) mount(w workload) mounts {
	m.t.Helper()
	all := mounts{}
	for _, v := range w.main().VolumeMounts {
		dir := m.t.TempDir()
		all[v.MountPath] = dir
		for _, volume := range w.pod.Spec.Volumes {
			if volume.Name == v.Name {
				m.fill(dir, volume)
			}
		}
	}
	return all
}

func (m *mesh) fill(dir string, v corev1.Volume) {
	m.t.Helper()
	config := func(name string) {
		data, _ := m.r.configNamed(name)
		for key, text := range data {
			write(m.t, filepath.Join(dir, key), text)
		}
	}
	secret := func(name string, items []corev1.KeyToPath) {
		for key, text := range m.secret(name) {
			if len(items) == 0 || slices.ContainsFunc(items, func(i corev1.KeyToPath) bool { return i.Key == key }) {
				write(m.t, filepath.Join(dir, key), text)
			}
		}
	}
	switch {
	case v.ConfigMap != nil:
		config(v.ConfigMap.Name)
	case v.Secret != nil:
		secret(v.Secret.SecretName, v.Secret.Items)
	case v.Projected != nil:
		for _, s := range v.Projected.Sources {
			if s.ConfigMap != nil {
				config(s.ConfigMap.Name)
			}
			if s.Secret != nil {
				secret(s.Secret.Name, s.Secret.Items)
			}
		}
	}
}

// place is where a path of the container is here. A path that is on no volume is
// left alone: there is nothing there, in the container as here.
func (p mounts) place(path string) string {
	best := ""
	for mounted := range p {
		if (path == mounted || strings.HasPrefix(path, mounted+"/")) && len(mounted) > len(best) {
			best = mounted
		}
	}
	return p[best] + strings.TrimPrefix(path, best)
}

// replace replaces the mounted paths in a configuration file.
func (p mounts) replace(text string) string {
	for mounted, dir := range p {
		text = strings.ReplaceAll(text, ": "+mounted, ": "+dir)
	}
	return text
}

// secret is what a secret holds: the rendering's, or made as docs/operate.md says.
func (m *mesh) secret(name string) map[string]string {
	m.t.Helper()
	if content, ok := m.r.secretNamed(name); ok {
		return content
	}
	switch role, ok := strings.CutPrefix(name, "tls-"); {
	case ok:
		for _, c := range m.r.certificates {
			if c.Spec.SecretName == name {
				return m.authority.issue(m.t, c.Spec.DNSNames, c.Spec.URIs...)
			}
		}
		if role == "nats" {
			return m.authority.issue(m.t, []string{"nats", "nats-0.nats-headless", "nats-1.nats-headless", "nats-2.nats-headless"})
		}
		return m.authority.issue(m.t, []string{m.r.config("harness")["HARNESS_TLS_NAME"]}, roleURI+role)
	case name == "nats-passwords":
		var text strings.Builder
		for _, user := range append(slices.Sorted(m.roleNames()), "provision") {
			fmt.Fprintf(&text, "PASSWORD_%s: %q\n", strings.ToUpper(user), password(user))
		}
		return map[string]string{"passwords.conf": text.String()}
	case name == "input-key":
		return map[string]string{"keys": "0123456789abcdef0123456789abcdef\n"}
	case name == "gateway-tokens":
		return map[string]string{"tokens": token + " default\n"}
	}
	user, _ := strings.CutPrefix(name, "nats-")
	return map[string]string{"password": password(user)}
}

func (m *mesh) roleNames() func(func(string) bool) {
	return func(yield func(string) bool) {
		for _, w := range m.r.roles() {
			if !yield(w.name) {
				return
			}
		}
	}
}

// password begins with a digit: a configuration file may take such a word for a number.
func password(user string) string { return "12k" + user }

// token may call the gateway for the namespace that runs are in by default.
const token = "a-token-of-these-tests"
