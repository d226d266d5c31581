package serve

import (
	"context"
	"fmt"
	"time"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/backend"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/console"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/exit"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/natsflags"
	"github.com/harnessmesh/harnessmesh/pkg/runlog/jetstream"
)

func (ProvisionCmd) Help() string {
	return "Example:\n\n  harness provision --nats nats://bus:4222 --partitions 4 --replicas 3"
}

// ProvisionCmd creates the streams and consumers on a NATS server.
type ProvisionCmd struct {
	NATS       string            `name:"nats" default:"nats://127.0.0.1:4222" placeholder:"URL" help:"NATS server."`
	NATSCreds  string            `name:"nats-creds" placeholder:"FILE" help:"File with the credentials of a NATS user: JWT and key, or one line USER:PASSWORD."`
	NATSWait   *console.Duration `name:"nats-wait" placeholder:"D" help:"How long to wait for NATS. Default: 3s."`
	Executor   []string          `placeholder:"NAME" help:"Custom executor that gets a consumer; repeatable."`
	Partitions int               `placeholder:"N" help:"Number of streams for runs; cannot be changed later. Default: unchanged, 1 at install."`
	Replicas   int               `placeholder:"N" help:"Replicas of each stream: 1, 3 or 5. Default: unchanged, 1 at install."`
	Takeover   *console.Duration `placeholder:"D" help:"How long a worker may be dead, hung or disconnected before another one gets its step, at least 1s. Takes effect when workers restart. Default: unchanged, 5s at install."`
	MaxBytes   int64             `placeholder:"N" help:"Maximum bytes of each stream of records; blobs get twice as many. Default: unchanged, 8 GiB at install."`

	natsflags.TLS
}

func (c *ProvisionCmd) Run(ctx context.Context, a *console.Console) (int, error) {
	for _, name := range c.Executor {
		if !console.NameForm().MatchString(name) {
			return exit.Error, fmt.Errorf("--executor: %q: expected letters, digits, - and _, at most 64", name)
		}
	}
	if c.Partitions < 0 || c.Partitions > maxPartitions {
		return exit.Error, fmt.Errorf("--partitions: %d: expected 1 to %d", c.Partitions, maxPartitions)
	}
	if c.Replicas != 0 && c.Replicas != 1 && c.Replicas != 3 && c.Replicas != 5 {
		return exit.Error, fmt.Errorf("--replicas: %d: expected 1, 3 or 5", c.Replicas)
	}
	bus := jetstream.Config{URL: c.NATS, Credentials: c.NATSCreds, TLS: c.Files()}
	if c.NATSWait != nil {
		bus.Wait = c.NATSWait.D
	}
	layout := jetstream.Layout{Partitions: c.Partitions, Replicas: c.Replicas, Executors: c.Executor, MaxBytes: c.MaxBytes}
	if c.Takeover != nil {
		layout.Takeover = c.Takeover.D
	}
	ctx, stop := a.CancelOnSignal(ctx)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, bus.Wait+time.Minute)
	defer cancel()
	if err := backend.Provision(ctx, bus, layout); err != nil {
		return exit.Error, natsflags.Named(err)
	}
	a.Report("%s is provisioned", jetstream.Redacted(c.NATS))
	return exit.Done, nil
}

// maxPartitions exceeds what a NATS cluster can spread.
const maxPartitions = 256
