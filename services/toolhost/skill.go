package toolhost

import (
	"errors"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/harnessmesh/harnessmesh/pkg/tool"
	"github.com/harnessmesh/harnessmesh/pkg/tool/dialect"
)

// SkillFile is the file that makes a folder a skill.
const SkillFile = "SKILL.md"

// Bounds of skills: of a description in bytes, and of the head of a SKILL.md.
const (
	maxSkillDescription = 1024
	maxSkillHead        = 16 << 10
)

// ParseSkill returns the name and the description of a skill, and its text without the front
// matter. folder is the name of its folder, which is the name of a skill that has none.
func ParseSkill(folder, text string) (name, description, body string, err error) {
	head, body, found := strings.Cut(strings.TrimPrefix(strings.ReplaceAll(text, "\r\n", "\n"), "\ufeff"), "\n---\n")
	if !found {
		if short, ended := strings.CutSuffix(strings.TrimRight(text, "\n"), "\n---"); ended {
			head, found = short, true
		}
	}
	head, opened := strings.CutPrefix(head, "---\n")
	if !found || !opened || len(head) > maxSkillHead {
		return "", "", "", errors.New("its SKILL.md has no front matter: begin it with --- and name and description")
	}
	var front struct {
		Name        string `yaml:"name"`
		Description string `yaml:"description"`
	}
	if err := yaml.Unmarshal([]byte(head), &front); err != nil {
		return "", "", "", errors.New("its front matter is not YAML")
	}
	if front.Name == "" {
		front.Name = folder
	}
	if !tool.ValidName(front.Name) {
		return "", "", "", errors.New("its name must match [A-Za-z0-9_-]{1,64}")
	}
	description = strings.Join(strings.Fields(dialect.Text(front.Description, maxSkillDescription)), " ")
	if description == "" {
		return "", "", "", errors.New("it has no description")
	}
	return front.Name, description, strings.TrimSpace(body), nil
}
