package gcrate

import (
	"testing"
	"testing/fstest"
)

// files makes a file system of names and contents.
func files(contents map[string]string) fstest.MapFS {
	root := fstest.MapFS{}
	for name, text := range contents {
		root[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return root
}

const (
	v2Mount = "31 23 0:28 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw\n"
	v1Mount = "30 23 0:28 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n35 31 0:32 / /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory\n"
)

// TestContainerLimit covers the layouts of control groups that container runtimes make.
func TestContainerLimit(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		want  int64 // 0: none
	}{
		"version 2 in a namespace": {map[string]string{
			"proc/self/cgroup": "0::/\n", "proc/self/mountinfo": v2Mount,
			"sys/fs/cgroup/memory.max": "536870912\n",
		}, 536870912},
		"version 2, the pod has less than the container": {map[string]string{
			"proc/self/cgroup": "0::/kubepods/pod1/c1\n", "proc/self/mountinfo": v2Mount,
			"sys/fs/cgroup/kubepods/pod1/c1/memory.max": "2000\n", "sys/fs/cgroup/kubepods/pod1/memory.max": "1000\n", "sys/fs/cgroup/kubepods/memory.max": "max\n",
		}, 1000},
		"version 2 without a limit": {map[string]string{
			"proc/self/cgroup": "0::/user.slice\n", "proc/self/mountinfo": v2Mount,
			"sys/fs/cgroup/user.slice/memory.max": "max\n",
		}, 0},
		"version 2, only the own group is mounted": {map[string]string{
			"proc/self/cgroup": "0::/docker/c1\n", "proc/self/mountinfo": "31 23 0:28 /docker/c1 /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
			"sys/fs/cgroup/memory.max": "77\n",
		}, 77},
		"version 2, a group above the namespace": {map[string]string{
			"proc/self/cgroup": "0::/../c2\n", "proc/self/mountinfo": v2Mount,
			"sys/fs/cgroup/memory.max": "78\n", "sys/fs/cgroup/c2/memory.max": "1\n",
		}, 78},
		"version 1": {map[string]string{
			"proc/self/cgroup": "9:name=systemd:/\n4:cpu,memory:/docker/c1\n0::/\n", "proc/self/mountinfo": v1Mount,
			"sys/fs/cgroup/memory/docker/c1/memory.limit_in_bytes": "1073741824\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
		}, 1073741824},
		"version 1, the own group is mounted, the limit is further up": {map[string]string{
			"proc/self/cgroup": "4:memory:/docker/c1\n", "proc/self/mountinfo": "35 31 0:32 /docker/c1 /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n", "sys/fs/cgroup/memory/memory.stat": "cache 0\nhierarchical_memory_limit 4096000\n",
		}, 4096000},
		"version 1 without a limit": {map[string]string{
			"proc/self/cgroup": "4:memory:/\n", "proc/self/mountinfo": v1Mount,
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
		}, 0},
		"both, memory in version 1": {map[string]string{
			"proc/self/cgroup": "4:memory:/a\n0::/b\n", "proc/self/mountinfo": v1Mount + "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n",
			"sys/fs/cgroup/memory/a/memory.limit_in_bytes": "5\n",
		}, 5},
		"a mount point with a space": {map[string]string{
			"proc/self/cgroup": "0::/\n", "proc/self/mountinfo": `31 23 0:28 / /sys/my\040groups rw - cgroup2 cgroup2 rw` + "\n",
			"sys/my groups/memory.max": "6\n",
		}, 6},
		"a name that only begins as the mounted one": {map[string]string{
			"proc/self/cgroup": "0::/docker/c11\n", "proc/self/mountinfo": "31 23 0:28 /docker/c1 /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
			"sys/fs/cgroup/memory.max": "7\n",
		}, 7},
		"no control groups": {map[string]string{}, 0},
		"garbage": {map[string]string{
			"proc/self/cgroup": "x\n\n0:", "proc/self/mountinfo": "1 2\n - cgroup2\n" + v2Mount, "sys/fs/cgroup/memory.max": "-1\n",
		}, 0},
	} {
		limit, ok := containerLimit(files(c.files))
		if ok != (c.want > 0) || ok && limit != c.want {
			t.Errorf("%s: limit %d, %t, want %d", name, limit, ok, c.want)
		}
	}
}

// TestReserve: the runtime gets less than the container has, at each shipped limit.
func TestReserve(t *testing.T) {
	for _, limit := range []int64{64 << 20, 512 << 20, 1 << 30, 4 << 30} {
		if got := goLimit(limit); got >= limit || got < limit*8/10 {
			t.Errorf("of %d bytes the runtime gets %d", limit, got)
		}
	}
}
