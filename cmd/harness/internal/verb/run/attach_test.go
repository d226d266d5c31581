package run_test

import (
	"fmt"
	"image/color"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/harnesstest"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/media"
	"github.com/harnessmesh/harnessmesh/test/kit/mediatest"
)

// written writes a file into a directory and returns its path.
func written(t *testing.T, dir, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// attached lists the files of a request, in a few words each.
func attached(list []*harnessv1.Media) string {
	var words []string
	for _, m := range list {
		if media.TypeOf(m.GetData()) == m.GetType() {
			words = append(words, fmt.Sprintf("%s %s %s", m.GetName(), m.GetType(), media.Extent(m)))
		}
	}
	return strings.Join(words, ", ")
}

func TestAttach(t *testing.T) {
	t.Parallel()
	dir := t.TempDir() // outside of any workspace: the files are the user's own
	wide := written(t, dir, "wide, with a comma.png", mediatest.PNG(mediatest.Plain(4000, 10, color.White)))
	report := written(t, dir, "report", mediatest.PDF(3))
	const both = "wide, with a comma.png image/png 2000×5, report application/pdf 3 pages"
	for name, args := range map[string][]string{
		"run":                         {"run", "--attach", wide, "--attach", report, "Look."},
		"run --continue":              {"run", "--continue", "r", "--attach", wide, "--attach", report, "Look."},
		"run --continue without text": {"run", "--continue", "r", "--attach", wide, "--attach", report},
		"send":                        {"send", "r", "--attach", wide, "--attach", report, "Look."},
		"send without text":           {"send", "r", "--attach=" + wide, "--attach", report},
		"send with a mode":            {"send", "r", "--mode", "plan", "--attach", wide, "--attach", report},
	} {
		t.Run(name, func(t *testing.T) {
			f := harnesstest.ServeGateway(t)
			f.Add("r", "default", harnesstest.ASpec())
			if strings.HasPrefix(name, "run --continue") {
				f.Took = func(r *harnesstest.Run, id string, _ proto.Message) {
					r.Accept(id, "message")
					r.Done()
				}
			}
			if got := harnesstest.Call(t, nil, "", append(args, "--server", f.Address)...); got.Code != 0 {
				t.Fatalf("%+v", got)
			}
			var list []*harnessv1.Media
			for _, input := range f.Inputs {
				if m, ok := input.(*harnessv1.UserMessage); ok {
					list = append(list, m.GetMedia()...)
				}
			}
			for _, start := range f.Starts {
				list = append(list, start.GetSpec().GetMedia()...)
			}
			if got := attached(list); got != both {
				t.Errorf("sent %s, want %s", got, both)
			}
		})
	}
}

func TestAttachErrorsNameTheFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	text := written(t, dir, "a.png", []byte("text"))
	bomb := written(t, dir, "bomb.png", mediatest.PNGHeader(50_000, 50_000))
	locked := written(t, dir, "locked.pdf", mediatest.EncryptedPDF(1))
	large := written(t, dir, "large.pdf", nil)
	if err := os.Truncate(large, media.MaxData+1); err != nil {
		t.Fatal(err)
	}
	document := written(t, dir, "long.pdf", append(mediatest.PDF(1), make([]byte, 15<<20)...))
	small := written(t, dir, "small.png", mediatest.PNG(mediatest.Noise(3, 3)))
	for _, test := range []struct {
		files []string
		want  string
	}{
		{[]string{text}, text + ": unknown type; expected a PNG, JPEG, GIF, WebP or PDF file"},
		{[]string{small, bomb}, bomb + ": the image has 50000×50000 pixels, 2500 megapixels; expected at most 50; scale it down first"},
		{[]string{locked}, locked + ": the PDF is encrypted; remove its password first"},
		{[]string{large}, large + ": the file is larger than 20 MB"},
		{[]string{dir}, dir + ": not a regular file"},
		{[]string{os.DevNull}, os.DevNull + ": not a regular file"},
		{[]string{""}, ": missing file"},
		{[]string{document, document}, document + ": the files are larger than 28 MB together; send some with another message"},
	} {
		for _, verb := range [][]string{{"run", "go"}, {"send", "r", "go"}} {
			args := append(verb, "--server", "127.0.0.1:1")
			for _, f := range test.files {
				args = append(args, "--attach", f)
			}
			got := harnesstest.Call(t, nil, "", args...)
			if want := "harness: --attach " + test.want + "\n"; got.Code != 1 || got.Out != "" || got.Err != want {
				t.Errorf("%q: code %d, stderr %q; want %q", args, got.Code, got.Err, want)
			}
		}
	}
	many := []string{"send", "r", "--server", "127.0.0.1:1"}
	for range 21 {
		many = append(many, "--attach", small)
	}
	for _, test := range []struct {
		args []string
		want string
	}{
		{many, "harness: --attach: 21 files; expected at most 20\n"},
		{[]string{"run", "go", "--attach", dir + "/none"}, "harness: --attach: " + dir + "/none does not exist: correct the path, or create the file\n"},
		{[]string{"send", "r", "go", "--attach", dir + "/none"}, "harness: --attach: " + dir + "/none does not exist: correct the path, or create the file\n"},
		{[]string{"send", "r", "--replan", "--attach", small}, "harness: --attach: not supported with --replan, which sends no message\n"},
		{[]string{"run", "--attach", small}, "harness: GOAL is missing: write it after the flags, or - to read it from stdin\n"},
	} {
		if got := harnesstest.Call(t, nil, "", test.args...); got.Code != 1 || got.Err != test.want {
			t.Errorf("%q: code %d, stderr %q; want %q", test.args, got.Code, got.Err, test.want)
		}
	}
}
