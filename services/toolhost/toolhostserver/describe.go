package toolhostserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"runtime"
	"slices"
	"strings"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/services/toolhost"
)

// perFolder is how many entries of one folder are named in a description.
const perFolder = 30

// closedFolders are named but not looked into.
var closedFolders = []string{".git", "node_modules", ".venv", "__pycache__"}

// DescribeWorkspace checks a workspace and describes it.
func (s *Server) DescribeWorkspace(ctx context.Context, req *harnessv1.DescribeWorkspaceRequest) (*harnessv1.DescribeWorkspaceResponse, error) {
	if err := checkWorkspacePath(req.GetWorkspace()); err != nil {
		return nil, err
	}
	w, err := openWorkspace(req.GetWorkspace())
	if err != nil {
		return nil, unusable(req.GetWorkspace(), err)
	}
	defer w.close()
	text, err := listing(w.root.FS(), s.config.Limits.ListingEntries)
	if err != nil {
		return nil, unusable(req.GetWorkspace(), err)
	}
	r, err := repositoryOf(w.dir)
	if err != nil {
		return nil, unusable(req.GetWorkspace(), err)
	}
	return &harnessv1.DescribeWorkspaceResponse{Environment: &harnessv1.Environment{
		WorkingDirectory: w.dir,
		Platform:         runtime.GOOS + "/" + runtime.GOARCH,
		Listing:          text,
		InstructionFiles: s.instructions(ctx, r),
		Tools:            s.tools.Specs(),
	}}, ctx.Err()
}

// listing names what is in a workspace, two levels deep, at most limit entries:
// the upper level first comes to its right.
func listing(files fs.FS, limit int) (string, error) {
	upper, err := readSorted(files, ".")
	if err != nil {
		return "", err
	}
	var text strings.Builder
	shown := min(len(upper), limit)
	left := limit - shown
	for _, entry := range upper[:shown] {
		text.WriteString(entryLine("", entry))
		if !entry.IsDir() || slices.Contains(closedFolders, entry.Name()) || left == 0 {
			continue
		}
		lower, err := readSorted(files, entry.Name())
		if err != nil {
			continue
		}
		n := min(len(lower), perFolder, left)
		left -= n
		for _, e := range lower[:n] {
			text.WriteString(entryLine(entry.Name()+"/", e))
		}
		if more := len(lower) - n; more > 0 {
			fmt.Fprintf(&text, "%s/… %d more\n", entry.Name(), more)
		}
	}
	if more := len(upper) - shown; more > 0 {
		fmt.Fprintf(&text, "… %d more\n", more)
	}
	return text.String(), nil
}

func entryLine(folder string, entry fs.DirEntry) string {
	line := folder + toolhost.Clip(entry.Name(), 255)
	if entry.IsDir() {
		line += "/"
	}
	return line + "\n"
}

// readSorted reads a folder, up to a bound.
func readSorted(files fs.FS, name string) ([]fs.DirEntry, error) {
	f, err := files.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	dir, ok := f.(fs.ReadDirFile)
	if !ok {
		return nil, errors.New("is not a folder")
	}
	entries, err := dir.ReadDir(maxRead)
	if err != nil && len(entries) == 0 && !errors.Is(err, io.EOF) {
		return nil, err
	}
	slices.SortFunc(entries, func(x, y fs.DirEntry) int { return strings.Compare(x.Name(), y.Name()) })
	return entries, nil
}
