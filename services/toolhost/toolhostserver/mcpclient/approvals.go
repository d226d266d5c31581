package mcpclient

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"google.golang.org/protobuf/encoding/protojson"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/tool/mcptool"
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

// Compare returns the approved definitions of tools that the server defines differently now, and
// the digests of its definitions that a person has approved. The first definition of a tool is
// taken as approved, but no person has approved it. If the approved definitions cannot be
// read, none of the present ones is approved.
func (a *Approvals) Compare(namespace string, server *harnessv1.McpServer, tools []*harnessv1.McpDefinition) (differ []*harnessv1.McpDefinition, approved []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	path := a.path(namespace, server)
	known, err := a.read(path)
	if err != nil {
		a.log.Error("approved definitions of a server cannot be read; its tools ask again", "server", server.GetName(), "error", err)
		known = &harnessv1.DescribedServer{}
		for _, d := range tools {
			known.Tools = append(known.Tools, &harnessv1.McpDefinition{Tool: d.GetTool()})
		}
	}
	fresh := err != nil
	for _, d := range tools {
		before := find(known.GetTools(), d.GetTool())
		switch {
		case before == nil:
			known.Tools = append(known.Tools, d)
			fresh = true
		case before.GetDigest() != d.GetDigest():
			differ = append(differ, before)
		case slices.Contains(known.GetApprovedDigests(), d.GetDigest()):
			approved = append(approved, d.GetDigest())
		}
	}
	if fresh {
		a.write(path, known)
	}
	return differ, approved
}

// Approve notes that a person has approved a definition.
func (a *Approvals) Approve(namespace string, server *harnessv1.McpServer, d *harnessv1.McpDefinition) {
	a.mu.Lock()
	defer a.mu.Unlock()
	path := a.path(namespace, server)
	known, err := a.read(path)
	if err != nil { // Compare replaces it
		a.log.Error("approved definitions of a server cannot be read", "server", server.GetName(), "error", err)
		return
	}
	if before := find(known.GetTools(), d.GetTool()); before != nil {
		known.ApprovedDigests = slices.DeleteFunc(known.GetApprovedDigests(), func(digest string) bool { return digest == before.GetDigest() })
		known.Tools = slices.DeleteFunc(known.GetTools(), func(k *harnessv1.McpDefinition) bool { return k == before })
	}
	known.Tools = append(known.Tools, d)
	known.ApprovedDigests = append(known.ApprovedDigests, d.GetDigest())
	a.write(path, known)
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
	if mcptool.IsService(server) {
		parts = append(parts, "grpc", server.GetGrpc())
	}
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return filepath.Join(a.dir, hex.EncodeToString(sum[:16])+".json")
}

// read returns the stored definitions of a server; none if there is no file.
func (a *Approvals) read(path string) (*harnessv1.DescribedServer, error) {
	known := &harnessv1.DescribedServer{}
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return known, nil
	}
	if err != nil {
		return nil, err
	}
	return known, protojson.UnmarshalOptions{DiscardUnknown: true}.Unmarshal(data, known)
}

func (a *Approvals) write(path string, known *harnessv1.DescribedServer) {
	data, err := protojson.Marshal(known)
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
