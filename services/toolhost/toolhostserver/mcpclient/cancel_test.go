package mcpclient

import (
	"context"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// mute is a connection that stops reading when the channel is closed.
type mute struct {
	mcp.Connection
	stopped <-chan struct{}
}

func (m mute) Read(ctx context.Context) (jsonrpc.Message, error) {
	message, err := m.Connection.Read(ctx)
	select {
	case <-m.stopped:
		<-ctx.Done()
		return nil, ctx.Err()
	default:
	}
	return message, err
}

type muteTransport struct {
	mcp.Transport
	stopped <-chan struct{}
}

func (m muteTransport) Connect(ctx context.Context) (mcp.Connection, error) {
	conn, err := m.Transport.Connect(ctx)
	return mute{conn, m.stopped}, err
}

// TestServersGetTimeToEndACall that was cancelled, if they read the cancellation: until they have
// ended the call. Those that do not read get none.
func TestServersGetTimeToEndACall(t *testing.T) {
	const reading = 500 * time.Millisecond
	for _, deaf := range []bool{false, true} {
		running, stopped, ending, mayEnd := make(chan struct{}), make(chan struct{}), make(chan struct{}), make(chan struct{})
		s := mcp.NewServer(&mcp.Implementation{Name: "s", Version: "1"}, nil)
		mcp.AddTool(s, &mcp.Tool{Name: "hang"}, func(ctx context.Context, _ *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
			close(running)
			<-ctx.Done()
			close(ending)
			<-mayEnd
			return &mcp.CallToolResult{}, nil, nil
		})
		client, server := mcp.NewInMemoryTransports()
		go func() { _ = s.Run(t.Context(), muteTransport{server, stopped}) }()
		session, err := mcp.NewClient(&mcp.Implementation{Name: "c", Version: "1"}, nil).Connect(t.Context(), pipes{client, noDeadline{}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		conn := &connection{client: session, gone: make(chan struct{})}
		ctx, cancel := context.WithCancel(t.Context())
		sending, way := withDelivery(ctx)
		called := make(chan struct{})
		go func() {
			defer close(called)
			_, _ = session.CallTool(sending, &mcp.CallToolParams{Name: "hang"})
		}()
		<-running
		if deaf {
			close(stopped)
		}
		cancel()
		<-called
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			if deaf {
				conn.awaitEnd(way, time.Hour, time.Millisecond)
			} else {
				conn.awaitEnd(way, time.Hour, reading)
			}
		}()
		if !deaf {
			<-ending
			select {
			case <-ended:
				t.Fatal("the server gets no time to end its call")
			case <-time.After(2 * reading):
			}
		}
		close(mayEnd)
		<-ended // else the test times out
	}
}

// noDeadline is an input that takes no deadline.
type noDeadline struct{}

func (noDeadline) SetWriteDeadline(time.Time) error { return nil }
