package workitem

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

const (
	controlForm = `{"verdict": "pass" or "fail", "checks": [{"name": "…", "result": "pass" or "fail", "detail": "…"}, …], "summary": "…"}`

	// Limits of the failed checks in a ledger.
	maxFailedChecks = 16
	maxFailedCheck  = 160 // bytes
)

// parseControl parses a CONTROL artifact. The error ends a sentence that starts with the
// expected form of the artifact.
func parseControl(document string) (*harnessv1.ControlVerdict, error) {
	var object map[string]json.RawMessage
	decoder := json.NewDecoder(strings.NewReader(document))
	if err := decoder.Decode(&object); err != nil {
		var mismatch *json.UnmarshalTypeError
		switch trimmed := strings.TrimSpace(document); {
		case strings.HasPrefix(trimmed, "```"):
			return nil, errors.New("this begins with a ``` fence; give the object alone")
		case errors.As(err, &mismatch):
			return nil, fmt.Errorf("this is a JSON %s", mismatch.Value)
		}
		return nil, fmt.Errorf("this is not valid JSON: %s", content.Line(err.Error(), 120))
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is text behind the object")
	}
	if object == nil {
		return nil, errors.New("this is null")
	}
	verdict, err := passOrFail("verdict", object["verdict"])
	if err != nil {
		return nil, err
	}
	var checks []json.RawMessage
	if err := json.Unmarshal(orNull(object["checks"]), &checks); err != nil || checks == nil {
		return nil, errors.New("checks is missing or no list")
	}
	if len(checks) == 0 {
		return nil, errors.New("checks is empty; name what was checked")
	}
	found := &harnessv1.ControlVerdict{Passed: verdict}
	for n, raw := range checks {
		failed, err := parseCheck(fmt.Sprintf("checks[%d]", n), raw)
		if err != nil {
			return nil, err
		}
		if failed != "" && len(found.FailedChecks) < maxFailedChecks {
			found.FailedChecks = append(found.FailedChecks, content.Line(failed, maxFailedCheck))
		}
	}
	summary, err := text("summary", object["summary"])
	if err != nil {
		return nil, err
	}
	if strings.TrimSpace(summary) == "" {
		return nil, errors.New("summary is missing or blank")
	}
	return found, nil
}

// parseCheck returns "name: detail" of a check that failed; empty for one that passed.
func parseCheck(where string, raw json.RawMessage) (string, error) {
	var check map[string]json.RawMessage
	if err := json.Unmarshal(raw, &check); err != nil || check == nil {
		return "", fmt.Errorf("%s is no object", where)
	}
	name, err := text(where+".name", check["name"])
	if err != nil {
		return "", err
	}
	if strings.TrimSpace(name) == "" {
		return "", fmt.Errorf("%s.name is missing or blank", where)
	}
	passed, err := passOrFail(where+".result", check["result"])
	if err != nil {
		return "", err
	}
	detail, err := text(where+".detail", check["detail"])
	switch {
	case err != nil:
		return "", err
	case passed:
		return "", nil
	case strings.TrimSpace(detail) == "":
		return name, nil
	}
	return name + ": " + detail, nil
}

func passOrFail(where string, raw json.RawMessage) (bool, error) {
	if len(raw) == 0 {
		return false, fmt.Errorf(`%s is missing; it is "pass" or "fail"`, where)
	}
	switch {
	case bytes.Equal(raw, []byte(`"pass"`)):
		return true, nil
	case bytes.Equal(raw, []byte(`"fail"`)):
		return false, nil
	}
	return false, fmt.Errorf(`%s is %s; it has to be "pass" or "fail"`, where, content.Line(string(raw), 60))
}

// text parses an optional string.
func text(where string, raw json.RawMessage) (string, error) {
	var s string
	if err := json.Unmarshal(orNull(raw), &s); err != nil {
		return "", fmt.Errorf("%s is no text", where)
	}
	return s, nil
}

func orNull(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return json.RawMessage("null")
	}
	return raw
}

// FailedControl is an audit that failed: its verdict is fail, or pass with a failed check.
type FailedControl struct {
	// Key is item@digest, with the digest of the artifact: an audit that is stored again
	// with another text has another key.
	Key string
	// ItemID and Title are those of its item.
	ItemID, Title string
	// Checks are the failed checks, as "name: detail"; empty if it names none.
	Checks []string
}

// failedAudit reports whether an item has a CONTROL artifact whose verdict is fail, or
// pass with a failed check.
func failedAudit(i *harnessv1.WorkItem) bool {
	c := i.GetControl()
	return c != nil && i.GetRole() == control && (!c.GetPassed() || len(c.GetFailedChecks()) > 0)
}

// FailedControls returns the CONTROL artifacts whose verdict is fail, or pass with a
// failed check, in the order of the ledger. It returns none if any item is a revision,
// because the agent has started to act on them.
func FailedControls(l *harnessv1.WorkItemLedger) []FailedControl {
	var failed []FailedControl
	for _, i := range l.GetItems() {
		if i.GetRevisionOf() != "" {
			return nil
		}
		if failedAudit(i) {
			failed = append(failed, FailedControl{
				Key: i.GetId() + "@" + i.GetArtifactDigest(), ItemID: i.GetId(), Title: i.GetTitle(), Checks: i.GetControl().GetFailedChecks(),
			})
		}
	}
	return failed
}

// maxRequests bounds the failed audits in a request for a revision.
const maxRequests = 8

// RevisionRequest returns the text for the model about failed audits: which checks
// failed, and that it has to flag a revision. Empty if there are none.
func RevisionRequest(failed []FailedControl) string {
	if len(failed) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("An audit failed and no revision has been flagged.\n")
	for _, f := range failed[:min(len(failed), maxRequests)] {
		if len(f.Checks) == 0 {
			fmt.Fprintf(&b, "%s %q failed; it names no failed check, read it again.\n", f.ItemID, f.Title)
			continue
		}
		fmt.Fprintf(&b, "%s %q failed these checks:\n", f.ItemID, f.Title)
		for _, check := range f.Checks {
			b.WriteString("- " + check + "\n")
		}
	}
	if more := len(failed) - maxRequests; more > 0 {
		fmt.Fprintf(&b, "%s more failed; %s shows them.\n", count(more, "audit"), List)
	}
	fmt.Fprintf(&b, "The audit is open until then. For each item at fault call %s with what has to change, make the revision, and audit again.", FlagRevision)
	return b.String()
}
