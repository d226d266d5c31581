package hook_test

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/pkg/agent/hook"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

var update = flag.Bool("update", false, "write the table of topics to docs/hooks.md")

// TestEveryTopicHasOneRow: the topics of the proto are those of the table.
func TestEveryTopicHasOneRow(t *testing.T) {
	rows := map[harnessv1.HookTopic]int{}
	for _, topic := range hook.Topics() {
		rows[topic.ID]++
		if topic.Fires == "" || topic.Name() != hook.TopicName(topic.ID) {
			t.Errorf("incomplete row %+v", topic)
		}
		if topic.Replaceable != "" && !slices.Contains(topic.Payload, topic.Replaceable) {
			t.Errorf("%s replaces %s, which is not in its payload", topic.Name(), topic.Replaceable)
		}
		if slices.Contains(topic.Actions, replace) != (topic.Replaceable != "") {
			t.Errorf("%s allows REPLACE without a field, or the reverse", topic.Name())
		}
		if topic.Refusal != carryOn && !slices.Contains(topic.Actions, topic.Refusal) {
			t.Errorf("%s fails closed with an action that it does not allow", topic.Name())
		}
		if topic.ObservesOnly && len(topic.Actions) > 0 {
			t.Errorf("%s observes only and allows actions", topic.Name())
		}
	}
	for id := range harnessv1.HookTopic_name {
		if topic := harnessv1.HookTopic(id); (rows[topic] == 1) != (topic != harnessv1.HookTopic_HOOK_TOPIC_UNSPECIFIED) {
			t.Errorf("%s has %d rows", topic, rows[topic])
		}
	}
}

// docsPage shows the table between its header and the next empty line.
const docsPage, docsHeader = "../../../docs/hooks.md", "| topic | when | payload | may replace | other actions |\n|---|---|---|---|---|\n"

// TestDocsShowTheTopics compares docs/hooks.md with the table; -update writes it.
func TestDocsShowTheTopics(t *testing.T) {
	data, err := os.ReadFile(docsPage)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(data), docsHeader)
	got, after, ended := strings.Cut(rest, "\n\n")
	if !found || !ended {
		t.Fatalf("%s has no table of topics", docsPage)
	}
	want := docsRows()
	if got == want {
		return
	}
	if !*update {
		t.Fatalf("%s differs from topic.go; run this test with -update. It should have\n%s", docsPage, want)
	}
	if err := os.WriteFile(docsPage, []byte(before+docsHeader+want+"\n\n"+after), 0o644); err != nil {
		t.Fatal(err)
	}
}

// docsRows is a row of Markdown for each topic.
func docsRows() string {
	var rows []string
	quote := func(names ...string) string {
		var quoted []string
		for _, name := range names {
			if name != "" {
				quoted = append(quoted, "`"+name+"`")
			}
		}
		return strings.Join(quoted, ", ")
	}
	for _, topic := range hook.Topics() {
		var actions []string
		for _, a := range topic.Actions {
			if a != replace {
				actions = append(actions, hook.ActionName(a))
			}
		}
		cells := []string{quote(topic.Name()), topic.Fires, quote(topic.Payload...), quote(topic.Replaceable), strings.Join(actions, ", ")}
		if topic.ObservesOnly {
			cells[4] = "observes only"
		}
		row := "|"
		for _, cell := range cells {
			row += strings.TrimRight(fmt.Sprintf(" %s", cell), " ") + " |"
		}
		rows = append(rows, row)
	}
	return strings.Join(rows, "\n")
}
