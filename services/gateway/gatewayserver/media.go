package gatewayserver

import (
	"context"

	"google.golang.org/protobuf/proto"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/input"
	"github.com/harnessmesh/harnessmesh/pkg/media"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

// acceptMedia returns a request whose images and documents are as they are stored.
func acceptMedia(r *harnessv1.StartRunRequest) (*harnessv1.StartRunRequest, error) {
	if len(r.GetSpec().GetMedia()) == 0 {
		return r, nil
	}
	accepted, err := input.AcceptMedia("spec.media", r.GetSpec().GetMedia())
	if err != nil {
		return nil, err
	}
	r = proto.CloneOf(r)
	r.Spec.Media = accepted
	return r, nil
}

// acceptInput returns an input whose images and documents are as they are stored.
func acceptInput(item *harnessv1.InboxItem) (*harnessv1.InboxItem, error) {
	field, list := input.MediaOf(item)
	if len(list) == 0 {
		return item, nil
	}
	accepted, err := input.AcceptMedia(field, list)
	if err != nil {
		return nil, err
	}
	return input.WithMedia(item, accepted), nil
}

// storeMedia returns a spec whose accepted images and documents are stored.
func (s *Server) storeMedia(ctx context.Context, run runlog.Run, spec *harnessv1.RunSpec) (*harnessv1.RunSpec, error) {
	if len(spec.GetMedia()) == 0 {
		return spec, nil
	}
	read, cancel := s.bounded(ctx)
	defer cancel()
	if err := s.refuseErased(read, run); err != nil {
		return nil, err
	}
	stored, err := s.putMedia(ctx, run, spec.GetMedia())
	if err != nil {
		return nil, err
	}
	spec = proto.CloneOf(spec)
	spec.Media = stored
	return spec, nil
}

// putMedia stores accepted images and documents as blobs of the run, and returns them
// without their data. Each has the time of one write, so that large ones do not fail for
// their size.
func (s *Server) putMedia(ctx context.Context, run runlog.Run, list []*harnessv1.Media) ([]*harnessv1.Media, error) {
	var stored []*harnessv1.Media
	for _, m := range list {
		write, cancel := s.committing(ctx)
		ref, err := s.log.PutBlob(write, run, m.GetData())
		cancel()
		if err != nil {
			return nil, err
		}
		stored = append(stored, media.Stored(m, ref))
	}
	return stored, nil
}
