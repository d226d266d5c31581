package toolhost

import (
	"errors"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/tool"
	"github.com/harnessmesh/harnessmesh/pkg/tool/dialect"
)

// SkillFile is the file that makes a folder a skill.
const SkillFile = "SKILL.md"

// Bounds of skills: of a description in bytes, and of the head of a SKILL.md.
const (
	maxSkillDescription = 1024
	maxSkillHead        = 16 << 10
	// maxSkillProblem is the size up to which the problem of a parser is shown.
	maxSkillProblem = 120
)

// ParseSkill returns the name and the description of a skill, and its text without the front
// matter. folder is the name of its folder, which is the name of a skill that has none. Front matter that is not
// closed ends at the first line that has no key and is not indented; where it is not YAML, name and description are
// what follows their keys.
func ParseSkill(folder, text string) (name, description, body string, err error) {
	head, body, err := cutFrontMatter(text)
	if err != nil {
		return "", "", "", err
	}
	var front struct {
		Name        string `yaml:"name"`
		Description string `yaml:"description"`
	}
	if problem := yaml.Unmarshal([]byte(head), &front); problem != nil {
		values := keyLines(head)
		front.Name, front.Description = values["name"], values["description"]
		if front.Description == "" {
			return "", "", "", fmt.Errorf("its front matter is not YAML (%s), and no line begins with \"description: \"",
				content.Line(content.Clean(strings.TrimPrefix(problem.Error(), "yaml: ")), maxSkillProblem))
		}
	}
	if front.Name = strings.TrimSpace(front.Name); front.Name == "" {
		front.Name = folder
	}
	if !tool.ValidName(front.Name) {
		return "", "", "", errors.New("its name must match [A-Za-z0-9_-]{1,64}")
	}
	description = strings.Join(strings.Fields(dialect.Text(front.Description, maxSkillDescription)), " ")
	if description == "" {
		return "", "", "", errors.New("it has no description: add a line \"description: ...\" to its front matter")
	}
	return front.Name, description, strings.TrimSpace(body), nil
}

// keyLine is a line of front matter with a key. A text of Markdown that has one after a blank line is rare.
var keyLine = pattern(`^([A-Za-z][A-Za-z0-9_-]*)[ \t]*:([ \t]+(.*))?$`)

// cutFrontMatter returns the front matter of a SKILL.md and what follows it. Its line ends are "\n".
func cutFrontMatter(text string) (head, body string, err error) {
	text = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(strings.TrimPrefix(text, bom))
	text = strings.TrimLeft(text, "\ufeff \t\n")
	lines := strings.Split(text, "\n")
	first := 1
	if !isFence(lines[0]) {
		if m := keyLine().FindStringSubmatch(lines[0]); m == nil || m[1] != "name" && m[1] != "description" {
			return "", "", errors.New("its SKILL.md has no front matter: begin it with --- and name and description")
		}
		first = 0
	}
	end, next := frontMatterEnd(lines, first)
	head = strings.Join(lines[first:end], "\n")
	if len(head) > maxSkillHead {
		return "", "", fmt.Errorf("the front matter of its SKILL.md has more than %d bytes", maxSkillHead)
	}
	return strings.ReplaceAll(head, "\t", "  "), strings.Join(lines[min(next, len(lines)):], "\n"), nil
}

// frontMatterEnd returns the end of the front matter that begins with a line, and the line that follows it. Without a line
// that closes it, and where one closes a text as well, it ends where its keys end.
func frontMatterEnd(lines []string, first int) (end, next int) {
	keys, text := first, false
	for i := first; i < len(lines); i++ {
		line := lines[i]
		switch {
		case isFence(line) || line == "...":
			if text {
				return keys, keys
			}
			return i, i + 1
		case keyLine().MatchString(line) || i > first && strings.HasPrefix(line, "- ") || i > first && line != strings.TrimLeft(line, " \t"):
			if keys == i {
				keys++
			}
		case strings.TrimSpace(line) != "" && !strings.HasPrefix(line, "#"):
			text = keys > first
		}
	}
	return keys, keys
}

// isFence reports whether a line opens or closes front matter.
func isFence(line string) bool {
	line = strings.TrimRight(line, " \t")
	return len(line) >= 3 && strings.Trim(line, "-") == ""
}

// keyLines returns what follows the keys of front matter that is not YAML, with the lines that continue it.
func keyLines(head string) map[string]string {
	values := map[string]string{}
	key := ""
	for line := range strings.SplitSeq(head, "\n") {
		if m := keyLine().FindStringSubmatch(line); m != nil {
			if key = ""; values[m[1]] == "" {
				key = m[1]
				values[key] = unquote(strings.TrimSpace(m[3]))
			}
			continue
		}
		if key != "" && strings.HasPrefix(line, " ") {
			values[key] = strings.TrimSpace(values[key] + " " + strings.TrimSpace(line))
		}
	}
	return values
}

// unquote returns a value without quotes around it, and without the sign of a text of several lines.
func unquote(value string) string {
	switch value {
	case "|", ">", "|-", ">-", "|+", ">+":
		return ""
	}
	for _, quote := range []string{`"`, `'`} {
		if inner, ok := strings.CutPrefix(value, quote); ok {
			if short, ok := strings.CutSuffix(inner, quote); ok {
				return short
			}
		}
	}
	return value
}
