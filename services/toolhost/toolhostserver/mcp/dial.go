package mcp

import (
	"fmt"
	"net/http"
	"slices"
	"time"

	"google.golang.org/grpc"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/sandbox"
	"github.com/harnessmesh/harnessmesh/pkg/tool/webtool"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/dial"
)

// dial returns a connection to a ToolService: that of the operator, or one that the agent
// names. It sends nothing.
func (s *Servers) dial(server *harnessv1.McpServer) (*grpc.ClientConn, error) {
	target := server.GetGrpc()
	if server.GetHost() {
		i := slices.IndexFunc(s.config.Services, func(own *harnessv1.McpServer) bool { return own.GetName() == server.GetName() })
		if i < 0 {
			return nil, fmt.Errorf("the tool host has no tool service %s: name it with --tool-service %s=HOST:PORT", server.GetName(), server.GetName())
		}
		target = s.config.Services[i].GetGrpc()
	}
	return s.config.Remote.Open(target)
}

// dialer returns what connects to the address of a server, which a local person allows by
// naming it, and to others that its sign-in needs.
func (s *Servers) dialer(address string, local bool) *dial.Dialer {
	d := &dial.Dialer{Allowed: s.config.Private}
	if _, site, err := webtool.ParseURL(address); err == nil && local {
		d.Allowed = append(slices.Clone(d.Allowed), sandbox.Host{Name: site.Name, Port: site.Port})
	}
	return d
}

// transport returns what carries out the requests to a server.
func (s *Servers) transport(_ *harnessv1.McpServer, address string, local bool) http.RoundTripper {
	return &http.Transport{
		ForceAttemptHTTP2: true, TLSHandshakeTimeout: 15 * time.Second, IdleConnTimeout: time.Minute, DialContext: s.dialer(address, local).DialContext,
	}
}
