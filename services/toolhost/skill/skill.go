// Package skill reads the description of skills (agentskills.io) and composes their
// catalogue, which is a part of the system prompt. A skill grants nothing: of its front
// matter only the name and the description count.
package skill

import (
	"errors"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/tool/dialect"
)

// Limits of skills.
const (
	// MaxHead is how much of a SKILL.md is read for its front matter, in bytes.
	MaxHead = 16 << 10
	// MaxDescription bounds a description, in bytes.
	MaxDescription = 1024
	// MaxCatalogue bounds the catalogue, in bytes.
	MaxCatalogue = 8 << 10
	maxName      = 64
)

// Found is the SKILL.md of a folder.
type Found struct {
	// Folder is where the skill is, as people read it. Its last part is its name.
	Folder string
	// Head has the first MaxHead bytes of SKILL.md.
	Head string
}

// Skill is a skill that an agent can use.
type Skill struct {
	Name, Description string
	Folder            string
}

// LeftOut is a skill that an agent cannot use, and why.
type LeftOut struct{ Folder, Reason string }

// Select returns the skills that an agent can use, given those of all folders with the
// nearest folder first. The nearest skill has a name; others of that name are left out.
func Select(found []Found) (skills []Skill, left []LeftOut) {
	owners := map[string]string{}
	for _, f := range found {
		name, description, err := read(f)
		owner, taken := owners[name]
		switch {
		case err != nil:
			left = append(left, LeftOut{f.Folder, err.Error()})
		case taken:
			left = append(left, LeftOut{f.Folder, "the nearer " + owner + " has the same name"})
		default:
			owners[name] = f.Folder
			skills = append(skills, Skill{Name: name, Description: description, Folder: f.Folder})
		}
	}
	return skills, left
}

// read returns the name and the description of the front matter.
func read(f Found) (name, description string, err error) {
	head := strings.ReplaceAll(strings.TrimPrefix(content.Cut(f.Head, MaxHead), "\ufeff"), "\r\n", "\n")
	matter, ok := strings.CutPrefix(head, "---\n")
	if !ok {
		return "", "", errors.New("its SKILL.md has no front matter: it must begin with a line ---")
	}
	if end := strings.Index("\n"+matter, "\n---"); end >= 0 {
		matter = matter[:end]
	} else {
		return "", "", fmt.Errorf("the front matter of its SKILL.md has no end in the first %d bytes", MaxHead)
	}
	var fields struct {
		Name        string `yaml:"name"`
		Description string `yaml:"description"`
	}
	if err := yaml.Unmarshal([]byte(matter), &fields); err != nil {
		return "", "", fmt.Errorf("the front matter of its SKILL.md is not valid YAML: %s", content.Line(err.Error(), 200))
	}
	folder := f.Folder[strings.LastIndexAny(f.Folder, `/\`)+1:]
	switch description = content.OneLine(dialect.Text(fields.Description, MaxDescription)); {
	case !validName(fields.Name):
		return "", "", fmt.Errorf("its name %s is not of the form a-z, 0-9 and single hyphens, 1 to %d characters", content.Clip(dialect.Text(fields.Name, 80), 80), maxName)
	case fields.Name != folder:
		return "", "", fmt.Errorf("its name %s is not that of its folder", fields.Name)
	case description == "":
		return "", "", errors.New("it has no description")
	}
	return fields.Name, description, nil
}

func validName(name string) bool {
	if name == "" || len(name) > maxName || strings.Contains(name, "--") || name[0] == '-' || name[len(name)-1] == '-' {
		return false
	}
	return strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}

// Catalogue returns a line for each skill, at most MaxCatalogue bytes. Where they exceed it,
// all descriptions are cut to the same length; if the names alone exceed it, the last skills
// are replaced by their number.
func Catalogue(skills []Skill) string {
	for limit := MaxDescription; limit >= 16; limit = limit * 3 / 4 {
		var b strings.Builder
		for _, s := range skills {
			fmt.Fprintf(&b, "- %s: %s\n", s.Name, content.Line(s.Description, limit))
		}
		if b.Len() <= MaxCatalogue {
			return b.String()
		}
	}
	var b strings.Builder
	for i, s := range skills {
		line := "- " + s.Name + "\n"
		if b.Len()+len(line) > MaxCatalogue-64 {
			fmt.Fprintf(&b, "- and %d more, not listed\n", len(skills)-i)
			break
		}
		b.WriteString(line)
	}
	return b.String()
}
