package verify

import (
	"bufio"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// process is a container's process.
type process struct {
	name  string
	cmd   *exec.Cmd
	ended chan error

	mu    sync.Mutex
	lines []string
	grown chan struct{} // closed and replaced with each line
	over  bool
}

// start starts the process of a workload's container, with nothing in its
// environment but what the container has, and a folder of scripted models.
func (m *mesh) start(w workload) *process {
	m.t.Helper()
	mounts := m.mount(w)
	secret := func(name, key string) string { return m.secret(name)[key] }
	all, err := m.r.environment(w.main(), secret, func(string) string { return "127.0.0.1" })
	if err != nil {
		m.t.Fatal(err)
	}
	p := &process{name: w.name, cmd: exec.Command(binary(m.t).path, w.main().Args...), ended: make(chan error, 1), grown: make(chan struct{})}
	for _, e := range all {
		if value := m.local(e, mounts); value != "" {
			p.cmd.Env = append(p.cmd.Env, e.name+"="+value)
		}
	}
	p.cmd.Env = append(p.cmd.Env, "HARNESS_SCRIPTS="+os.TempDir())
	out, err := p.cmd.StderrPipe()
	if err != nil {
		m.t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(func() {
		_ = p.cmd.Process.Kill() // it may have ended
		if err := <-p.ended; err != nil {
			m.t.Logf("%s ended: %v", p.name, err) // killed, as a rule
		}
	})
	go func() {
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			p.addLine(lines.Text())
		}
		err := p.cmd.Wait()
		p.mu.Lock()
		p.over = true
		close(p.grown)
		p.grown = make(chan struct{})
		p.mu.Unlock()
		p.ended <- err
		close(p.ended)
	}()
	m.processes = append(m.processes, p)
	return p
}

// local is a setting for this machine: free ports, directories for mounts, the NATS
// servers of the test. The host that is listened on stays, because it decides what
// the program asks for.
func (m *mesh) local(e setting, mounts mounts) string {
	switch e.name {
	case "HARNESS_LISTEN", "HARNESS_PROBE", "HARNESS_METRICS":
		return e.value[:strings.LastIndex(e.value, ":")] + ":0"
	case "HARNESS_NATS":
		u, err := url.Parse(e.value)
		if err != nil {
			m.t.Fatal(err)
		}
		if m.authority != nil {
			m.authority.mustName(m.t, m.secret("tls-nats")["tls.crt"], u.Hostname())
		}
		if _, ok := m.r.service(u.Hostname()); !ok || u.Port() != "4222" {
			m.t.Errorf("%s is no service of the mesh", u.Host)
		}
		u.Host = m.servers[0].Addr().String()
		return u.String()
	}
	if strings.HasPrefix(e.value, "/") {
		return mounts.place(e.value)
	}
	return e.value
}

func (p *process) addLine(line string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lines = append(p.lines, line)
	close(p.grown)
	p.grown = make(chan struct{})
}

func (p *process) all() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.lines, "\n")
}

// said waits for a line with this beginning and returns what follows, up to a space.
func (p *process) said(t *testing.T, beginning string) string {
	t.Helper()
	late := time.After(patience)
	for {
		p.mu.Lock()
		for _, line := range p.lines {
			if rest, ok := strings.CutPrefix(line, beginning); ok {
				p.mu.Unlock()
				word, _, _ := strings.Cut(rest, " ")
				return strings.Replace(word, "0.0.0.0:", "127.0.0.1:", 1)
			}
		}
		grown, over := p.grown, p.over
		p.mu.Unlock()
		if over {
			t.Fatalf("%s ended without %q:\n%s", p.name, beginning, p.all())
		}
		select {
		case <-grown:
		case <-late:
			t.Fatalf("%s does not say %q:\n%s", p.name, beginning, p.all())
		}
	}
}

func (p *process) awaitReady(t *testing.T) {
	t.Helper()
	p.said(t, "ready role="+p.name)
}

// wait returns how the process ended by itself.
func (p *process) wait() error {
	select {
	case err := <-p.ended:
		return err
	case <-time.After(patience):
		return errLate
	}
}

// stop ends the process as the kubelet does, and expects that all of it stopped in
// order.
func (p *process) stop(t *testing.T) {
	t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Errorf("stop %s: %v", p.name, err)
	}
	if err := p.wait(); err != nil {
		t.Errorf("%s after SIGTERM: %v\n%s", p.name, err, p.all())
	}
}
