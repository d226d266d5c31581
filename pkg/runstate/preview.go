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

// ShownBytes bounds the texts of calls that one list, result or event has inline, in bytes, so
// that it stays below what clients accept by default. Longer ones stay references.
const ShownBytes = 1 << 20

// Shortened returns the first text of a call that a list or a result of its run may have as a
// reference, because the texts of its pending calls exceed ShownBytes; nil if there is none.
func Shortened(s SharedFields, call *harnessv1.PendingCall) *harnessv1.BlobRef {
	var total uint64
	for _, c := range s.GetPendingToolCalls() {
		for _, ref := range refs(c) {
			total += ref.GetSize()
		}
	}
	if own := refs(call); total > ShownBytes && len(own) > 0 {
		return own[0]
	}
	return nil
}

// refs returns the references among the texts of a call that a person decides about.
func refs(call *harnessv1.PendingCall) (all []*harnessv1.BlobRef) {
	texts := []*harnessv1.Content{call.GetArguments()}
	for _, f := range call.GetPreview().GetFiles() {
		texts = append(texts, f.GetDiff())
	}
	for _, r := range call.GetQuestion().GetRequests() {
		texts = append(texts, r.GetMessage(), r.GetSchema(), r.GetUrl())
	}
	for _, c := range texts {
		if c.GetBlob() != nil {
			all = append(all, c.GetBlob())
		}
	}
	return all
}
