package access

import (
	"slices"
	"strings"

	"google.golang.org/grpc/codes"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// gatewayPrefix begins the methods that a token with a bound may call.
var gatewayPrefix = "/" + harnessv1.GatewayService_ServiceDesc.ServiceName + "/"

// checkService refuses the services of roles, which one process may serve next to its
// gateway, to a token with a bound: a tool host runs what it is sent, in any folder, and
// the namespace that its requests name is only a label.
func checkService(c Caller, method string) error {
	switch {
	case strings.HasPrefix(method, gatewayPrefix), strings.HasPrefix(method, reflection), !c.bounded():
		return nil
	case c.Namespaces != nil:
		return forbidden(c, "the services of roles are for tokens of all namespaces")
	}
	return refuse(codes.PermissionDenied, harnessv1.ErrorReason_ERROR_REASON_UNSPECIFIED, "the services of roles are for tokens without a bound, and the line of this one has roots, providers or a may= that leaves out more than prompts: use one of the line TOKEN *")
}

// bounded reports whether there is anything that the caller may not do with runs. The right
// Prompts does not count: lines with may= and all other rights are older than it, and processes
// of roles that have such a line must still reach each other after an update.
func (c Caller) bounded() bool {
	return c.Namespaces != nil || c.Roots != nil || c.Providers != nil || slices.ContainsFunc(allRights, func(r Right) bool { return r != Prompts && !c.has(r) })
}
