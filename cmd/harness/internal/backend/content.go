package backend

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// maxText is the size of the largest text that is fetched for display.
const maxText = 64 << 20

// Text returns the text of a content and fetches it if it is a blob.
func Text(ctx context.Context, client harnessv1.GatewayServiceClient, namespace, run string, c *harnessv1.Content) (string, error) {
	ref := c.GetBlob()
	if ref == nil {
		return c.GetInline(), nil
	}
	if ref.GetSize() > maxText {
		return "", fmt.Errorf("blob %s: %d bytes exceed what can be shown", ref.GetDigest(), ref.GetSize())
	}
	stream, err := client.GetBlob(ctx, &harnessv1.GetBlobRequest{Namespace: namespace, RunId: run, Digest: ref.GetDigest()})
	if err != nil {
		return "", err
	}
	var text strings.Builder
	for {
		part, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return text.String(), nil
		}
		if err != nil {
			return "", err
		}
		if text.Len()+len(part.GetChunk()) > maxText {
			return "", fmt.Errorf("blob %s: exceeds its declared size", ref.GetDigest())
		}
		text.Write(part.GetChunk())
	}
}

// Whole returns the result with its texts inline, including those of its deliverables. A
// text that cannot be fetched stays a reference, and the error has the reason.
func Whole(ctx context.Context, client harnessv1.GatewayServiceClient, namespace, run string, r *harnessv1.HarnessResult) (*harnessv1.HarnessResult, error) {
	if !slices.ContainsFunc(texts(r), func(c *harnessv1.Content) bool { return c.GetBlob() != nil }) {
		return r, nil
	}
	whole := proto.CloneOf(r)
	var failed error
	for _, c := range texts(whole) {
		if c.GetBlob() == nil {
			continue
		}
		text, err := Text(ctx, client, namespace, run, c)
		if err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		c.Value = &harnessv1.Content_Inline{Inline: text}
	}
	return whole, failed
}

// WholeCall returns a call with all of its arguments: a user decides about what can be seen.
// Where they cannot be fetched they stay a reference.
func WholeCall(ctx context.Context, client harnessv1.GatewayServiceClient, namespace, run string, call *harnessv1.PendingCall) *harnessv1.PendingCall {
	call = proto.CloneOf(call)
	for _, c := range textsOfCall(call) {
		if c.GetBlob() == nil {
			continue
		}
		if text, err := Text(ctx, client, namespace, run, c); err == nil {
			c.Value = &harnessv1.Content_Inline{Inline: text}
		}
	}
	return call
}

// textsOfCall returns the contents of a call that a user decides about.
func textsOfCall(p *harnessv1.PendingCall) []*harnessv1.Content {
	all := []*harnessv1.Content{p.GetArguments()}
	for _, f := range p.GetPreview().GetFiles() {
		all = append(all, f.GetDiff())
	}
	for _, r := range p.GetQuestion().GetRequests() {
		all = append(all, r.GetMessage(), r.GetSchema(), r.GetUrl())
	}
	return all
}

func texts(r *harnessv1.HarnessResult) []*harnessv1.Content {
	all := []*harnessv1.Content{r.GetAnswer(), r.GetSummary(), r.GetOutput()}
	for _, d := range r.GetDeliverables() {
		all = append(all, d.GetContent())
	}
	for _, p := range r.GetPending() {
		all = append(all, textsOfCall(p)...)
	}
	return all
}
