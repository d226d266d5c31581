package judgement

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/test/kit/live"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// A write is shown as the diff that it makes, with the digest of the file before. If the file
// changes meanwhile so that the diff is another one, the approved call does not run; a change
// elsewhere in the file makes no difference.
func TestModesApprovalOfAWrite(t *testing.T) {
	t.Parallel()
	before := "1\n2\n3\n4\nold\n6\n7\n8\n9\n"
	for name, c := range map[string]struct {
		meanwhile string
		want      string
	}{
		"unchanged":         {before, "1\n2\n3\n4\nnew\n6\n7\n8\n9\n"},
		"changed elsewhere": {"0\n" + before, "0\n1\n2\n3\n4\nnew\n6\n7\n8\n9\n"},
		"changed around":    {strings.Replace(before, "6", "six", 1), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			edit := live.Call("edit_file", live.Args{"path": "a.txt", "old": "old", "new": "new"})
			r := live.Prepare(t, jitScript(live.Calls(edit)))
			r.Write("a.txt", before)
			parked := jitBegin(r, modesAsk, modesPolicy(&harnessv1.ToolRule{Name: "edit_file", Policy: modesAsks})).Wait()
			parked.Want("PARKED approval")
			id := modesWaiting(r)
			files := parked.Result.GetPending()[0].GetPreview().GetFiles()
			const diff = "@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-old\n+new\n 6\n 7\n 8\n"
			if len(files) != 1 || files[0].GetPath() != "a.txt" || files[0].GetBefore() != content.Digest([]byte(before)) || files[0].GetDiff().GetInline() != diff {
				t.Fatalf("the preview is %v", files)
			}
			r.Write("a.txt", c.meanwhile)
			modesApprove(r, parked, modesOnce, "")
			s := r.Wait()
			s.Want("DONE agent_done accepted")
			if c.want == "" {
				modesSays(t, "the result", jitResult(s, id), "changed since")
				c.want = c.meanwhile
			}
			if got := modesRead(t, r, "a.txt"); got != c.want {
				t.Errorf("the file is %q, want %q", got, c.want)
			}
		})
	}
}

func modesRead(t *testing.T, r *live.Run, path string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(r.Dir, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
