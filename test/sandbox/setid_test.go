//go:build linux

package sandbox

import (
	"strings"
	"sync"
	"testing"

	"github.com/harnessmesh/harnessmesh/test/sandbox/job"
)

// ordinary are command lines that set set-group-ID of folders, or keep it. Each ends with 0.
var ordinary = map[string]string{
	"git init --shared":                     `git init -q --shared a && test -g a/.git/objects && cd a && git -c user.name=a -c user.email=a commit -q --allow-empty -m m && git gc -q`,
	"cp -a of a folder":                     `mkdir a && chmod 2775 a && mkdir a/b && touch a/b/c && cp -a a copy && test -g copy && test -g copy/b && test ! -g copy/b/c`,
	"tar -p of a folder":                    `mkdir a && chmod 2775 a && touch a/b && tar -cf t a && mkdir out && tar -xpf t -C out && test -g out/a`,
	"modes in a folder":                     `mkdir a && chmod 2775 a && mkdir a/b && chmod 755 a/b && test -g a/b && touch a/c && chmod 755 a/c && chmod -R g+w a && chmod g-s a && test ! -g a`,
	"modes by a path up and from the root":  `mkdir -p a/b && cd a/b && chmod g+s .. ../b "$PWD/../../a/b" && test -g ../../a && test -g . && ln -s "$PWD" ../link && chmod g+s ../link && cd / && chmod g+s "$OLDPWD"`,
	"modes of a folder that is a link away": `mkdir a && ln -s a b && chmod g+s b && test -g a`,
	"install -d":                            `install -d -m 2755 a/b && test -g a/b`,
	"rename during a change":                `mkdir a && (cd a && mv ../a ../b && chmod g+s . && test -g ../b)`,
	"modes by Python":                       `! command -v python3 >/dev/null || python3 -c 'import os; os.mkdir("a"); os.chmod("a", 0o2770); d = os.open("a", os.O_RDONLY); os.fchmod(d, 0o2750); os.mkdir("a/b"); os.chmod("b", 0o2700, dir_fd=d); assert os.stat("a/b").st_mode & 0o2000 and os.stat("a").st_mode & 0o2000'`,
	"a file that is no longer what it was":  `mkdir a && touch f && ! chmod g+s f 2>e && grep -q 'not permitted' e && test ! -g f && ! chmod g+s nothing 2>e && grep -q 'No such file' e && chmod 2755 a`,
	"files as before":                       `touch f && chmod 755 f && chmod +t . && cp -p f g && install -m 755 f h && mktemp ./XXXXXX >/dev/null && mkfifo p && test -x f`,
}

// TestFoldersKeepSetGroupID: what sets the bit of folders works at each level as outside, and
// files do not get it.
func TestFoldersKeepSetGroupID(t *testing.T) {
	if testing.Short() {
		t.Skip("builds programs")
	}
	t.Parallel()
	abi, full := levels(t)
	var hosts sync.WaitGroup
	for _, user := range usersHere() {
		h := startHost(t, user, "")
		hosts.Go(func() {
			for _, level := range []string{"kernel", "full"} {
				for name, line := range ordinary {
					if level == "full" && !full {
						continue
					}
					got, err := h.do(job.Job{Level: level, ABI: abi, Line: "umask 022; set -e; " + line})
					if err != nil || got.Code != 0 {
						t.Errorf("%s as %s at %s: %v, exit code %d: %s", name, user, level, err, got.Code, got.Output)
					}
				}
			}
		})
	}
	hosts.Wait()
}

// TestNoListenerRefusesSetGroupID: where no listener can decide, folders do not get the bit
// either.
func TestNoListenerRefusesSetGroupID(t *testing.T) {
	if testing.Short() {
		t.Skip("builds programs")
	}
	t.Parallel()
	abi, full := levels(t)
	for _, user := range usersHere() {
		h := startHost(t, user, "guards")
		for _, level := range []string{"kernel", "full"} {
			if level == "full" && !full {
				continue
			}
			got, err := h.do(job.Job{Level: level, ABI: abi, LeaveOut: []string{"listener"}, Line: `umask 022; touch f; mkdir a; ! chmod g+s f && ! chmod g+s a && chmod 755 f a && test ! -g f && test ! -g a`})
			if err != nil || got.Code != 0 || strings.Count(got.Output, "not permitted") != 2 {
				t.Errorf("as %s at %s: %v, exit code %d: %s", user, level, err, got.Code, got.Output)
			}
		}
	}
}
