package fault

import (
	"context"
	"log/slog"
	"runtime/debug"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// ServerOptions are Unary and Stream.
func ServerOptions(logger *slog.Logger) []grpc.ServerOption {
	return []grpc.ServerOption{grpc.ChainUnaryInterceptor(Unary(logger)), grpc.ChainStreamInterceptor(Stream(logger))}
}

// Unary translates the errors of unary calls to statuses at the edge of a
// server, once. What is not an Error becomes INTERNAL with a fixed text, and
// its cause is logged here; so is a panic.
func Unary(logger *slog.Logger) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (resp any, err error) {
		defer func() { err = translate(logger, info.FullMethod, recover(), err) }()
		return next(ctx, req)
	}
}

// Stream is Unary for streams.
func Stream(logger *slog.Logger) grpc.StreamServerInterceptor {
	return func(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) (err error) {
		defer func() { err = translate(logger, info.FullMethod, recover(), err) }()
		return next(srv, stream)
	}
}

func translate(logger *slog.Logger, method string, panicked any, err error) error {
	if panicked != nil {
		logger.Error("rpc panicked", "method", method, "panic", panicked, "stack", string(debug.Stack()))
		return status.Error(codes.Internal, "internal error; the server's log has the cause")
	}
	if err == nil {
		return nil
	}
	st, known := Status(err)
	if !known {
		logger.Error("rpc failed", "method", method, "error", err)
	}
	return st.Err()
}
