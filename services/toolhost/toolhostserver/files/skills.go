package files

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/services/toolhost"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/disk"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/git"
)

const (
	// maxSkills bounds the skills of a run, maxSkillFiles the files that are listed of one, and
	// maxSkillFile one that is read, in bytes.
	maxSkills     = 256
	maxSkillFiles = 200
	maxSkillFile  = 1 << 20
)

// skillFolders are the folders that have skills, within a folder of a workspace or a user.
var skillFolders = []string{".agents/skills", ".claude/skills"}

// SkillFolders are the folders with skills apart from those of the workspace.
type SkillFolders struct {
	// Named are those that the agent names. The skills in them are within one of Roots, unless that is
	// empty, whatever links there are.
	Named, Roots []string
	// Own adds those of the user of this process.
	Own bool
}

// skills returns the skills of a workspace: those of its folder and of each above it up to the
// repository's root, those of the user of this process, then those of named folders. The
// first with a name counts. A folder of a repository that leads out of it is none. unaccepted are
// the SKILL.md that wait for a person, relative to the workspace: their skills are left out.
func (f *Files) skills(r git.Repository, more SkillFolders) (found []*harnessv1.Skill, unaccepted []string) {
	names := map[string]bool{}
	add := func(folder string, within ...string) {
		skills, waiting := f.skillsIn(folder, within)
		for _, path := range waiting {
			unaccepted = append(unaccepted, toolhost.Readable(disk.Relative(r.Workspace, path)))
		}
		for _, skill := range skills {
			if names[skill.GetName()] || len(found) >= maxSkills {
				continue
			}
			names[skill.GetName()] = true
			found = append(found, skill)
		}
	}
	for at := r.Workspace; ; at = filepath.Dir(at) {
		for _, folder := range skillFolders {
			add(filepath.Join(at, folder), r.Root)
		}
		if at == r.Root || at == filepath.Dir(at) {
			break
		}
	}
	if home, err := os.UserHomeDir(); err == nil && more.Own {
		for _, folder := range skillFolders {
			add(filepath.Join(home, folder))
		}
	}
	roots := disk.WithoutLinks(more.Roots)
	for _, folder := range more.Named {
		add(folder, roots...)
	}
	return found, unaccepted
}

// skillsIn returns the skills in a folder, by name. Unless within is empty, they are in one of those folders.
// waiting are the SKILL.md that wait for a person.
func (f *Files) skillsIn(folder string, within []string) (found []*harnessv1.Skill, waiting []string) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, nil
	}
	for _, entry := range entries {
		dir, err := filepath.EvalSymlinks(filepath.Join(folder, entry.Name()))
		if err != nil || len(within) > 0 && !slices.ContainsFunc(within, func(folder string) bool { return inside(folder, dir) }) {
			continue
		}
		text, err := f.readIn(filepath.Join(folder, entry.Name()), dir, toolhost.SkillFile)
		if errors.Is(err, errWaits) {
			waiting = append(waiting, filepath.Join(folder, entry.Name(), toolhost.SkillFile))
			continue
		}
		if err != nil {
			continue // it is no skill
		}
		name, description, _, err := toolhost.ParseSkill(entry.Name(), text)
		if err != nil {
			found = append(found, &harnessv1.Skill{Name: content.Line(content.Clean(entry.Name()), 64), Folder: dir, Problem: err.Error()})
			continue
		}
		found = append(found, &harnessv1.Skill{Name: name, Description: description, Folder: dir})
	}
	slices.SortFunc(found, func(a, b *harnessv1.Skill) int { return cmp.Compare(a.GetName(), b.GetName()) })
	return found, waiting
}

// inside reports whether a path is a folder or within it. Both are without links.
func inside(folder, path string) bool {
	relative, err := filepath.Rel(folder, path)
	return err == nil && relative != ".." && !strings.HasPrefix(relative, ".."+string(filepath.Separator))
}

// errWaits: a file waits for a person.
var errWaits = errors.New("a run has changed it, and no person has accepted that: ask the user to do so with harness trust")

// readIn reads a file of a folder, whose path is without links. A path that leads out of it is an error, and so
// is a file that waits for a person, by the path by which the folder was found too.
func (f *Files) readIn(found, folder, path string) (string, error) {
	data, err := readRaw(folder, path)
	if err != nil {
		return "", err
	}
	digest := content.Digest(data)
	if f.Waits(filepath.Join(found, path), digest) || f.Waits(filepath.Join(folder, path), digest) || path != toolhost.SkillFile && f.ReadAs(filepath.Join(folder, path), data) {
		return "", errWaits
	}
	return strings.ToValidUTF8(string(data), "\uFFFD"), nil
}

func readRaw(folder, path string) ([]byte, error) {
	root, err := disk.OpenRoot(folder)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	f, err := root.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, fs.ErrInvalid
	}
	data, err := io.ReadAll(io.LimitReader(f, maxSkillFile+1))
	if len(data) > maxSkillFile {
		return nil, fmt.Errorf("it is larger than %d bytes", maxSkillFile)
	}
	return data, err
}

// Skill returns the text of a skill of a workspace, or a file of its folder. If done is false, the
// text is for the model: why it cannot be used.
func (f *Files) Skill(dir string, more SkillFolders, name, path string) (text string, done bool) {
	r, err := git.Find(dir)
	if err != nil {
		return "The workspace cannot be used: " + disk.Reason(err) + ".", false
	}
	all, _ := f.skills(r, more)
	i := slices.IndexFunc(all, func(k *harnessv1.Skill) bool { return k.GetName() == name })
	if i < 0 {
		var names []string
		for _, k := range all {
			if k.GetProblem() == "" {
				names = append(names, k.GetName())
			}
		}
		return fmt.Sprintf("There is no skill %q. There are: %s.", content.Clip(name, 64), strings.Join(names, ", ")), false
	}
	skill := all[i]
	if skill.GetProblem() != "" {
		return fmt.Sprintf("The skill %s cannot be used: %s.", name, skill.GetProblem()), false
	}
	if path != "" {
		text, err = f.readIn(skill.GetFolder(), skill.GetFolder(), filepath.Clean(path))
		if errors.Is(err, errWaits) {
			return content.Clip(path, 200) + ": cannot be read: " + err.Error() + ".", false
		}
		if err != nil {
			return fmt.Sprintf("%s: cannot be read: it must be a file in the folder of the skill: %s.", content.Clip(path, 200), strings.Join(filesIn(skill.GetFolder()), ", ")), false
		}
		return content.Clean(text), true
	}
	text, err = f.readIn(skill.GetFolder(), skill.GetFolder(), toolhost.SkillFile)
	if err != nil {
		return "The skill cannot be read: " + disk.Reason(err) + ".", false
	}
	_, _, body, err := toolhost.ParseSkill(name, text)
	if err != nil {
		return "The skill cannot be used: " + err.Error() + ".", false
	}
	body = content.Clean(body)
	if files := filesIn(skill.GetFolder()); len(files) > 0 {
		body += "\n\nFiles of this skill, in " + skill.GetFolder() + ":\n" + strings.Join(files, "\n")
	}
	return body, true
}

// filesIn returns the files of a skill apart from its SKILL.md, by path.
func filesIn(folder string) []string {
	root, err := disk.OpenRoot(folder)
	if err != nil {
		return nil
	}
	defer func() { _ = root.Close() }()
	var files []string
	_ = fs.WalkDir(root.FS(), ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || len(files) >= maxSkillFiles {
			return fs.SkipAll
		}
		if entry.Type().IsRegular() && path != toolhost.SkillFile {
			files = append(files, content.Line(content.Clean(path), 200))
		}
		return nil
	})
	return files
}
