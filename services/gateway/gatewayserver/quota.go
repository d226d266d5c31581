package gatewayserver

import (
	"context"
	"fmt"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/transport/access"
)

// admitStart refuses a start beyond the quotas of runs and bytes of the caller's token. stored has to
// be called when the run is stored, or is not. While the list of runs is incomplete, those that are known count.
func (s *Server) admitStart(ctx context.Context) (stored func(), err error) {
	quotas, name := access.StoredQuotas(ctx), access.Name(ctx)
	if quotas == (access.Quotas{}) {
		return func() {}, nil
	}
	s.runs.mu.Lock()
	defer s.runs.mu.Unlock()
	if err := s.checkBytes(name, quotas); err != nil {
		return nil, err
	}
	if atWork, admitted := s.runs.admissions.Start(&s.runs.index, name, quotas.Runs, s.now()); !admitted {
		return nil, tooManyRuns(atWork, quotas.Runs)
	}
	return func() {
		s.runs.mu.Lock()
		defer s.runs.mu.Unlock()
		s.runs.admissions.Stored(name)
	}, nil
}

// admitInput refuses an input that makes a run continue beyond the quota of runs of the caller's token, and a
// message to runs that have more bytes than it may have. Both count for the name that has started the run. refused
// has to be called if the run refuses the input.
func (s *Server) admitInput(ctx context.Context, run runlog.Run, item *harnessv1.InboxItem) (refused func(), err error) {
	quotas := access.StoredQuotas(ctx)
	if quotas == (access.Quotas{}) || !wakes(item) {
		return func() {}, nil
	}
	s.runs.mu.Lock()
	defer s.runs.mu.Unlock()
	if name := s.runs.index.Starter(run); name != "" && item.GetUserMessage() != nil {
		if err := s.checkBytes(name, quotas); err != nil {
			return nil, err
		}
	}
	atWork, refuse := s.runs.admissions.Wake(&s.runs.index, run, quotas.Runs, s.now())
	if refuse == nil {
		return nil, tooManyRuns(atWork, quotas.Runs)
	}
	return func() {
		s.runs.mu.Lock()
		defer s.runs.mu.Unlock()
		refuse()
	}, nil
}

// wakes reports whether an input makes a parked or ended run continue.
func wakes(item *harnessv1.InboxItem) bool {
	switch item.GetInput().(type) {
	case *harnessv1.InboxItem_UserMessage, *harnessv1.InboxItem_Approval, *harnessv1.InboxItem_ToolAnswer,
		*harnessv1.InboxItem_Resume, *harnessv1.InboxItem_Replan, *harnessv1.InboxItem_ModelChange:
		return true
	}
	return false
}

// checkBytes compares the stored runs of a name with a quota. s.runs.mu is locked.
func (s *Server) checkBytes(name string, quotas access.Quotas) error {
	bytes := s.runs.index.Usage(name).Bytes
	if bytes < uint64(quotas.Bytes) { //nolint:gosec // above 0
		return nil
	}
	return access.Exceeded("bytes", quotas.Bytes, fmt.Sprintf("the stored runs of this token have %d bytes, and it may have %d: delete runs that are not needed", bytes, quotas.Bytes))
}

func tooManyRuns(atWork, most int) error {
	return access.Exceeded("runs", most, fmt.Sprintf("%d runs of this token are at work, and it may have %d: wait until one has ended, or cancel one", atWork, most))
}
