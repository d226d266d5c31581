//go:build linux

package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/harnesstest"
)

func TestHelpPrintsWhatTheFlagPrints(t *testing.T) {
	t.Parallel()
	for _, verb := range [][]string{nil, {"run"}, {"agent"}, {"agent", "check"}, {"help"}} {
		flag, help := harnesstest.Call(t, nil, "", append(verb, "--help")...), harnesstest.Call(t, nil, "", append([]string{"help"}, verb...)...)
		if help.Code != 0 || help.Err != "" || help.Out != flag.Out || !strings.HasPrefix(help.Out, "Usage: harness "+strings.Join(verb, " ")) {
			t.Errorf("help %v: %+v, want %q", verb, help, flag.Out)
		}
	}
	if got := harnesstest.Call(t, nil, "", "help", "agent", "fly"); got.Code != 1 || got.Out != "" || got.Err != "harness: VERB: unknown verb \"agent fly\": harness help lists them\n" {
		t.Errorf("%+v", got)
	}
}

func TestVersionFlag(t *testing.T) {
	t.Parallel()
	if flag, verb := harnesstest.Call(t, nil, "", "--version"), harnesstest.Call(t, nil, "", "version"); flag != verb || !strings.HasPrefix(flag.Out, "harness ") {
		t.Errorf("%+v, want %+v", flag, verb)
	}
}

func TestCompletion(t *testing.T) {
	t.Parallel()
	f := harnesstest.ServeGateway(t)
	harnesstest.AddWideRuns(f)
	for line, want := range map[string]string{
		"inter":                              "interrupt\tStop what a run is doing and park it.\n",
		"agent ":                             "init\tWrite an example agent file and its contract.\ncheck\tCheck agent files and the files that they name.\nschema\tPrint the JSON Schema of a kind of file, for editors.\n",
		"agent ini":                          "init\tWrite an example agent file and its contract.\n",
		"--log-level w":                      "warn\t\n",
		"--log-level warn complet":           "completion\tPrint the script that completes command lines in bash, zsh or fish.\n",
		"complete ":                          "",
		"show --call":                        "--call\t" + flagHelp(t, "show", "call"),
		"run --output j":                     "json\t\njsonl\t\n",
		"run --output=j":                     "--output=json\t\n--output=jsonl\t\n",
		"run --yolo --rend":                  "--render\t" + flagHelp(t, "run", "render"),
		"run --no-such=":                     "",
		"run --agent ":                       ":files\n",
		"run --workspace ":                   ":dirs\n",
		"run words of a go":                  "",
		"run -- --outp":                      "",
		"list --status par":                  "parked\t\n",
		"help del":                           "delete\tDelete a parked or ended run with all its stored data.\n",
		"completion f":                       "fish\t\n",
		"completion fish ":                   "",
		"agent check ":                       ":files\n",
		"show --server SERVER r-b":           "r-bbbb2345\tparked: " + theGoal + "\n",
		"delete r-x --server SERVER r":       "r-aaaa2345\tparked: " + theGoal + "\nr-bbbb2345\tparked: " + theGoal + "\nr-cccc2345\tparked: " + theGoal + "\n",
		"run --server SERVER --continue r-c": "r-cccc2345\tparked: " + theGoal + "\n",
		"show --server unix:/nowhere r":      "",
		"show --data /nowhere r":             "",
	} {
		words := strings.Split(strings.ReplaceAll(line, "SERVER", f.Address), " ")
		if got := harnesstest.Call(t, nil, "", append([]string{"complete", "--"}, words...)...); got.Code != 0 || got.Err != "" || got.Out != want {
			t.Errorf("%s: %+v, want %q", line, got, want)
		}
	}
}

const theGoal = "Find out why the nightly build fails on arm64 and fix it,..."

// flagHelp returns the help of a flag on one line.
func flagHelp(t *testing.T, verb, flag string) string {
	t.Helper()
	got := harnesstest.Call(t, nil, "", "complete", "--", verb, "--")
	for line := range strings.Lines(got.Out) {
		if rest, found := strings.CutPrefix(line, "--"+flag+"\t"); found && len(rest) > 20 {
			return rest
		}
	}
	t.Fatalf("%s has no flag %s: %+v", verb, flag, got)
	return ""
}

// asHarness makes the test binary the program harness in a folder, for a PATH.
func asHarness(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	self, err := filepath.Abs(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(self, filepath.Join(dir, "harness")); err != nil {
		t.Fatal(err)
	}
	return dir
}
