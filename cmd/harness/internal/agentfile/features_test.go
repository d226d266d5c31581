package agentfile_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/agentfile"
)

func TestLoadFeatures(t *testing.T) {
	path := filepath.Join(t.TempDir(), "features.yaml")
	for text, want := range map[string]string{
		"features:\n  - {name: judged, namespaces: [acme], share: 12.5, config: {quality: {enabled: true}}}\n": "",
		"features:\n  - {name: judged, sahre: 3}\n":                                                            "features.yaml:2:",
		"features:\n  - {name: judged, share: 300}\n":                                                          "features[0].share",
		"features:\n  - {name: judged, config: {quality: {iterations: 9}}}\n":                                  "iterations",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		features, err := agentfile.LoadFeatures(path)
		if want == "" && (err != nil || len(features) != 1 || features[0].GetShare() != 12.5 || !features[0].GetConfig().GetQuality().GetEnabled()) {
			t.Errorf("%v, %v", features, err)
		}
		if want != "" && (err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path)) {
			t.Errorf("expected %q in %v", want, err)
		}
	}
}
