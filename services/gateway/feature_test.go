package gateway_test

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/services/gateway"
)

func turns(n uint32) *harnessv1.LoopConfig {
	return &harnessv1.LoopConfig{Stop: &harnessv1.StopConfig{MaxTurns: proto.Uint32(n)}}
}

func TestFeaturesOfARun(t *testing.T) {
	features := []*harnessv1.Feature{
		{Name: "wide", Config: turns(7)},
		{Name: "acme", Namespaces: []string{"acme"}, Config: turns(9)},
		{Name: "quarter", Share: proto.Float64(25)},
	}
	quarter := 0
	for i := range 4000 {
		run := runlog.Run{Namespace: "other", ID: strconv.Itoa(i)}
		names, config := gateway.Features(features, run)
		if again, _ := gateway.Features(features, run); !slices.Equal(names, again) {
			t.Fatalf("%v, then %v", names, again)
		}
		if !slices.Contains(names, "wide") || slices.Contains(names, "acme") || !slices.IsSorted(names) || config.GetStop().GetMaxTurns() != 7 {
			t.Fatalf("%v, %v", names, config)
		}
		if slices.Contains(names, "quarter") {
			quarter++
		}
	}
	if quarter < 900 || quarter > 1100 {
		t.Errorf("%d of 4000 runs have a feature with a share of 25 %%", quarter)
	}
	if _, config := gateway.Features(features, runlog.Run{Namespace: "acme", ID: "r"}); config.GetStop().GetMaxTurns() != 9 || features[0].GetConfig().GetStop().GetMaxTurns() != 7 {
		t.Errorf("the later feature sets %v", config)
	}
}

func TestFeaturesAreChecked(t *testing.T) {
	for want, features := range map[string][]*harnessv1.Feature{
		"features[0].name":                      {{Name: "No"}},
		"features[1].name":                      {{Name: "a"}, {Name: "a"}},
		"features[0].share":                     {{Name: "a", Share: proto.Float64(0)}},
		"features[0].share: NaN":                {{Name: "a", Share: proto.Float64(math.NaN())}},
		"features[0].namespaces[0]":             {{Name: "a", Namespaces: []string{"b c"}}},
		"features[0] (a): spec.config.stop.max": {{Name: "a", Config: turns(0)}},
		"features":                              make([]*harnessv1.Feature, gateway.MaxFeatures+1),
	} {
		if err := gateway.CheckFeatures(features); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	if err := gateway.CheckFeatures([]*harnessv1.Feature{{Name: "a", Share: proto.Float64(100), Config: turns(3)}}); err != nil {
		t.Error(err)
	}
}
