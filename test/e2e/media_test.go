package e2e

import (
	"bytes"
	"fmt"
	"image"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/harnessmesh/harnessmesh/pkg/media"
	"github.com/harnessmesh/harnessmesh/test/kit/mediatest"
	"github.com/harnessmesh/harnessmesh/test/kit/modeltest"
)

// viewer is a strict server that keeps the media and the texts of its requests.
type viewer struct {
	*modeltest.Server
	mu   sync.Mutex
	seen [][]modeltest.RequestMedia // by request
	text []string                   // by request
}

// newViewer starts a server that answers with replies in order.
func newViewer(t *testing.T, replies ...modeltest.Reply) *viewer {
	t.Helper()
	v := &viewer{}
	v.Server = modeltest.NewServerFunc(t, func(r *modeltest.Request) modeltest.Reply {
		var all []modeltest.RequestMedia
		var text strings.Builder
		for _, m := range r.Messages {
			all = append(all, m.Media...)
			text.WriteString(m.Content + "\n")
		}
		v.mu.Lock()
		defer v.mu.Unlock()
		v.seen, v.text = append(v.seen, all), append(v.text, text.String())
		return replies[min(len(v.seen), len(replies))-1]
	})
	return v
}

// environment is that of a process whose models are on the server.
func (v *viewer) environment() []string {
	return environment("OPENAI_BASE_URL="+v.BaseURL(), "ANTHROPIC_BASE_URL="+v.MessagesURL(), "GROQ_BASE_URL="+v.BaseURL())
}

// check fails the test if a request was refused.
func (v *viewer) check(t *testing.T) {
	t.Helper()
	for i, r := range v.Requests() {
		if r.Refused != "" {
			t.Errorf("request %d was refused: %s", i, r.Refused)
		}
	}
}

// TestMediaReachTheModel attaches a screenshot of 12 MB, and has the model read a document
// of 40 pages, on each wire.
func TestMediaReachTheModel(t *testing.T) {
	t.Parallel()
	checkMedia(t, map[string][]string{"chat": {"openai:gpt-4o"}, "responses": {"openai:gpt-5"}, "messages": {"anthropic:claude-haiku-4-5"}})
}

// TestSystemMediaReachTheModelPlain does it without streams.
func TestSystemMediaReachTheModelPlain(t *testing.T) {
	t.Parallel()
	checkMedia(t, map[string][]string{
		"chat": {"openai:gpt-4o", "--no-stream"}, "responses": {"openai:gpt-5", "--no-stream"}, "messages": {"anthropic:claude-haiku-4-5", "--no-stream"},
	})
}

// checkMedia checks what the models of each wire get, and what one gets that takes no media.
func checkMedia(t *testing.T, wires map[string][]string) {
	t.Helper()
	screenshot := mediatest.PNG(mediatest.Noise(2400, 1700))
	document := mediatest.PDF(40)
	if len(screenshot) < 12_000_000 {
		t.Fatalf("the screenshot has %d bytes, want 12 MB", len(screenshot))
	}
	attached := write(t, t.TempDir(), "screenshot.png", string(screenshot))
	for name, args := range wires {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := newViewer(t, calls(call("a", "read_file", `{"path":"report.pdf"}`)), complete)
			workspace := t.TempDir()
			write(t, workspace, "report.pdf", string(document))
			args := append([]string{"run", "--workspace", workspace, "--output", "json", "--attach", attached, "--model"}, args...)
			code, stdout, _ := newHome(t).start(v.environment(), append(args, "What is this?")...).wait()
			v.check(t)
			if code != 0 || object(t, stdout)["accepted"] != true || len(v.seen) != 2 {
				t.Fatalf("exit %d after %d requests: %s", code, len(v.seen), stdout)
			}
			if len(v.seen[0]) != 1 || len(v.seen[1]) != 2 {
				t.Fatalf("the requests have %d and %d files, want 1 and 2", len(v.seen[0]), len(v.seen[1]))
			}
			shown := v.seen[0][0]
			config, _, err := image.DecodeConfig(bytes.NewReader(shown.Data))
			if err != nil || shown.Type != media.JPEG || config.Width != 2000 || config.Height > 2000 || len(shown.Data) > media.MaxImage {
				t.Errorf("the screenshot came as %s of %d bytes, %d×%d: %v", shown.Type, len(shown.Data), config.Width, config.Height, err)
			}
			if again := v.seen[1][0]; !bytes.Equal(again.Data, shown.Data) {
				t.Error("the next request has other bytes of the screenshot")
			}
			if report := v.seen[1][1]; report.Type != media.PDF || !bytes.Equal(report.Data, document) {
				t.Errorf("the document came as %s of %d bytes, want its %d", report.Type, len(report.Data), len(document))
			}
			if want := fmt.Sprintf("application/pdf 40 pages, %d bytes", len(document)); !strings.Contains(v.text[1], want) {
				t.Errorf("the result is not %q in %s", want, v.text[1])
			}
		})
	}
	t.Run("a model that takes none", func(t *testing.T) {
		t.Parallel()
		v := newViewer(t, calls(call("a", "read_file", `{"path":"report.pdf"}`)), complete)
		workspace := t.TempDir()
		write(t, workspace, "report.pdf", string(document))
		code, stdout, _ := newHome(t).start(v.environment(), "run", "--workspace", workspace, "--output", "json",
			"--attach", attached, "--model", "openai:gpt-3.5-turbo", "What is this?").wait()
		v.check(t)
		if code != 0 || object(t, stdout)["accepted"] != true || len(v.seen) != 2 || len(v.seen[1]) > 0 {
			t.Fatalf("exit %d after %d requests: %s", code, len(v.seen), stdout)
		}
		for _, want := range []string{
			"[image screenshot.png, 2000×1417, ", "not shown, because this model does not take images. ",
			"[document report.pdf, 40 pages, ", "not shown, because this model does not take PDF documents. ",
		} {
			if !strings.Contains(v.text[1], want) {
				t.Errorf("the request lacks %q:\n%s", want, v.text[1])
			}
		}
	})
}

// TestSystemScreenshotsStayBelowTheLimit has a model look at 60 screenshots, ten at a time.
func TestSystemScreenshotsStayBelowTheLimit(t *testing.T) {
	t.Parallel()
	const screenshots, group = 60, 10
	workspace := t.TempDir()
	var replies []modeltest.Reply
	files := make([][]byte, screenshots)
	for i := range screenshots {
		files[i] = mediatest.PNG(mediatest.Noise(500, 500+i))
		write(t, workspace, fmt.Sprintf("%d.png", i), string(files[i]))
		look := call(fmt.Sprintf("look-%d", i), "read_file", fmt.Sprintf(`{"path":"%d.png"}`, i))
		if i%group == 0 {
			replies = append(replies, calls())
		}
		replies[i/group].Calls = append(replies[i/group].Calls, look)
	}
	v := newViewer(t, append(replies, complete)...)
	code, stdout, _ := newHome(t).start(v.environment(), "run", "--workspace", workspace, "--output", "json",
		"--model", "openai:gpt-5", "Look at all of them.").wait()
	v.check(t)
	if code != 0 || object(t, stdout)["accepted"] != true || len(v.seen) != screenshots/group+1 {
		t.Fatalf("exit %d after %d requests: %s", code, len(v.seen), stdout)
	}
	cuts := 0
	for i, r := range v.Requests() {
		if len(r.Body) > 20<<20 {
			t.Errorf("request %d has %d bytes, want at most 20 MB", i, len(r.Body))
		}
		next := 0 // file that has not been seen in this request
		for j, m := range v.seen[i] {
			at := slices.IndexFunc(files[next:i*group], func(want []byte) bool { return bytes.Equal(m.Data, want) })
			if at < 0 {
				t.Errorf("file %d of %d in request %d was not read, or is out of order", j, len(v.seen[i]), i)
			}
			next += at + 1
		}
		if strings.Contains(v.text[i], "no longer shown") {
			t.Errorf("request %d hides what the view of the run shows", i)
		}
		if i > 0 && len(v.seen[i]) < group/2 {
			t.Errorf("request %d has %d files", i, len(v.seen[i]))
		}
		if i > 0 && len(v.seen[i]) <= len(v.seen[i-1]) {
			cuts++
			if !strings.Contains(v.text[i], "[Cleared: image/png ") || !strings.Contains(v.text[i], "See it again with read_artifact, ref m") {
				t.Errorf("request %d lacks the way to look again", i)
			}
		}
	}
	if cuts == 0 || cuts > 4 {
		t.Errorf("%d requests have fewer files than the one before", cuts)
	}
}
