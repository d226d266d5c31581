package agentfile

import (
	"fmt"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/services/gateway"
)

// LoadFeatures reads a file of features. The error names the file, and for content that is no
// feature the line.
func LoadFeatures(path string) ([]*harnessv1.Feature, error) {
	data, err := Read(path)
	if err != nil {
		return nil, err
	}
	r := &report{}
	d, root := open(path, data, nil, r, places{})
	set := &harnessv1.FeatureSet{}
	if root != nil {
		d.message(set.ProtoReflect(), root, "", "file of features")
	}
	if err := r.err(); err != nil {
		return nil, err
	}
	if err := gateway.CheckFeatures(set.GetFeatures()); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return set.GetFeatures(), nil
}
