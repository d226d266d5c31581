package toolhost

import (
	"slices"
	"strings"
	"testing"
)

func TestGitFolder(t *testing.T) {
	for content, want := range map[string]string{
		"gitdir: ../.git/modules/x\n": "../.git/modules/x", "gitdir:/a b/c\n": "/a b/c", "": "", "[core]": "", "gitdir: a\x00b": "",
	} {
		if got := GitFolder(content); got != want {
			t.Errorf("%q: got %q", content, got)
		}
	}
}

func TestGitConfigCopiesOnlyHowFilesAreStored(t *testing.T) {
	theirs := "[core]\n\tFileMode = false\n\tfsmonitor = evil\n[extensions]\n\tobjectFormat = sha256\n\tpartialClone = evil\n" +
		"[filter \"evil\"]\n\tclean = evil\n[include]\n\tpath = evil\n"
	config, err := GitConfig(theirs)
	if err != nil || strings.Contains(config, "evil") || !strings.Contains(config, "filemode = false") || !strings.Contains(config, "objectformat = sha256") {
		t.Fatalf("got %q, %v", config, err)
	}
	config, err = GitConfig("[core]\n\tfilemode = true\n[x]\n\ty = objectformat = sha256\n")
	if err != nil || strings.Contains(config, "filemode") || strings.Contains(config, "sha256") {
		t.Fatalf("got %q, %v", config, err)
	}
	if _, err := GitConfig("[extensions]\n\trefStorage = reftable\n"); err == nil {
		t.Fatal("references that cannot be read are taken for none")
	}
}

func TestParseGitStatus(t *testing.T) {
	const output = " M a\x00?? dir/with \"name\"\x00A  dir/deep/b\x00D  directory/c\x00garbage\x00?? dir/cut o"
	for folder, want := range map[string][]string{
		".":   {"a", "dir/with \"name\"", "dir/deep/b", "directory/c"},
		"dir": {"with \"name\"", "deep/b"}, "dir/deep": {"b"}, "none": nil,
	} {
		if got := ParseGitStatus(output, folder); !slices.Equal(got, want) {
			t.Errorf("%s: got %q", folder, got)
		}
	}
}
