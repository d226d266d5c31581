package telemetry

import (
	"context"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
)

// ServerOptions returns options that count the gRPC calls of a server, by method and
// code. They must precede the conversion of errors into statuses. A nil m returns none.
func (m *Metrics) ServerOptions() []grpc.ServerOption {
	if m == nil {
		return nil
	}
	return []grpc.ServerOption{
		grpc.ChainUnaryInterceptor(func(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
			began := time.Now()
			resp, err := next(ctx, req)
			m.rpcDuration.record(ctx, time.Since(began).Seconds(), info.FullMethod, status.Code(err).String())
			return resp, err
		}),
		grpc.ChainStreamInterceptor(func(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) error {
			ctx := stream.Context()
			m.rpcOpen.add(ctx, 1, info.FullMethod)
			err := next(srv, stream)
			m.rpcOpen.add(ctx, -1, info.FullMethod)
			m.rpcStreams.add(ctx, 1, info.FullMethod, status.Code(err).String())
			return err
		}),
	}
}
