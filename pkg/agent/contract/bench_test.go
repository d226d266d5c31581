package contract

import (
	"fmt"
	"testing"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

func BenchmarkJudge(b *testing.B) {
	c := &harnessv1.TaskContract{}
	for i := range 30 {
		p := &harnessv1.Predicate{Type: fileExists, Path: fmt.Sprintf("out/%d.md", i)}
		switch i % 3 {
		case 1:
			p = &harnessv1.Predicate{Type: containsText, In: "artifact:w1", Pattern: "a b"}
		case 2:
			p = &harnessv1.Predicate{Type: command, Command: "make test"}
		}
		c.RequiredOutputs = append(c.RequiredOutputs, &harnessv1.RequiredOutput{Id: fmt.Sprint("output-", i), Description: "A part of the work", Predicate: p})
	}
	c = Resolve(c)
	l := NewLedger(c)
	for i, r := range l.GetRequirements() {
		r.Why = "out/report.md: does not exist"
		if i%2 == 0 {
			r.Status, r.Confidence = isMet, 1
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		if v := Evaluate(c, l); len(Statuses(l)) == 0 || GapText(v.Gap) == "" {
			b.Fatal("nothing is missing")
		}
	}
}

func BenchmarkCompile(b *testing.B) {
	c := parse(b, `{"required_outputs": [{"id": "a", "predicate": {"type": "PREDICATE_TYPE_CUSTOM", "cel": "writes > 0"}},
		{"id": "b", "predicate": {"type": "PREDICATE_TYPE_JSON_SCHEMA_VALID", "in": "file:a", "schema": "{\"type\": \"object\"}"}},
		{"id": "c", "predicate": {"type": "PREDICATE_TYPE_CONTAINS_TEXT", "pattern": "tests? pass(ed)?"}}]}`)
	for b.Loop() {
		if _, err := Compile(c); err != nil {
			b.Fatal(err)
		}
	}
}
