package confinement_test

import (
	"testing"

	"github.com/harnessmesh/harnessmesh/services/toolhost/confinement"
)

// TestRefusedPathsAreNamed, as programs report it, and nothing else.
func TestRefusedPathsAreNamed(t *testing.T) {
	reach := confinement.Reach{Read: []string{"/usr", "/home/me/.cargo/bin"}, Write: []string{"/home/me/project", "/data/r/home"}}
	const ask = " If the task needs this, repeat the call with unconfined and the reason: a person decides about it."
	for output, want := range map[string]string{
		"cat: /home/me/.netrc: No such file or directory\n":                                               "The sandbox does not let commands reach /home/me/.netrc." + ask,
		"sh: 1: cannot create /home/me/x: Permission denied\n":                                            "The sandbox does not let commands reach /home/me/x." + ask,
		"open '/srv/a b': no":                                                                             "",
		"Error: ENOENT: no such file or directory, open '/srv/data.json'":                                 "The sandbox does not let commands reach /srv/data.json." + ask,
		"PermissionError: [Errno 13] Permission denied: '/root/.ssh/id'":                                  "The sandbox does not let commands reach /root/.ssh/id." + ask,
		"touch: cannot touch '/usr/lib/x': Read-only file system":                                         "In the sandbox commands can read but not change /usr/lib/x." + ask,
		"cat: /usr/lib/x: No such file or directory":                                                      "",
		"cat: /home/me/project/x: No such file or directory":                                              "",
		"ls: cannot open directory '/home': Permission denied":                                            "",
		"/srv/data.json\n/srv/other.json":                                                                 "",
		"cat: x.txt: Permission denied":                                                                   "",
		"stat /run/docker.sock: no such file or directory":                                                "The sandbox does not let commands reach /run/docker.sock." + ask,
		"curl: (6) Could not resolve host: example.com":                                                   "Commands of this run have no network." + ask,
		"dial tcp 93.184.216.34:443: socket: operation not permitted":                                     "Commands of this run have no network." + ask,
		"a: /1: Permission denied\nb: /2: Permission denied\n/3: Permission denied /4\n/1: not permitted": "The sandbox does not let commands reach /1, /2, /3." + ask,
	} {
		if got := reach.Refused(output, true); got != want {
			t.Errorf("%q: got %q, want %q", output, got, want)
		}
	}
	const lost = "curl: (6) Could not resolve host: example.com"
	reach.Asks = true
	if got := reach.Refused(lost, true); got != "Commands of this run have no network. If the task needs it, repeat the call with the hosts: a person decides about it." {
		t.Errorf("where a call can ask for hosts: %q", got)
	}
	reach.Proxy = true
	if got := reach.Refused(lost, true); got != "Commands of this run reach hosts through the proxy in HTTPS_PROXY alone, and this program did not use it." {
		t.Errorf("with a proxy: %q", got)
	}
	reach.Internet = true
	if got := reach.Refused(lost, true); got != "" {
		t.Errorf("with network: %q", got)
	}
	if got := reach.Refused("cat: /srv/x: Permission denied", false); got != "The sandbox does not let commands reach /srv/x." {
		t.Errorf("where nothing runs outside: %q", got)
	}
}
