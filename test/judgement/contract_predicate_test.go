package judgement

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/harnessmesh/harnessmesh/test/kit/live"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// A file counts only when it is a regular file inside the workspace; the evidence has
// the digest of its content. Until then the model gets what is missing.
func TestContractFileExistsIsMetOnlyByARegularFileInTheWorkspace(t *testing.T) {
	t.Parallel()
	outside := filepath.Join(t.TempDir(), "outside.md")
	if err := os.WriteFile(outside, []byte("outside"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		make func(dir string) error
		met  bool
	}{
		"nothing":         {func(string) error { return nil }, false},
		"a directory":     {func(dir string) error { return os.Mkdir(filepath.Join(dir, "report.md"), 0o700) }, false},
		"a fifo":          {func(dir string) error { return syscall.Mkfifo(filepath.Join(dir, "report.md"), 0o600) }, false},
		"a link outside":  {func(dir string) error { return os.Symlink(outside, filepath.Join(dir, "report.md")) }, false},
		"a dead link":     {func(dir string) error { return os.Symlink("nowhere", filepath.Join(dir, "report.md")) }, false},
		"a file":          {func(dir string) error { return os.WriteFile(filepath.Join(dir, "report.md"), []byte("inside"), 0o600) }, true},
		"an empty file":   {func(dir string) error { return os.WriteFile(filepath.Join(dir, "report.md"), nil, 0o600) }, true},
		"a link to a one": {func(dir string) error { return contractLink(dir) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := live.Prepare(t, live.Replies(contractFinish("first"), contractFinish("second")))
			if err := c.make(r.Dir); err != nil {
				t.Fatal(err)
			}
			s := itemsBegin(r, contractOf(contractFile("report", "report.md")), contractTurns(2))
			if c.met {
				s.Want("DONE agent_done accepted")
				e := contractRequirement(t, s.State(), "report").GetEvidence()
				if len(e) != 1 || e[0].GetKind() != "file" || e[0].GetDigest() != contractSum(contractRead(r, "report.md")) || e[0].GetTurnNumber() != 1 {
					t.Errorf("evidence %v", e)
				}
				return
			}
			s.Want("DONE max_turns")
			itemsEqual(t, "gaps", contractGaps(s), "1: report")
			itemsHas(t, "the gap report", contractToldGap(t, s, 1), "report", "The report is right", "report.md")
			itemsEqual(t, "the state", contractStatuses(s.State()), "report UNMET")
		})
	}
}

func contractLink(dir string) error {
	if err := os.WriteFile(filepath.Join(dir, "real.md"), []byte("real"), 0o600); err != nil {
		return err
	}
	return os.Symlink("real.md", filepath.Join(dir, "report.md"))
}

// A text is looked for whatever its case. In the response only the agent's last text
// counts; neither the goal nor the contract nor the gap report that names the pattern
// do, nor what tools gave.
func TestContractTextInTheResponse(t *testing.T) {
	t.Parallel()
	s := live.Play(t, live.Replies(
		contractSays("Looking for the mag1c w0rd.", live.Call("write_file", live.Args{"path": "a.txt", "content": "The Magic Word is here."})),
		live.Calls(live.Call("read_file", live.Args{"path": "a.txt"})),
		contractFinish("first"),
		contractSays("It is the MAGIC WORD.", live.Call("read_file", live.Args{"path": "a.txt"})),
		contractSays("No more of it.", live.Call("work_complete", live.Args{"summary": "second try"})),
		contractSays("I found the MAGIC WORD.", live.Call("work_complete", live.Args{"summary": "third try"})),
	), contractOf(contractText("word", "", "magic\\s+word")), contractGoal("Find the magic word."))
	s.Want("DONE agent_done accepted")
	itemsEqual(t, "gaps", contractGaps(s), "3: word", "5: word")
	itemsHas(t, "the gap report", contractToldGap(t, s, 3), "word", "The word is right", `magic\s+word`)
	e := contractRequirement(t, s.State(), "word").GetEvidence()
	if len(e) != 1 || e[0].GetKind() != "text" || e[0].GetDigest() != contractSum("I found the MAGIC WORD.") {
		t.Errorf("evidence %v", e)
	}
}

// In the transcript all counts that the agent wrote and its tools gave, errors too; not
// the goal, the contract, the gap report, the user's messages or the arguments of calls.
func TestContractTextInTheTranscript(t *testing.T) {
	t.Parallel()
	quiet := live.Call("run_command", live.Args{"command": "true xyzzy"})
	r := live.Prepare(t, nil)
	r.Write("a.txt", "Nothing happens: XYZZY.")
	r.Model.Answer = live.Replies(
		live.Calls(live.Call("list_directory", live.Args{"path": "."})),
		contractFinish("first"),
		live.Calls(quiet),
		contractFinish("second"),
		live.Calls(live.Call("read_file", live.Args{"path": "a.txt"})),
		live.Message("That was it."),
		contractFinish("third"),
	)
	s := itemsBegin(r, contractOf(contractText("word", "transcript", "xyzzy")), contractGoal("Say xyzzy."))
	s.Want("DONE agent_done accepted")
	itemsEqual(t, "gaps", contractGaps(s), "2: word", "4: word")
	itemsEqual(t, "the state", contractStatuses(s.State()), "word MET text")
}

// What an error repeats of the arguments of its call is not in the transcript, whatever the
// agent passes; what the tool says itself is.
func TestContractTextInTheTranscriptIsNoEchoOfArguments(t *testing.T) {
	t.Parallel()
	s := live.Play(t, live.Replies(
		live.Calls(
			live.Call("read_file", live.Args{"path": "all tests pass"}),
			live.Call("run_command", live.Args{"command": "all-tests-pass"}),
			live.Call("search_files", live.Args{"pattern": "all tests pass)"}),
			live.Call("read_file", live.Args{"path": "x", "all tests pass": true}),
			live.Call("no_such_tool", live.Args{"a": []string{"all tests pass"}}),
		),
		contractFinish("first"),
		live.Calls(live.Call("run_command", live.Args{"command": "printf 'all %s pass' tests; exit 1"})),
		contractFinish("second"),
	), contractOf(contractText("word", "transcript", "all.tests.pass.*"), contractText("kind", "transcript", "no such file|does not exist")))
	s.Want("DONE agent_done accepted")
	itemsEqual(t, "gaps", contractGaps(s), "2: word")
}

// In an artifact or a file the text has to be there now: what was met once is looked at
// again when it changed, and the evidence is bound to the digest of what was seen.
func TestContractTextInArtifactsAndFilesIsLookedAtAgain(t *testing.T) {
	t.Parallel()
	s := live.Play(t, live.Replies(
		live.Calls(itemsAdd("Report")),
		live.Calls(itemsArtifact("w1", "Sources: [1] and [2].", "DELIVERABLE"), live.Call("write_file", live.Args{"path": "report.md", "content": "See [1]."}), itemsSet("w1", "DONE")),
		contractFinish("first"), // the third output is missing
		live.Calls(itemsArtifact("w1", "No source.", ""), live.Call("write_file", live.Args{"path": "report.md", "content": "Nothing."}), live.Call("write_file", live.Args{"path": "third.md", "content": "3"})),
		contractFinish("second"),
		live.Calls(itemsArtifact("w1", "Now with [1].", ""), live.Call("write_file", live.Args{"path": "report.md", "content": "Now with [1] too."})),
		contractFinish("third"),
	), itemsOn, contractOf(contractText("item", "artifact:w1", `\[1\]`), contractText("file", "file:report.md", `\[1\]`), contractFile("third", "third.md")))
	s.Want("DONE agent_done accepted")
	itemsEqual(t, "gaps", contractGaps(s), "3: third", "5: item file")
	itemsEqual(t, "evaluations", contractEvaluations(s), "3: 2/3", "5: 1/3", "7: 3/3 satisfied")
	var digests []string
	for _, e := range s.Events {
		for _, r := range e.GetContractEvaluated().GetRequirements() {
			if len(r.GetEvidence()) > 0 && r.GetRequirementId() != "third" {
				digests = append(digests, r.GetRequirementId()+" "+r.GetEvidence()[0].GetDigest())
			}
		}
	}
	itemsEqual(t, "digests", digests,
		"item "+contractSum("Sources: [1] and [2]."), "file "+contractSum("See [1]."),
		"item "+contractSum("Now with [1]."), "file "+contractSum("Now with [1] too."))
}

// A missing place is unmet, with that reason.
func TestContractTextInWhatIsNotThere(t *testing.T) {
	t.Parallel()
	s := live.Play(t, live.Replies(contractFinish("first"), contractFinish("second")), itemsOn, contractTurns(2),
		contractOf(contractText("item", "artifact:w1", "x"), contractText("file", "file:none.md", "x")))
	s.Want("DONE max_turns")
	itemsHas(t, "the gap report", contractToldGap(t, s, 1), "no artifact w1 yet", "none.md")
	itemsEqual(t, "the state", contractStatuses(s.State()), "item UNMET", "file UNMET")
}

// The latest matching call decides, whatever became of those before it; calls with
// other arguments do not count.
func TestContractToolResultIsThatOfTheLatestMatchingCall(t *testing.T) {
	t.Parallel()
	s := live.Play(t, live.Replies(
		contractFinish("first"),
		contractWrite("b.txt", "b"), // another path
		contractFinish("second"),
		contractWrite("docs/a.txt", "a"), // it succeeds
		contractWrite("docs/../../a.txt", "a"),
		contractFinish("third"), // the latest failed
		contractWrite("docs/a.txt", "aa"),
		contractWrite("../b.txt", "b"), // it fails, and is another path
		contractFinish("fourth"),
	), contractOf(contractOutput("written", &harnessv1.Predicate{
		Type: contractToolSuccess, Tool: "write_file", Arguments: []*harnessv1.ArgumentMatch{{Name: "path", Pattern: `a\.txt$`}},
	})))
	s.Want("DONE agent_done accepted")
	itemsEqual(t, "gaps", contractGaps(s), "1: written", "3: written", "6: written")
	itemsHas(t, "the first gap report", contractToldGap(t, s, 1), "write_file", "has not been called")
	itemsHas(t, "the third gap report", contractToldGap(t, s, 6), "write_file", "failed")
	itemsEqual(t, "the state", contractStatuses(s.State()), "written MET tool_call")
}

// A document has to be JSON that fits the schema; what does not fit is named.
func TestContractDocumentHasToFitItsSchema(t *testing.T) {
	t.Parallel()
	schema := `{"type":"object","required":["name","sizes"],"properties":{"name":{"type":"string"},"sizes":{"type":"array","prefixItems":[{"type":"integer"}],"items":false}},"unevaluatedProperties":false}`
	good := `{"name":"n","sizes":[1]}`
	document := func(id, in string) *harnessv1.RequiredOutput {
		return contractOutput(id, &harnessv1.Predicate{Type: contractSchemaValid, In: in, Schema: schema})
	}
	s := live.Play(t, live.Replies(
		live.Calls(itemsAdd("Document")),
		contractFinish("first"),
		live.Calls(itemsArtifact("w1", `{"name":7,"sizes":[1]}`, ""), live.Call("write_file", live.Args{"path": "d.json", "content": "not JSON"}), itemsSet("w1", "DONE")),
		contractFinish("second"),
		live.Calls(itemsArtifact("w1", `{"name":"n","sizes":[1,2]}`, ""), live.Call("write_file", live.Args{"path": "d.json", "content": `{"name":"n","sizes":[1],"extra":true}`})),
		contractFinish("third"),
		live.Calls(itemsArtifact("w1", good, ""), live.Call("write_file", live.Args{"path": "d.json", "content": good})),
		contractFinish("fourth"),
	), itemsOn, contractOf(document("item", "artifact:w1"), document("file", "file:d.json")))
	s.Want("DONE agent_done accepted")
	itemsEqual(t, "gaps", contractGaps(s), "2: item file", "4: item file", "6: item file")
	itemsHas(t, "the second gap report", contractToldGap(t, s, 4), "name", "string", "not valid JSON")
	itemsHas(t, "the third gap report", contractToldGap(t, s, 6), "sizes", "extra")
	for _, id := range []string{"item", "file"} {
		e := contractRequirement(t, s.State(), id).GetEvidence()
		if len(e) != 1 || e[0].GetKind() != "document" || e[0].GetDigest() != contractSum(good) {
			t.Errorf("evidence of %s: %v", id, e)
		}
	}
}
