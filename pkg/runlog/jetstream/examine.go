package jetstream

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Examine returns the problems of the streams, a line each: streams that store
// nothing, which it finds out by writing a message and deleting it, and replicas that are
// away. It takes Config.Timeout at most.
func (l *Log) Examine(ctx context.Context) []string {
	ctx, cancel := l.bounded(ctx)
	defer cancel()
	var mu sync.Mutex
	var problems []string
	note := func(format string, v ...any) {
		mu.Lock()
		defer mu.Unlock()
		problems = append(problems, fmt.Sprintf(format, v...))
	}
	var writing sync.WaitGroup
	for p := range l.partitions {
		for tree, stream := range map[string]string{"run": runsStream(p), "blob": blobsStream(p), "timer": timersStream(p)} {
			writing.Go(func() {
				switch err := l.examineWrite(ctx, fmt.Sprintf("hm.%s.%d.probe", tree, p)); {
				case err == nil:
				case apiCode(err) == codeFull:
					note("%s: %v", stream, errFull)
				default:
					note("stream %s stores nothing (%v): check the free space on the disk of NATS; after a full disk, make room and restart NATS", stream, err)
				}
			})
		}
	}
	writing.Wait()
	for p := range l.partitions {
		for _, name := range []string{runsStream(p), blobsStream(p), timersStream(p)} {
			stream, err := l.js.Stream(ctx, name)
			switch {
			case ctx.Err() != nil:
				note("stream %s: nothing is known, because others took too long", name)
			case err != nil:
				note("stream %s does not answer (%v): see whether most of its servers run, and whether their disks are full", name, err)
			default:
				if away := awayFrom(stream.CachedInfo().Cluster); len(away) > 0 {
					note("stream %s has no replica on %s now: see whether that server runs, and whether its disk is full", name, strings.Join(away, ", "))
				}
			}
		}
	}
	slices.Sort(problems)
	return problems
}

// awayFrom returns the servers whose replicas of a stream are away.
func awayFrom(cluster *jetstream.ClusterInfo) []string {
	if cluster == nil {
		return nil
	}
	var away []string
	for _, replica := range cluster.Replicas {
		if replica.Offline {
			away = append(away, replica.Name)
		}
	}
	return away
}

// examineWrite returns why a stream does not store a probe. A user who may not publish it
// learns nothing.
func (l *Log) examineWrite(ctx context.Context, subject string) error {
	ctx, cancel := context.WithTimeout(ctx, l.timeout/tries)
	defer cancel()
	var ack *jetstream.PubAck
	permitted, err := l.attempt(ctx, subject, func(ctx context.Context) (err error) {
		ack, err = l.js.PublishMsg(ctx, &nats.Msg{Subject: subject, Data: make([]byte, probeSize)})
		return err
	})
	switch {
	case !permitted:
		return nil
	case err == nil:
		l.forgetProbe(ack)
		return nil
	}
	if why := notStored(err); why != nil {
		return why
	}
	return err
}
