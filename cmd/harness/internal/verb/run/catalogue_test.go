package run_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/harnesstest"
	"github.com/harnessmesh/harnessmesh/test/kit/modeltest"
)

// TestProvidersOfACatalogueFile: a run uses a provider and a model of the file, and knows
// which efforts the model takes.
func TestProvidersOfACatalogueFile(t *testing.T) {
	t.Parallel()
	s := modeltest.NewServerFunc(t, func(*modeltest.Request) modeltest.Reply {
		return modeltest.Reply{Calls: []modeltest.Call{{ID: "a", Name: "work_complete", Arguments: `{"summary":"done"}`}}}
	})
	dir := t.TempDir()
	file := harnesstest.Write(t, filepath.Join(dir, "own.yaml"), `providers: [{name: corp, wire: chat, address: "`+s.BaseURL()+`", key_variable: CORP_KEY}]
models: [{ref: "corp:m", window: 32768, efforts: []}]
`)
	env := map[string]string{"HARNESS_CATALOGUE": file, "CORP_KEY": "sk-1"}
	args := []string{"run", "--data", filepath.Join(dir, "data"), "--workspace", dir, "--model", "corp:m"}
	got := harnesstest.Call(t, env, "", append(args, "--effort", "max", "go")...)
	if got.Code != 1 || !strings.Contains(got.Err, "model corp:m takes no effort: leave it out") {
		t.Errorf("%+v", got)
	}
	if got := harnesstest.Call(t, env, "", append(args, "go")...); got.Code != 0 || len(s.Requests()) != 1 {
		t.Errorf("%d requests, %+v", len(s.Requests()), got)
	}
	delete(env, "CORP_KEY")
	if got := harnesstest.Call(t, env, "", append(args, "go")...); got.Code != 1 || !strings.Contains(got.Err, "--model: CORP_KEY is not set: set it to the key of corp") {
		t.Errorf("%+v", got)
	}
}
