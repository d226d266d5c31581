package mcp

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"google.golang.org/protobuf/types/known/durationpb"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/test/kit/servertest"
)

const (
	startedServers = 25
	startedTools   = 20 // of each
)

// BenchmarkStart reports the time in which a tool host has started the servers of a run and lists
// their tools, as a ratio to that in which the bare client has done so with the same programs.
func BenchmarkStart(b *testing.B) {
	for _, delay := range []time.Duration{0, time.Second} {
		b.Run(fmt.Sprint("slowest=", delay), func(b *testing.B) {
			servers := make([]*harnessv1.McpServer, startedServers)
			for i := range servers {
				servers[i] = servertest.Server(fmt.Sprintf("machine%02d", i), servertest.Plain+"=1", fmt.Sprintf("%s=%d", servertest.Tools, startedTools))
			}
			servers[0].Env[servertest.Delay] = delay.String()
			h := newHost(b, false)
			h.start("first", servers[1:2])() // it finds out how it can confine processes
			starts := []func(run int) (end func()){
				func(run int) func() { return h.start(fmt.Sprint("run", run), servers) },
				func(int) func() { return startBare(b, servers) },
			}
			times := make([][]time.Duration, len(starts))
			for runs := 0; b.Loop(); runs++ {
				for i, start := range starts {
					began := time.Now()
					end := start(runs)
					times[i] = append(times[i], time.Since(began))
					end()
				}
			}
			host, bare := median(times[0]), median(times[1])
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(millis(host), "host-ms")
			b.ReportMetric(millis(bare), "bare-ms")
			b.ReportMetric(float64(host)/float64(bare), "host/bare")
		})
	}
}

// start starts the servers of a run through the host, and returns what ends them.
func (h *host) start(run string, servers []*harnessv1.McpServer) (end func()) {
	h.b.Helper()
	r, err := h.client.DescribeServers(h.b.Context(), &harnessv1.DescribeServersRequest{
		Namespace: "n", RunId: run, FirstSequence: 1, Workspace: h.dir, Servers: servers, Local: true, Wait: durationpb.New(20 * time.Second),
	})
	must(h.b, err)
	for _, d := range r.GetServers() {
		if len(d.GetTools()) != startedTools {
			h.b.Fatal(d)
		}
	}
	return func() {
		_, err := h.client.CancelTools(h.b.Context(), &harnessv1.CancelToolsRequest{Namespace: "n", RunId: run, FirstSequence: 1, Servers: true})
		must(h.b, err)
	}
}

// startBare starts the servers by the client of the SDK, all at the same time, and returns what ends
// them.
func startBare(b *testing.B, servers []*harnessv1.McpServer) (end func()) {
	b.Helper()
	sessions := make([]*mcp.ClientSession, len(servers))
	errs := make([]error, len(servers))
	var wait sync.WaitGroup
	for i, server := range servers {
		wait.Go(func() {
			if sessions[i], errs[i] = mcp.NewClient(&mcp.Implementation{Name: "bare", Version: "1"}, nil).Connect(b.Context(), stdio(server), nil); errs[i] == nil {
				_, errs[i] = sessions[i].ListTools(b.Context(), nil)
			}
		})
	}
	wait.Wait()
	for _, err := range errs {
		must(b, err)
	}
	return func() {
		for _, session := range sessions {
			_ = session.Close()
		}
	}
}
