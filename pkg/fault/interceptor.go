package fault

import (
	"context"
	"log/slog"
	"runtime/debug"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// ServerOptions returns Unary and Stream as options of a server.
func ServerOptions(logger *slog.Logger) []grpc.ServerOption {
	return []grpc.ServerOption{grpc.ChainUnaryInterceptor(Unary(logger)), grpc.ChainStreamInterceptor(Stream(logger))}
}

// Unary converts the errors of unary calls to statuses, once, at the edge of a server.
// An error that is not an Error, and a panic, become INTERNAL with a fixed text; the
// cause is logged here.
func Unary(logger *slog.Logger) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (resp any, err error) {
		defer func() { err = translate(logger, info.FullMethod, recover(), err) }()
		return next(ctx, req)
	}
}

// Stream does for streams what Unary does for unary calls.
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
