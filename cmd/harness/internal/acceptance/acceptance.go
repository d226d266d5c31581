// Package acceptance asks a person before a file counts that a run has changed and that agents are
// instructed or set up by.
//
// What waits is in the data directory, where the tool host records it: that of a gateway of this user on this
// machine, or that of the command. A file that the command line reads is registered there, so that it is compared
// from then on, whatever its name is. Without a terminal nothing is accepted: a file that the command line reads
// is an error, and the tool host leaves other files out. A signal at a question ends it.
package acceptance

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/agentfile"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/backend"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/console"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/target"
	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/services/toolhost"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/trust"
)

// Person is the person at a command line.
type Person struct {
	console *console.Console
	store   *trust.Store
	in      *bufio.Reader
	// words are the flags with which harness trust finds the records.
	words string
	// read are the files that Register registers.
	read []readFile
	// interrupted is set once a signal has ended a question.
	interrupted bool
}

// readFile is a file that counts.
type readFile struct {
	path    string
	content trust.Version
}

// At returns the person at a console. data is the data directory; empty: that of the user. Without one,
// where HOME is not set, nothing waits.
func At(a *console.Console, data string) *Person {
	p := &Person{console: a, in: bufio.NewReader(a.In)}
	own, _ := backend.DefaultData(a.Env)
	data = cmp.Or(data, own)
	if data != own {
		p.words = " --data " + target.Quote(data)
	}
	if data != "" {
		p.store = trust.Open(filepath.Join(data, "tools"))
	}
	return p
}

// Of returns the person at a console whose command works with a target.
func Of(a *console.Console, t *target.Target) *Person {
	if t.Server != "" {
		return At(a, backend.DataOf(a.Env, t.Server))
	}
	return At(a, t.Data)
}

// Words returns the flags with which harness trust finds the records: a blank and --data, or nothing.
func (p *Person) Words() string { return p.words }

// Err is the error of a command after an error of Read: that a signal has ended a question.
func (p *Person) Err(err error) error {
	if p.interrupted {
		return console.ErrSignal
	}
	return err
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
	switch {
	case !waits:
	case p.console.Interactive():
		if err := p.ask(absolute, known, now); err != nil {
			return nil, err
		}
	default:
		return nil, fmt.Errorf("%s: a run has changed it, and no person has accepted that: look at it with harness trust%s, and accept it with harness trust%s %s", path, p.words, p.words, path)
	}
	p.read = append(p.read, readFile{absolute, now})
	return data, nil
}

// Register has the files that were read compared from now on. Before it nothing is stored.
func (p *Person) Register() {
	for _, f := range p.read {
		p.register(f.path, f.content)
	}
}

// register has a file compared from now on. One that is no file, such as standard input, is not.
func (p *Person) register(path string, now trust.Version) {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return
	}
	err = p.store.Name(path, now)
	if target, linkErr := filepath.EvalSymlinks(path); linkErr == nil && target != path {
		err = errors.Join(err, p.store.Name(target, now))
	}
	if err != nil {
		p.console.Log.Warn("a file is not registered: what runs change in it counts unasked", "path", path, "error", err)
	}
}

// errRefused: the person does not accept a file.
var errRefused = errors.New("not accepted")

// ask shows the difference of a file, and accepts it if the person does.
func (p *Person) ask(path string, known, now trust.Version) error {
	if p.interrupted {
		return console.ErrSignal
	}
	p.show(p.console.Err, path, known, now)
	yes, err := p.console.Confirm(context.Background(), p.in, "Accept it?")
	switch {
	case errors.Is(err, console.ErrSignal):
		p.interrupted = true
		return err
	case err != nil:
		return err
	case !yes:
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
			p.console.Report("%s is left out: a run has changed it, and no person has accepted that: harness trust%s %s", name(r.Path), p.words, name(r.Path))
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
	var failed *fs.PathError
	if errors.As(err, &failed) {
		return 0, fmt.Errorf("%s cannot be read: %w", name(path), failed.Err)
	}
	if err != nil {
		return 0, err
	}
	if path, err = filepath.Abs(path); err != nil {
		return 0, err
	}
	if info, err := os.Stat(target); err == nil && info.Mode().IsRegular() {
		p.store.Unaccepted(path, trust.Read(path).Digest) // records one of any name
	}
	waiting := p.store.Waiting(target)
	if path != target {
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
