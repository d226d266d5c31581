package servertest

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// gatePause is the time between looks for a file, and between reports of progress.
const gatePause = 5 * time.Millisecond

// waitFor waits until a file exists, or ctx ends. An empty path is not waited for.
func waitFor(ctx context.Context, path string) {
	for path != "" {
		if _, err := os.Stat(path); err == nil {
			return
		}
		select {
		case <-time.After(gatePause):
		case <-ctx.Done():
			return
		}
	}
}

// addSteps adds the tool steps, which reports one step after the other until a file exists.
func addSteps(s *mcp.Server, gate string) {
	mcp.AddTool(s, &mcp.Tool{Name: "steps", Description: "Takes steps."}, func(ctx context.Context, r *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		for step := 1; ; step++ {
			if err := r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{
				ProgressToken: r.Params.GetProgressToken(), Progress: float64(step), Message: fmt.Sprintf("step %d taken", step),
			}); err != nil {
				return nil, nil, err
			}
			if _, err := os.Stat(gate); err == nil {
				return text("took %d steps", step), nil, nil
			}
			select {
			case <-time.After(gatePause):
			case <-ctx.Done():
				return nil, nil, ctx.Err()
			}
		}
	})
}
