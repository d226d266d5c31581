package workspace

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"google.golang.org/grpc/codes"

	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/disk"
)

var errNotAbsolute = errors.New("it is not an absolute path")

// CheckPath returns an error, INVALID_ARGUMENT, for a path that no workspace can have.
func CheckPath(dir string) error {
	if !filepath.IsAbs(dir) || strings.ContainsRune(dir, 0) {
		return Unusable(dir, errNotAbsolute)
	}
	return nil
}

// Unusable returns the error, INVALID_ARGUMENT, for a workspace that cannot be used.
func Unusable(dir string, cause error) error {
	e := fault.New(codes.InvalidArgument, harnessv1.ErrorReason_ERROR_REASON_WORKSPACE_UNUSABLE,
		fmt.Sprintf("workspace %q cannot be used: %s; name an existing folder that the tool host can read", dir, disk.Reason(cause)),
		"workspace", dir)
	e.Err = cause
	return e
}
