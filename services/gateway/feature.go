package gateway

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"regexp"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/input"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

// Limits of features and entitlements.
const (
	// MaxFeatures bounds the features of an installation.
	MaxFeatures = 32
	// maxEntitlements bounds the entitlements of a run.
	maxEntitlements = 32
	allRuns         = 100 // percent
)

var (
	featureName     = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,63}$`)
	entitlementName = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}$`)
)

// CheckFeatures refuses features that cannot be decided or whose settings no run may have.
func CheckFeatures(features []*harnessv1.Feature) error {
	if n := len(features); n > MaxFeatures {
		return input.TooLarge("features", n, MaxFeatures, "features")
	}
	for i, f := range features {
		field := input.At("features", i)
		if !featureName.MatchString(f.GetName()) {
			return fault.Invalid(field+".name", "%q: must be a lower-case letter, then at most 63 of a-z 0-9 _ -", f.GetName())
		}
		if slices.ContainsFunc(features[:i], func(o *harnessv1.Feature) bool { return o.GetName() == f.GetName() }) {
			return fault.Invalid(field+".name", "another feature is named %q", f.GetName())
		}
		for j, ns := range f.GetNamespaces() {
			if err := input.CheckName(input.At(field+".namespaces", j), ns); err != nil {
				return err
			}
		}
		if share := f.GetShare(); f.Share != nil && !(share > 0 && share <= allRuns) {
			return fault.Invalid(field+".share", "%v: must be above 0, at most %d", share, allRuns)
		}
		for _, check := range []func(*harnessv1.LoopConfig) error{checkConfig, func(c *harnessv1.LoopConfig) error { return checkQualityConfig(c.GetQuality()) }} {
			if err := check(f.GetConfig()); err != nil {
				return fmt.Errorf("%s (%s): %w", field, f.GetName(), err)
			}
		}
	}
	return nil
}

// Features returns the names of the features that a run has, sorted, and their settings; nil if it
// has none or they set nothing. The result depends on the features and the name of the run alone.
func Features(features []*harnessv1.Feature, run runlog.Run) (names []string, config *harnessv1.LoopConfig) {
	for _, f := range features {
		if len(f.GetNamespaces()) > 0 && !slices.Contains(f.GetNamespaces(), run.Namespace) {
			continue
		}
		if f.Share != nil && place(f.GetName(), run) >= f.GetShare() {
			continue
		}
		names = append(names, f.GetName())
		if f.GetConfig() != nil {
			if config == nil {
				config = &harnessv1.LoopConfig{}
			}
			proto.Merge(config, f.GetConfig())
		}
	}
	slices.Sort(names)
	return names, config
}

// place returns where a run is among all runs for a feature: a percentage from 0 to below 100. Two
// features divide the runs differently.
func place(feature string, run runlog.Run) float64 {
	sum := sha256.Sum256([]byte(feature + "\x00" + run.Namespace + "\x00" + run.ID))
	return float64(binary.BigEndian.Uint32(sum[:])) / (1 << 32) * allRuns
}

// checkEntitlements validates the entitlements of a request.
func checkEntitlements(names []string) error {
	if n := len(names); n > maxEntitlements {
		return input.TooLarge("entitlements", n, maxEntitlements, "entitlements")
	}
	for i, name := range names {
		if !entitlementName.MatchString(name) {
			return fault.Invalid(input.At("entitlements", i), "%q: must be 1 to 64 of the characters A-Z a-z 0-9 _ . -", name)
		}
	}
	return nil
}
