package gcrate

import (
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// unlimited is a limit that no machine reaches: version 1 of control groups has no word
// for none, and reports the largest number of whole pages.
const unlimited = 1 << 60

// containerLimit returns the least memory limit, in bytes, of the control groups that
// this process is in, versions 1 and 2 (cgroups(7); the kernel's cgroup-v2 and
// cgroup-v1/memory). ok is false without a limit, and where there are no control groups.
// root is the root of the file system.
func containerLimit(root fs.FS) (limit int64, ok bool) {
	groups, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return 0, false
	}
	mounts, err := fs.ReadFile(root, "proc/self/mountinfo")
	if err != nil {
		return 0, false
	}
	limit = unlimited
	for line := range strings.Lines(string(mounts)) {
		m, isGroup := parseMount(line)
		if !isGroup {
			continue
		}
		if own, found := groupOf(string(groups), m.version); found {
			limit = min(limit, m.least(root, own))
		}
	}
	return limit, limit < unlimited
}

// mount is a mounted hierarchy of control groups that limits memory.
type mount struct {
	version int
	// group is the control group that is mounted at point.
	group, point string
}

// parseMount reads a line of mountinfo: ID PARENT DEVICE ROOT POINT OPTIONS [TAGS] - TYPE
// SOURCE SUPER (proc_pid_mountinfo(5)).
func parseMount(line string) (m mount, ok bool) {
	before, after, _ := strings.Cut(line, " - ")
	place, kind := strings.Fields(before), strings.Fields(after)
	const rootField, pointField, superField = 3, 4, 2
	if len(place) <= pointField || len(kind) <= superField {
		return mount{}, false
	}
	m = mount{group: unescape(place[rootField]), point: unescape(place[pointField])}
	switch kind[0] {
	case "cgroup2":
		m.version = 2
	case "cgroup":
		m.version = 1
	}
	return m, m.version == 2 || m.version == 1 && slices.Contains(strings.Split(kind[superField], ","), "memory")
}

// unescape replaces the octal escapes of mountinfo for white space and backslashes.
func unescape(s string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(s)
}

// groupOf returns the control group of the process: of the line 0::PATH in version 2, of
// that with the controller memory in version 1.
func groupOf(groups string, version int) (group string, ok bool) {
	for line := range strings.Lines(groups) {
		id, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ":")
		controllers, group, found := strings.Cut(rest, ":")
		if !found {
			continue
		}
		if version == 2 && id == "0" && controllers == "" || version == 1 && slices.Contains(strings.Split(controllers, ","), "memory") {
			return group, true
		}
	}
	return "", false
}

// least returns the least limit of a group and of the groups that contain it, as far as
// they are mounted. A group outside of the mount counts as the mounted one: the process
// then is in a namespace of control groups.
func (m mount) least(root fs.FS, group string) int64 {
	inside, ok := strings.CutPrefix(path.Clean("/"+group), strings.TrimSuffix(m.group, "/"))
	if !ok || strings.Contains(group, "..") || inside != "" && inside[0] != '/' {
		inside = ""
	}
	limit := int64(unlimited)
	for dir := path.Join("/", m.point, inside); ; dir = path.Dir(dir) {
		limit = min(limit, m.limit(root, strings.TrimPrefix(dir, "/")))
		if len(dir) <= len(path.Clean(m.point)) || dir == "/" {
			return limit
		}
	}
}

// limit returns the limit of one group; unlimited if it has none.
func (m mount) limit(root fs.FS, dir string) int64 {
	if m.version == 2 {
		return readLimit(root, path.Join(dir, "memory.max"), "")
	}
	// The second one also has the limits of groups that are not mounted.
	return min(readLimit(root, path.Join(dir, "memory.limit_in_bytes"), ""), readLimit(root, path.Join(dir, "memory.stat"), "hierarchical_memory_limit "))
}

// readLimit reads the number of a file, or of its line that begins with prefix.
func readLimit(root fs.FS, name, prefix string) int64 {
	text, err := fs.ReadFile(root, name)
	if err != nil {
		return unlimited
	}
	for line := range strings.Lines(string(text)) {
		number, found := strings.CutPrefix(line, prefix)
		if !found {
			continue
		}
		limit, err := strconv.ParseInt(strings.TrimSpace(number), 10, 64)
		if err != nil || limit <= 0 {
			return unlimited // max
		}
		return limit
	}
	return unlimited
}
