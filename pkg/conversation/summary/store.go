package summary

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// Encode returns the stored form of a summary. Equal summaries have equal bytes.
func Encode(s *harnessv1.StructuredSummary) ([]byte, error) {
	return proto.MarshalOptions{Deterministic: true}.Marshal(s)
}

// Decode reads the stored form of a summary.
func Decode(data []byte) (*harnessv1.StructuredSummary, error) {
	s := &harnessv1.StructuredSummary{}
	if err := proto.Unmarshal(data, s); err != nil {
		return nil, fmt.Errorf("decode a summary: %w", err)
	}
	return s, nil
}
