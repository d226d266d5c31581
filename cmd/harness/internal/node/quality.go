package node

import (
	"google.golang.org/protobuf/proto"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/quality"
)

// qualityConfig returns how this installation judges work: by its configuration and its environment. It
// returns nil if neither sets anything.
func (n *Node) qualityConfig() (*harnessv1.QualityConfig, error) {
	var retry *harnessv1.QualityRetryConfig
	if n.cfg.ModelEnv != nil {
		var err error
		if retry, err = quality.FromEnvironment(n.cfg.ModelEnv); err != nil {
			return nil, err
		}
	}
	if retry == nil && !n.cfg.QualityAlways {
		return nil, nil //nolint:nilnil // nothing is set
	}
	q := &harnessv1.QualityConfig{Retry: retry}
	if n.cfg.QualityAlways {
		q.Enabled = proto.Bool(true)
	}
	return q, nil
}
