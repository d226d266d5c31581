package mcpclient

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"google.golang.org/protobuf/encoding/protojson"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// Approvals are the definitions of tools that are approved: the first that a server listed, and
// those that persons have approved since. Each namespace has separate ones. They outlive
// processes. It is safe for concurrent use.
type Approvals struct {
	dir string
	log *slog.Logger
	mu  sync.Mutex
}

// NewApprovals returns the approvals in a folder, which is made if it is missing.
func NewApprovals(dir string, log *slog.Logger) *Approvals { return &Approvals{dir: dir, log: log} }

// Compare returns the approved definitions of tools that the server defines differently now. The
// first definition of a tool is approved.
func (a *Approvals) Compare(namespace string, server *harnessv1.McpServer, tools []*harnessv1.McpDefinition) []*harnessv1.McpDefinition {
	a.mu.Lock()
	defer a.mu.Unlock()
	path := a.path(namespace, server)
	known := a.read(path)
	var differ []*harnessv1.McpDefinition
	fresh := false
	for _, d := range tools {
		before := find(known, d.GetTool())
		switch {
		case before == nil:
			known = append(known, d)
			fresh = true
		case before.GetDigest() != d.GetDigest():
			differ = append(differ, before)
		}
	}
	if fresh {
		a.write(path, known)
	}
	return differ
}

// Approve notes that a person has approved a definition.
func (a *Approvals) Approve(namespace string, server *harnessv1.McpServer, d *harnessv1.McpDefinition) {
	a.mu.Lock()
	defer a.mu.Unlock()
	path := a.path(namespace, server)
	known := a.read(path)
	for i, before := range known {
		if before.GetTool() == d.GetTool() {
			known[i] = d
			a.write(path, known)
			return
		}
	}
	a.write(path, append(known, d))
}

func find(known []*harnessv1.McpDefinition, tool string) *harnessv1.McpDefinition {
	for _, d := range known {
		if d.GetTool() == tool {
			return d
		}
	}
	return nil
}

// path returns the file of a server: another program or address is another server.
func (a *Approvals) path(namespace string, server *harnessv1.McpServer) string {
	parts := append([]string{namespace, server.GetName(), server.GetCommand(), server.GetUrl()}, server.GetArgs()...)
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return filepath.Join(a.dir, hex.EncodeToString(sum[:16])+".json")
}

func (a *Approvals) read(path string) []*harnessv1.McpDefinition {
	data, err := os.ReadFile(path)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			a.log.Error("approved definitions of a server cannot be read; they are approved again", "error", err)
		}
		return nil
	}
	tools := &harnessv1.DescribedServer{}
	if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(data, tools); err != nil {
		a.log.Error("approved definitions of a server cannot be read; they are approved again", "error", err)
		return nil
	}
	return tools.GetTools()
}

func (a *Approvals) write(path string, tools []*harnessv1.McpDefinition) {
	data, err := protojson.Marshal(&harnessv1.DescribedServer{Tools: tools})
	if err == nil {
		err = os.MkdirAll(a.dir, 0o700)
	}
	if err == nil {
		err = os.WriteFile(path+".new", data, 0o600)
	}
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		a.log.Error("approved definitions of a server cannot be stored", "error", err)
	}
}
