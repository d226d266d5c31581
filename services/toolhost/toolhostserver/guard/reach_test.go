package guard

import (
	"path/filepath"
	"testing"
)

// TestARepositoryElsewhereIsComparedWhereTheCallCanWrite: another may change one that the workspace names and that the call
// cannot write.
func TestARepositoryElsewhereIsComparedWhereTheCallCanWrite(t *testing.T) {
	const settings, planted = "[core]\n\tbare = false\n", "[core]\n\tfsmonitor = ./run\n"
	elsewhere := map[string]string{"other/.git/HEAD": "ref: refs/heads/main\n", "other/.git/objects/": "", "other/.git/refs/": "", "other/.git/config": settings}
	for name, c := range map[string]struct {
		workspace map[string]string
		folder    string // the workspace; empty: work
		changed   string // the file that changes; empty: other/.git/config
		was       string // its content; empty: settings
		isOwn     bool   // the folder elsewhere is for the workspace
	}{
		"file":         {workspace: map[string]string{"work/.git": "gitdir: ../other/.git\n"}},
		"link":         {workspace: map[string]string{"work/.git": "->../other/.git"}},
		"commondir":    {workspace: map[string]string{"work/.git/HEAD": "ref: refs/heads/main\n", "work/.git/commondir": "../../other/.git\n"}},
		"lower folder": {workspace: map[string]string{"work/a/b/.git": "gitdir: ../../../other/.git\n"}},
		"include": {
			workspace: map[string]string{"work/.git/HEAD": "ref: refs/heads/main\n", "work/.git/objects/": "", "work/.git/refs/": "", "work/.git/config": "[include]\n\tpath = ../../other/.git/config\n"},
		},
		"hooks": {
			workspace: map[string]string{
				"work/.git/HEAD": "ref: refs/heads/main\n", "work/.git/objects/": "", "work/.git/refs/": "", "work/.git/config": "[core]\n\thooksPath = ../other/hooks\n",
				"other/hooks/pre-commit": "#!/bin/sh\n",
			},
			changed: "other/hooks/pre-commit", was: "#!/bin/sh\n",
		},
		"above": {workspace: map[string]string{"other/work/": ""}, folder: "other/work"},
		"worktree": {
			workspace: map[string]string{
				"work/.git": "gitdir: ../other/.git/worktrees/w\n", "other/.git/worktrees/w/gitdir": "../../../../work/.git\n",
				"other/.git/worktrees/w/commondir": "../..\n", "other/.git/worktrees/w/HEAD": "ref: refs/heads/w\n",
			},
			isOwn: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, of := range []struct {
				who   string
				reach func(dir string) Reach
				holds bool
			}{
				{"confined", func(string) Reach { return Reach{} }, c.isOwn},
				{"with the folder", func(dir string) Reach { return Reach{Folders: []string{filepath.Join(dir, "other")}} }, true},
				{"unconfined", func(string) Reach { return Reach{Everywhere: true} }, true},
			} {
				dir, err := filepath.EvalSymlinks(t.TempDir())
				if err != nil {
					t.Fatal(err)
				}
				write(t, dir, elsewhere)
				write(t, dir, c.workspace)
				folder, changed, was := "work", "other/.git/config", settings
				if c.folder != "" {
					folder = c.folder
				}
				if c.changed != "" {
					changed, was = c.changed, c.was
				}
				w, err := newGuard(t).Start(filepath.Join(dir, folder), of.reach(dir))
				if err != nil {
					t.Fatal(err)
				}
				write(t, dir, map[string]string{changed: planted})
				note := w.End()
				want := planted
				if of.holds {
					want = was
				}
				if got := read(t, filepath.Join(dir, changed)); got != want {
					t.Errorf("%s: %s is %q, want %q", of.who, changed, got, want)
				}
				if (note != "") != of.holds {
					t.Errorf("%s: the note is %q", of.who, note)
				}
			}
		})
	}
}
