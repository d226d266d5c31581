package toolhostserver

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"unicode/utf8"

	"google.golang.org/grpc/codes"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

func (h *host) checkFile(path string, textBytes uint32) *harnessv1.CheckFileResponse {
	h.t.Helper()
	resp, err := h.CheckFile(context.Background(), &harnessv1.CheckFileRequest{Workspace: h.dir, Path: path, TextBytes: textBytes})
	if err != nil {
		h.t.Fatal(err)
	}
	return resp
}

func digest(content string) string {
	sum := sha256.Sum256([]byte(content))
	return hex.EncodeToString(sum[:])
}

func TestCheckFileDescribesAFile(t *testing.T) {
	t.Parallel()
	h := newHost(t, Config{})
	large := strings.Repeat("0123456789abcdef", 1<<17)
	for name, c := range map[string]struct {
		content   string
		textBytes uint32
		text      string
		truncated bool
	}{
		"whole":                             {content: "one\ntwo\n", textBytes: 100, text: "one\ntwo\n"},
		"exact":                             {content: "one", textBytes: 3, text: "one"},
		"no text":                           {content: "one", truncated: true},
		"part":                              {content: "one", textBytes: 2, text: "on", truncated: true},
		"empty":                             {textBytes: 10},
		"cut character":                     {content: "aäb", textBytes: 2, text: "a", truncated: true},
		"invalid UTF-8":                     {content: "a\xff\xfeb", textBytes: 10, text: "a\uFFFDb"},
		"ends in the middle of a character": {content: "a\xc3", textBytes: 10, text: "a\uFFFD"},
		"replacements are longer":           {content: "\xffa\xffa\xff", textBytes: 5, text: "\uFFFDa", truncated: true},
		"more than a MiB":                   {content: large, textBytes: 1 << 30, text: large[:1<<20], truncated: true},
	} {
		h.write(name, c.content)
		resp := h.checkFile(name, c.textBytes)
		if !resp.GetExists() || resp.GetWhy() != "" || resp.GetSize() != uint64(len(c.content)) || resp.GetDigest() != digest(c.content) {
			t.Errorf("%s: got %v, size %d, digest %s", name, resp.GetExists(), resp.GetSize(), resp.GetDigest())
		}
		if resp.GetText() != c.text || resp.GetTruncated() != c.truncated {
			t.Errorf("%s: got %d bytes %.40q, truncated %v", name, len(resp.GetText()), resp.GetText(), resp.GetTruncated())
		}
	}
}

func TestCheckFileNeedsLittleMemory(t *testing.T) {
	h := newHost(t, Config{})
	const size = 80 << 20
	path := filepath.Join(h.dir, "sparse")
	h.write("sparse", "head")
	if err := os.Truncate(path, size); err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	resp := h.checkFile("sparse", 4)
	runtime.ReadMemStats(&after)
	if resp.GetSize() != size || resp.GetText() != "head" || !resp.GetTruncated() || len(resp.GetDigest()) != 64 {
		t.Fatalf("got %v", resp)
	}
	if n := after.TotalAlloc - before.TotalAlloc; n > 8<<20 {
		t.Errorf("%d bytes allocated", n)
	}
}

func TestCheckFileFindsOnlyFilesOfTheWorkspace(t *testing.T) {
	t.Parallel()
	h := newHost(t, Config{})
	inside, outside := pathCases(t, h)
	if err := syscall.Mkfifo(filepath.Join(h.dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range inside {
		if resp := h.checkFile(path, 10); !resp.GetExists() || resp.GetText() != "inside" {
			t.Errorf("%s: got %v", path, resp)
		}
	}
	for path, why := range map[string]string{
		"none": "no such file", "dir": "is a folder", "pipe": "not a regular file", ".": "is a folder", "dir/file/x": "a part of the path is a file",
	} {
		if resp := h.checkFile(path, 10); resp.GetExists() || !strings.Contains(resp.GetWhy(), why) || strings.Contains(resp.GetWhy(), "\n") {
			t.Errorf("%s: got %v", path, resp)
		}
	}
	for _, path := range append(outside, "dangling", "a\x00b", strings.Repeat("long", 3000)) {
		resp := h.checkFile(path, 100)
		if resp.GetExists() || resp.GetWhy() == "" || resp.GetText() != "" || resp.GetDigest() != "" || len(resp.GetWhy()) > 300 || !utf8.ValidString(resp.GetWhy()) {
			t.Errorf("%.40s: got %v", path, resp)
		}
	}
	h.dir = filepath.Join(h.dir, "gone")
	if resp := h.checkFile("file", 10); resp.GetExists() || !strings.Contains(resp.GetWhy(), "workspace") {
		t.Errorf("got %v", resp)
	}
}

func TestCheckFileStaysInside_WhenALinkIsSwapped(t *testing.T) {
	if testing.Short() {
		t.Skip("swaps links for a second")
	}
	t.Parallel()
	h := newHost(t, Config{})
	neighbour := t.TempDir()
	if err := os.WriteFile(filepath.Join(neighbour, "file"), []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	h.write("dir/file", "inside")
	stop := swapLink(t, h, "link", "dir", neighbour)
	defer stop()
	inside := 0
	for range 3000 {
		resp := h.checkFile("link/file", 100)
		switch {
		case !resp.GetExists():
		case resp.GetText() == "inside" && resp.GetDigest() == digest("inside"):
			inside++
		default:
			t.Fatalf("got %v", resp)
		}
	}
	if inside == 0 {
		t.Error("no read found the link to the inside")
	}
}

func TestCheckFileRejectsInvalidRequests(t *testing.T) {
	t.Parallel()
	h := newHost(t, Config{})
	for name, req := range map[string]*harnessv1.CheckFileRequest{
		"no path":            {Workspace: h.dir},
		"no workspace":       {Path: "a"},
		"relative workspace": {Workspace: "a", Path: "a"},
	} {
		if _, err := h.CheckFile(context.Background(), req); code(err) != codes.InvalidArgument {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestCheckFileEndsWithItsRequest(t *testing.T) {
	t.Parallel()
	h := newHost(t, Config{})
	h.write("a", "b")
	ctx, leave := context.WithCancel(context.Background())
	leave()
	if _, err := h.CheckFile(ctx, &harnessv1.CheckFileRequest{Workspace: h.dir, Path: "a"}); code(err) != codes.Unavailable {
		t.Fatalf("got %v", err)
	}
}
