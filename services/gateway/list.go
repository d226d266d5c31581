package gateway

import (
	"cmp"
	"encoding/base64"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/tree"
)

// Place is the position of a run in the order of all runs: by creation, then by name.
// The zero Place is before the first run of a list.
type Place struct {
	// Created is the creation time in nanoseconds since 1970.
	Created int64
	Run     runlog.Run
}

func (p Place) compare(q Place) int {
	return cmp.Or(
		cmp.Compare(p.Created, q.Created),
		strings.Compare(p.Run.Namespace, q.Run.Namespace),
		strings.Compare(p.Run.ID, q.Run.ID),
	)
}

// Token returns a place as a page token.
func (p Place) Token() string {
	return base64.RawURLEncoding.EncodeToString([]byte(strconv.FormatInt(p.Created, 10) + "/" + p.Run.String()))
}

// parsePlace parses a page token; the empty token is the zero Place.
func parsePlace(token string) (Place, error) {
	if token == "" {
		return Place{}, nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(token)
	parts := strings.Split(string(raw), "/")
	if err != nil || len(parts) != 3 {
		return Place{}, badToken()
	}
	created, err := strconv.ParseInt(parts[0], 10, 64)
	p := Place{Created: created, Run: runlog.Run{Namespace: parts[1], ID: parts[2]}}
	if err != nil || !p.Run.Valid() {
		return Place{}, badToken()
	}
	return p, nil
}

func badToken() error {
	return fault.Invalid("page_token", "is not a page token of this list")
}

// Namespaces are the namespaces that a list may show; nil means all.
type Namespaces []string

// Within returns the namespaces of a list for a caller that may see allowed and asked
// for one namespace, or for all with the empty name.
func Within(asked string, allowed []string) Namespaces {
	if asked == "" {
		return allowed
	}
	return Namespaces{asked}
}

func (n Namespaces) has(namespace string) bool { return n == nil || slices.Contains(n, namespace) }

// List returns at most size runs after from, newest first, and where the next page
// begins; more is false after the last page. No statuses mean all. all: children too.
func (x *Index) List(within Namespaces, statuses []harnessv1.RunStatus, all bool, from Place, size int) (page []Row, next Place, more bool) {
	for i := x.rows.before(from) - 1; i >= 0; i-- {
		r := x.rows.oldest(i)
		if !x.rows.in(r, within) || r.isChild() && !all || !among(statuses, r.runStatus()) {
			continue
		}
		if len(page) == size {
			return page, page[size-1].Place, true
		}
		page = append(page, x.rows.export(r))
	}
	return page, Place{}, false
}

// Awaiting returns at most size runs after from that are parked for answers, oldest
// first; more is false after the last.
func (x *Index) Awaiting(within Namespaces, from Place, size int) (page []Row, more bool) {
	i := 0
	if from != (Place{}) {
		at, found := x.rows.find(from)
		if i = at; found {
			i++
		}
	}
	for ; i < len(x.rows.order); i++ {
		r := x.rows.oldest(i)
		if !r.awaits() || !x.rows.in(r, within) {
			continue
		}
		if len(page) == size {
			return page, true
		}
		page = append(page, x.rows.export(r))
	}
	return page, false
}

// page examines at most limit runs after from, newest first, and returns those that are
// wanted; more is false after the last.
func (x *Index) page(from Place, limit int, wanted func(Row) bool) (page []Row, next Place, more bool) {
	end := x.rows.before(from)
	last := max(0, end-limit)
	for i := end - 1; i >= last; i-- {
		if row := x.rows.export(x.rows.oldest(i)); wanted(row) {
			page = append(page, row)
		}
	}
	if last == 0 {
		return page, Place{}, false
	}
	return page, x.rows.place(x.rows.oldest(last)), true
}

func among(statuses []harnessv1.RunStatus, status harnessv1.RunStatus) bool {
	return len(statuses) == 0 || slices.Contains(statuses, status)
}

// Farewell returns the last message to a watcher about a row that is Deleted: the last
// known status, as far as it needs no stored data, with a reason kind that only deleted
// runs have.
func Farewell(r Row) *harnessv1.Run {
	return &harnessv1.Run{
		Namespace:  r.Run.Namespace,
		RunId:      r.Run.ID,
		Status:     r.Status,
		Version:    r.Version,
		CreateTime: timestamppb.New(time.Unix(0, r.Created)),
		Reason:     &harnessv1.StopReason{Kind: tree.Deleted, Message: "The run was deleted."},
	}
}

// CheckListPending validates a request for the pending calls of runs. It returns the
// namespace, empty for all, the page size and the place after which the page begins. A
// request for one run has no pages: Run checks it, and page size and token are ignored.
func CheckListPending(r *harnessv1.ListPendingRequest) (namespace string, size int, from Place, err error) {
	if namespace, err = Scope(r.GetNamespace()); err != nil {
		return "", 0, Place{}, err
	}
	switch size = int(r.GetPageSize()); {
	case size == 0:
		size = defaultPage
	case size > maxPage:
		return "", 0, Place{}, fault.Invalid("page_size", "%d: must be from 1 to %d", r.GetPageSize(), maxPage)
	}
	from, err = parsePlace(r.GetPageToken())
	return namespace, size, from, err
}
