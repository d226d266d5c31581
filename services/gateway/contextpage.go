package gateway

import (
	"encoding/base64"
	"encoding/binary"

	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

// Pages of GetContext.
const (
	// defaultContextPage is the default page size.
	defaultContextPage = 200
	// maxContextPage is the largest page.
	maxContextPage = 1000
)

// ContextPage is a page of a context: pages of one version fit together.
type ContextPage struct {
	// Version of the run; 0 is the newest.
	Version uint64
	// Sequence of the record with that version; 0 on the first page.
	Sequence uint64
	// First is the index of the page's first item.
	First int
	// Before is the digest of the items before it; empty on the first page.
	Before []byte
	// Size is the number of items on the page.
	Size int
}

// digestSize is the size of ContextPage.Before on later pages.
const digestSize = 32

// CheckContext validates a request for a context and returns the run and the page.
func CheckContext(r *harnessv1.GetContextRequest) (runlog.Run, ContextPage, error) {
	run, err := Run(r.GetNamespace(), r.GetRunId())
	if err != nil {
		return run, ContextPage{}, err
	}
	page := ContextPage{Version: r.GetVersion()}
	if r.GetPageToken() != "" {
		if page, err = parseContextPage(r.GetPageToken()); err != nil {
			return run, ContextPage{}, err
		}
		if v := r.GetVersion(); v != 0 && v != page.Version {
			return run, ContextPage{}, fault.Invalid("page_token", "is of version %d, and the request is for version %d", page.Version, v)
		}
	}
	switch page.Size = int(r.GetPageSize()); {
	case page.Size == 0:
		page.Size = defaultContextPage
	case page.Size > maxContextPage:
		return run, ContextPage{}, fault.Invalid("page_size", "%d: must be from 1 to %d", page.Size, maxContextPage)
	}
	return run, page, nil
}

func (p ContextPage) Token() string {
	b := binary.AppendUvarint(nil, p.Version)
	b = binary.AppendUvarint(b, p.Sequence)
	b = binary.AppendUvarint(b, uint64(p.First)) //nolint:gosec // an index
	return base64.RawURLEncoding.EncodeToString(append(b, p.Before...))
}

func parseContextPage(token string) (ContextPage, error) {
	b, err := base64.RawURLEncoding.DecodeString(token)
	var p ContextPage
	var first uint64
	for _, to := range []*uint64{&p.Version, &p.Sequence, &first} {
		n, size := binary.Uvarint(b)
		if size <= 0 {
			return ContextPage{}, BadContextToken()
		}
		*to, b = n, b[size:]
	}
	if err != nil || len(b) != digestSize || p.Version == 0 || p.Sequence == 0 || first == 0 || first > 1<<31 {
		return ContextPage{}, BadContextToken()
	}
	p.First, p.Before = int(first), b
	return p, nil
}

// BadContextToken returns the error for a page token that this run did not return.
func BadContextToken() error {
	return fault.Invalid("page_token", "is not a page token of this context; leave it empty for the first page")
}

// BeyondNewest returns the error for a version that a run does not have.
func BeyondNewest(run runlog.Run, version, newest uint64) error {
	return fault.Invalid("version", "%d: run %s has versions up to %d", version, run, newest)
}
