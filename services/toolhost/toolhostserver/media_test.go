package toolhostserver

import (
	"context"
	"image/color"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/media"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/tools"
	"github.com/harnessmesh/harnessmesh/test/kit/mediatest"
)

func TestReadFileShowsImagesAndDocuments(t *testing.T) {
	if testing.Short() {
		t.Skip("reads the largest sizes")
	}
	t.Parallel()
	h := newHost(t, Config{})
	h.write("img/chart.txt", string(mediatest.PNG(mediatest.Noise(30, 20)))) // the name does not matter
	h.write("wide.png", string(mediatest.PNG(mediatest.Plain(4000, 3000, color.White))))
	h.write("report.pdf", string(mediatest.PDF(40)))
	for _, c := range []struct{ path, says, kind, extent string }{
		{"img/chart.txt", "image/png 30×20, ", media.PNG, "30×20"},
		{"wide.png", "image/png 2000×1500, ", media.PNG, "2000×1500"},
		{"report.pdf", "application/pdf 40 pages, ", media.PDF, "40 pages"},
	} {
		resp := h.call(tools.ReadFile, map[string]any{"path": c.path})
		if len(resp.GetMedia()) != 1 || resp.GetIsError() {
			t.Fatalf("%s: %v with %d files", c.path, resp.GetResult(), len(resp.GetMedia()))
		}
		m := resp.GetMedia()[0]
		if !media.Accepted(m) || m.GetType() != c.kind || media.Extent(m) != c.extent || m.GetName() != c.path || m.GetBlob() != nil {
			t.Errorf("%s: %s %s named %q", c.path, m.GetType(), media.Extent(m), m.GetName())
		}
		if want := c.says + strconv.Itoa(len(m.GetData())) + " bytes"; resp.GetResult() != want {
			t.Errorf("%s: %q, want %q", c.path, resp.GetResult(), want)
		}
	}
}

func TestReadFileSaysWhyAFileIsNotShown(t *testing.T) {
	t.Parallel()
	h := newHost(t, Config{})
	outside := filepath.Join(t.TempDir(), "secret.png")
	if err := os.WriteFile(outside, mediatest.PNG(mediatest.Noise(3, 3)), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(h.dir, "link.png")); err != nil {
		t.Fatal(err)
	}
	chart := mediatest.PNG(mediatest.Noise(30, 20))
	h.write("bomb.png", string(mediatest.PNGHeader(50_000, 50_000)))
	h.write("half.png", string(chart[:len(chart)/2]))
	h.write("locked.pdf", string(mediatest.EncryptedPDF(1)))
	h.write("long.pdf", string(mediatest.PDF(101)))
	h.write("large.png", string(chart)+strings.Repeat("\x00", media.MaxData))
	h.write("data.bin", "\x00\x01")
	for path, says := range map[string]string{
		"bomb.png":   "bomb.png: the image has 50000×50000 pixels, 2500 megapixels; expected at most 50; scale it down first.",
		"half.png":   "half.png: the PNG image is damaged or truncated: ",
		"locked.pdf": "locked.pdf: the PDF is encrypted; remove its password first.",
		"long.pdf":   "long.pdf: the PDF has more than 100 pages; split it.",
		"large.png":  "large.png: the file is larger than 20 MB.",
		"link.png":   "link.png: ",
		outside:      outside + ": ",
		"data.bin":   "data.bin: is a binary file of 2 bytes",
	} {
		resp := h.call(tools.ReadFile, map[string]any{"path": path})
		if !resp.GetIsError() || len(resp.GetMedia()) > 0 || !strings.HasPrefix(resp.GetResult(), says) || strings.Contains(resp.GetResult(), "\n") {
			t.Errorf("%s: %q with %d files, want the error %q", path, resp.GetResult(), len(resp.GetMedia()), says)
		}
	}
	h.write("notes.txt", "A PDF begins with\n%PDF-1.7\n")
	if resp := h.call(tools.ReadFile, map[string]any{"path": "notes.txt"}); resp.GetResult() != "A PDF begins with\n%PDF-1.7\n" {
		t.Errorf("a text about PDF is %q", resp.GetResult())
	}
}

// TestMediaAreInTheLedger repeats calls whose file is gone: a call that is cached, and one
// of a tool that must not run again, on the next host.
func TestMediaAreInTheLedger(t *testing.T) {
	t.Parallel()
	shots := 0
	shoot := tools.New(&harnessv1.ToolSpec{
		Name: "shoot", Origin: harnessv1.ToolOrigin_TOOL_ORIGIN_TOOL_HOST, Description: "Takes a screenshot.",
		ParametersSchema: `{"type":"object"}`, Annotations: &harnessv1.ToolAnnotations{Durability: harnessv1.Durability_DURABILITY_ANCHORING},
	}, func(context.Context, *tools.Environment, struct{}) tools.Result {
		shots++
		m, data, err := media.Check("shot", mediatest.PNG(mediatest.Noise(30+shots, 20)))
		if err != nil {
			return tools.Failed(err.Error())
		}
		m.Data = data
		return tools.Result{Text: "taken", Media: []*harnessv1.Media{m}}
	})
	dir := t.TempDir()
	h := newHost(t, Config{Dir: dir, Tools: append(tools.All(), shoot)})
	h.write("a.png", string(mediatest.PNG(mediatest.Noise(9, 7))))
	read, shot := h.request(tools.ReadFile, "c1", map[string]any{"path": "a.png"}), h.request("shoot", "c2", map[string]any{})
	first, taken := h.execute(read), h.execute(shot)
	if err := os.Remove(filepath.Join(h.dir, "a.png")); err != nil {
		t.Fatal(err)
	}
	if again := h.execute(read); len(first.GetMedia()) != 1 || !proto.Equal(first, again) {
		t.Errorf("the call again: %v with %d files", again.GetResult(), len(again.GetMedia()))
	}
	if err := h.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	next := newHost(t, Config{Dir: dir, Tools: append(tools.All(), shoot)})
	if again := next.execute(shot); len(taken.GetMedia()) != 1 || !proto.Equal(taken, again) || shots != 1 {
		t.Errorf("%d shots, the call again: %v with %d files", shots, again.GetResult(), len(again.GetMedia()))
	}
}
