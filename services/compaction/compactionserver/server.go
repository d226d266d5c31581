// Package compactionserver runs compaction as an executor and serves it over gRPC. It
// reads the conversation, counts tokens, and creates and reads the jobs of summaries when
// the decision asks for it, which it does only near a threshold. It calls no model.
package compactionserver

import (
	"context"
	"log/slog"
	"time"

	"google.golang.org/grpc"

	"github.com/harnessmesh/harnessmesh/pkg/conversation"
	"github.com/harnessmesh/harnessmesh/pkg/conversation/conversationcache"
	"github.com/harnessmesh/harnessmesh/pkg/conversation/shown"
	"github.com/harnessmesh/harnessmesh/pkg/conversation/view"
	"github.com/harnessmesh/harnessmesh/pkg/executor"
	"github.com/harnessmesh/harnessmesh/pkg/executor/jobs"
	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model/catalogue"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/services/compaction"
)

// Log is what a Server needs of a run log.
type Log interface {
	runlog.Reader
	runlog.BlobReader
	runlog.BlobWriter
	runlog.InboxReader
}

// Jobs is where summaries are requested.
type Jobs interface {
	runlog.JobCreator
	runlog.KeyedBlobReader
	runlog.JobEnds
}

// Config of a compaction worker.
type Config struct {
	// Log stores the runs. Required.
	Log Log
	// Jobs creates the jobs of summaries. Nil: no summaries are made.
	Jobs Jobs
	// Inference reports whether a worker carries out jobs. Nil: none does.
	Inference func(ctx context.Context) bool
	// Window returns the largest prompt that a model takes, in tokens, 0 if it is unknown.
	// Nil: all are unknown.
	Window func(ref string) uint32
	// Catalogue has the images and documents that models take. Nil: the embedded one.
	Catalogue *catalogue.Catalogue
	// Conversations is a cache that the roles of this process share. Nil: a separate one of
	// 64 MiB.
	Conversations *conversationcache.Cache
	// Logger receives warnings. Nil discards them.
	Logger *slog.Logger
	// Now is the clock, for durations. Default time.Now.
	Now func() time.Time
}

// maxIndexed bounds the messages whose index is in memory, over all runs: about 100 bytes
// each.
const maxIndexed = 500_000

// maxTexts bounds the contents of messages in memory, in bytes.
const maxTexts = 8 << 20

// Server is the compaction executor and its gRPC form.
type Server struct {
	harnessv1.UnimplementedCompactionServiceServer
	cfg   Config
	views *conversationcache.Views
	texts *shown.Texts
}

// New returns a compaction worker.
func New(cfg Config) *Server {
	if cfg.Conversations == nil {
		cfg.Conversations = conversationcache.New(cfg.Log, conversationcache.DefaultBytes)
	}
	if cfg.Inference == nil || cfg.Jobs == nil {
		cfg.Inference = func(context.Context) bool { return false }
	}
	if cfg.Window == nil {
		cfg.Window = func(string) uint32 { return 0 }
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return &Server{
		cfg: cfg, views: conversationcache.NewViews(maxIndexed*conversationcache.IndexBytes + cfg.Conversations.Limit()), texts: shown.New(cfg.Log.Blob, maxTexts),
	}
}

// Register adds the service to a gRPC server.
func (s *Server) Register(r grpc.ServiceRegistrar) {
	harnessv1.RegisterCompactionServiceServer(r, s)
}

// Compact returns what compaction would commit for a step, and commits nothing.
func (s *Server) Compact(_ context.Context, req *harnessv1.CompactRequest) (*harnessv1.CompactResponse, error) {
	var x *view.Index
	if messages := req.GetConversation(); len(messages) > 0 {
		for i, m := range messages {
			if m.GetId() != uint64(i)+1 {
				return nil, fault.Invalid("conversation", "message %d has the id %d, expected %d", i, m.GetId(), i+1)
			}
		}
		c := &conversation.Conversation{}
		c.Fold(&harnessv1.Record{Version: req.GetInput().GetVersion(), Appended: messages})
		x = &view.Index{}
		x.Add(c)
	}
	out, err := compaction.Decide(req.GetInput(), x)
	if err != nil {
		return nil, fault.Invalid("input", "%v", err)
	}
	return &harnessv1.CompactResponse{Output: out}, nil
}

// Run executes compaction until ctx ends.
func (s *Server) Run(ctx context.Context, cfg executor.Config) error {
	ends := &jobs.Ends{}
	if s.cfg.Jobs != nil {
		stop, err := s.cfg.Jobs.OnJobEnd(ends.Ended)
		if err != nil {
			return err
		}
		defer stop()
	}
	return executor.Run(ctx, cfg, &executor.Pure{ExecutorName: compaction.Name, Bind: s.bind, Changes: ends.Changes(compaction.KeySummary)})
}
