package script

// Load reads the script in a regular file of this machine. An error names the file and
// the line: "a.yaml:3: …".
func Load(path string) (*Script, error) { return Files{}.Load(path) }
