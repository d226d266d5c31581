package agentfile

import (
	"path/filepath"

	"go.yaml.in/yaml/v3"
)

// skills reads the folders with skills. A path is relative to the directory of the file.
func (d *decoder) skills(file *File, key, value *yaml.Node) {
	d.field(file.Agent.ProtoReflect(), key, value, "spec.agent.skills")
	for i, folder := range file.Agent.GetSkills() {
		if !filepath.IsAbs(folder) {
			folder = filepath.Join(d.dir, folder)
		}
		if absolute, err := filepath.Abs(folder); err == nil {
			file.Agent.Skills[i] = absolute
		}
	}
}
