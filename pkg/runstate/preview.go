package runstate

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/sandbox"
)

// Preview returns the preview for a person of a call of a run that waits for an approval or
// a review. proposed has the changes that the call would make, as the tool host has found; may be nil.
func Preview(s DefinitionFields, call *harnessv1.PendingCall, proposed *harnessv1.CallPreview) *harnessv1.CallPreview {
	p := &harnessv1.CallPreview{Files: proposed.GetFiles(), Note: proposed.GetNote()}
	if level := call.GetSandboxLevel(); level != sandbox.Auto {
		p.Command = commandPreview(s, level, call.GetSandboxHosts())
	}
	p.Digest = previewDigest(call, p)
	return p
}

func commandPreview(s DefinitionFields, level harnessv1.SandboxLevel, hosts []string) *harnessv1.CommandPreview {
	c := &harnessv1.CommandPreview{Directory: s.GetWorkspace(), Level: level, Network: harnessv1.SandboxNetworkMode_SANDBOX_NETWORK_MODE_NONE}
	network := s.GetConfig().GetSandbox().GetNetwork()
	if network.GetMode() != harnessv1.SandboxNetworkMode_SANDBOX_NETWORK_MODE_UNSPECIFIED {
		c.Network = network.GetMode()
	}
	switch {
	case level == sandbox.Off:
		c.Network = harnessv1.SandboxNetworkMode_SANDBOX_NETWORK_MODE_ALL
	case len(hosts) > 0 && c.Network == harnessv1.SandboxNetworkMode_SANDBOX_NETWORK_MODE_NONE:
		c.Network = harnessv1.SandboxNetworkMode_SANDBOX_NETWORK_MODE_HOSTS
	}
	if c.Network == harnessv1.SandboxNetworkMode_SANDBOX_NETWORK_MODE_HOSTS {
		c.Hosts = slices.Concat(network.GetHosts(), hosts)
	}
	return c
}

// previewDigest returns the digest of a call and its preview. It is the same wherever the
// arguments are stored.
func previewDigest(call *harnessv1.PendingCall, p *harnessv1.CallPreview) string {
	sum := sha256.New()
	add := func(parts ...string) {
		for _, part := range parts {
			fmt.Fprintf(sum, "%d:%s\n", len(part), part) // no two lists give the same bytes
		}
	}
	add(call.GetTool(), content.DigestOf(call.GetArguments()))
	if c := p.GetCommand(); c != nil {
		add(c.GetDirectory(), c.GetLevel().String(), c.GetNetwork().String())
		add(c.GetHosts()...)
	}
	for _, f := range p.GetFiles() {
		add(f.GetPath(), f.GetBefore(), f.GetHunks())
	}
	return hex.EncodeToString(sum.Sum(nil))
}
