// Package acceptance asks a person before a file counts that a run has changed and that agents are
// instructed or set up by.
//
// What waits is in the data directory, where the tool host records it. Without a terminal nothing is
// accepted: a file that the command line reads is an error, and the tool host leaves other files out.
package acceptance

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/agentfile"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/backend"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/console"
	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/services/toolhost"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/trust"
)

// Person is the person at a command line.
type Person struct {
	console *console.Console
	store   *trust.Store
	in      *bufio.Reader
}

// At returns the person at a console. data is the data directory; empty: that of the user. Without one,
// where HOME is not set, nothing waits.
func At(a *console.Console, data string) *Person {
	p := &Person{console: a, in: bufio.NewReader(a.In)}
	if data == "" {
		data, _ = backend.DefaultData(a.Env)
	}
	if data != "" {
		p.store = trust.Open(filepath.Join(data, "tools"))
	}
	return p
}

// Read reads a file that the person names. It is an error if a run has changed the file and the person
// does not accept that.
func (p *Person) Read(path string) ([]byte, error) {
	data, err := agentfile.Read(path)
	if err != nil || p.store == nil {
		return data, err
	}
	absolute, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	now := trust.Of(data)
	known, waits := p.store.Unaccepted(absolute, now.Digest)
	if !waits {
		return data, nil
	}
	if p.console.Interactive() {
		if err := p.ask(absolute, known, now); err != nil {
			return nil, err
		}
		return data, nil
	}
	return nil, fmt.Errorf("%s: a run has changed it, and no person has accepted that: look at it with harness trust, and accept it with harness trust %s", path, path)
}

// errRefused: the person does not accept a file.
var errRefused = errors.New("not accepted")

// ask shows the difference of a file, and accepts it if the person does.
func (p *Person) ask(path string, known, now trust.Version) error {
	p.show(p.console.Err, path, known, now)
	_, _ = fmt.Fprint(p.console.Err, "Accept it? [y/N] ")
	line, err := p.in.ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if answer := strings.ToLower(strings.TrimSpace(line)); answer != "y" && answer != "yes" {
		return fmt.Errorf("%s: a run has changed it: %w", name(path), errRefused)
	}
	return p.accept(path, now)
}

// accept accepts the content that was shown, by the path and by that to which it leads.
func (p *Person) accept(path string, now trust.Version) error {
	err := p.store.Accept(path, now)
	if target, linkErr := filepath.EvalSymlinks(path); linkErr == nil && target != path {
		err = errors.Join(err, p.store.Accept(target, now))
	}
	return err
}

func (p *Person) show(w io.Writer, path string, known, now trust.Version) {
	_, _ = fmt.Fprintf(w, "%s: a run has changed it. Agents are instructed or set up by it.\n%s", name(path), ended(trust.Difference(known, now)))
}

func name(path string) string { return console.OneLine(content.Visible(path)) }

func ended(text string) string {
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return text
}

// BeforeRun asks for the instruction files and skills that a run in a workspace would have. Without
// a terminal it names those that are left out.
func (p *Person) BeforeRun(workspace string) error {
	workspace, err := filepath.EvalSymlinks(workspace)
	if err != nil || p.store == nil {
		return nil //nolint:nilerr // the start of the run reports it
	}
	root := repository(workspace)
	for _, r := range p.store.Waiting(root) {
		if !counts(r.Path, workspace) {
			continue
		}
		if !p.console.Interactive() {
			p.console.Report("%s is left out: a run has changed it, and no person has accepted that: harness trust %s", name(r.Path), name(r.Path))
			continue
		}
		if err := p.ask(r.Path, r.Former, trust.Read(r.Path)); err != nil && !errors.Is(err, errRefused) {
			return err
		} else if err != nil {
			p.console.Report("%s is left out", name(r.Path))
		}
	}
	return nil
}

// repository returns the nearest folder with a .git, the workspace itself without one.
func repository(workspace string) string {
	for at := workspace; ; at = filepath.Dir(at) {
		if _, err := os.Lstat(filepath.Join(at, ".git")); err == nil {
			return at
		}
		if at == filepath.Dir(at) {
			return workspace
		}
	}
}

// counts reports whether a run in a workspace reads a file without a flag that names it: an instruction file of the
// workspace or of a folder above it, or one of a skill.
func counts(path, workspace string) bool {
	for at := workspace; ; at = filepath.Dir(at) {
		for _, instructions := range toolhost.InstructionNames {
			if path == filepath.Join(at, instructions) {
				return true
			}
		}
		for _, skills := range []string{".agents/skills", ".claude/skills"} {
			if strings.HasPrefix(path, filepath.Join(at, skills)+"/") {
				return true
			}
		}
		if at == filepath.Dir(at) {
			return filepath.Base(path) == toolhost.SkillFile && strings.HasPrefix(path, workspace+"/")
		}
	}
}

// Waiting shows what waits in a folder, or at a path, and has the person accept it. all accepts it
// without asking, as the path was named. It returns how many files still wait.
func (p *Person) Waiting(path string, all bool) (left int, err error) {
	if p.store == nil {
		return 0, errors.New("--data: HOME is not set: name a directory")
	}
	target, err := filepath.EvalSymlinks(path)
	if err != nil {
		return 0, err
	}
	waiting := p.store.Waiting(target)
	if path, err = filepath.Abs(path); err == nil && path != target {
		waiting = append(waiting, p.store.Waiting(path)...)
	}
	for _, r := range waiting {
		now := trust.Read(r.Path)
		switch {
		case p.console.Interactive():
			if err := p.ask(r.Path, r.Former, now); errors.Is(err, errRefused) {
				left++
			} else if err != nil {
				return left, err
			}
		default:
			p.show(p.console.Out, r.Path, r.Former, now)
			if !all {
				left++
				continue
			}
			if err := p.accept(r.Path, now); err != nil {
				return left, err
			}
			p.console.Report("%s is accepted", name(r.Path))
		}
	}
	if len(waiting) == 0 {
		p.console.Report("nothing waits in %s", name(path))
	}
	return left, nil
}
