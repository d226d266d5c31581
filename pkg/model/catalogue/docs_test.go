package catalogue

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the table of providers to docs/models.md")

const page = "../../../docs/models.md"

// table returns the table of the embedded providers.
func table() string {
	var b strings.Builder
	b.WriteString("\n| provider | wire | key | address | variable of another address | images, PDF |\n|---|---|---|---|---|---|\n")
	for _, p := range Default().Providers() {
		names := "`" + strings.Join(append([]string{p.Name}, p.Aliases...), "`, `") + "`"
		key := "`" + p.KeyVariable + "`"
		if p.KeyOptional {
			key = "[" + key + "]"
		}
		address := "none"
		if p.Address != "" {
			address = "`" + p.Address + "`"
		}
		media := []string{}
		if p.Images {
			media = append(media, "images")
		}
		if p.PDF {
			media = append(media, "PDF")
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | `%s` | %s |\n", names, joined(p.Wires), key, address, p.AddressVariable, strings.Join(media, ", "))
	}
	return b.String() + "\n"
}

func TestDocsListProviders(t *testing.T) {
	data, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	const command = "<!-- providers: go test ./pkg/model/catalogue -run Docs -update -->\n"
	before, rest, begins := strings.Cut(text, command)
	_, after, ends := strings.Cut(rest, "<!-- end -->")
	if !begins || !ends {
		t.Fatalf("%s has no place for the table of providers", page)
	}
	want := before + command + table() + "<!-- end -->" + after
	if want == text {
		return
	}
	if !*update {
		t.Fatalf("the table of providers in %s differs; run this test with -update", page)
	}
	if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestDocsListFields(t *testing.T) {
	data, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	provider, model := fieldRows(string(data), "| field of a provider |"), fieldRows(string(data), "| field of a model |")
	var p parser
	for _, members := range [][]member{p.identity(&Provider{}), p.access(&Provider{}), p.dialect(&Provider{})} {
		for _, m := range members {
			if !strings.Contains(provider, "`"+m.name) {
				t.Errorf("the field %s of providers is not in %s", m.name, page)
			}
		}
	}
	for _, m := range p.modelMembers(&placedModel{}, &priceList{}) {
		if !strings.Contains(model, "`"+m.name+"`") {
			t.Errorf("the field %s of models is not in %s", m.name, page)
		}
	}
}

// fieldRows returns the first column of the table with a header.
func fieldRows(text, header string) string {
	var names strings.Builder
	_, rest, _ := strings.Cut(text, header)
	for line := range strings.Lines(rest) {
		cells := strings.Split(line, " | ")
		if strings.TrimSpace(line) == "" {
			break
		}
		names.WriteString(cells[0])
	}
	return names.String()
}

func TestDocsExamplesParse(t *testing.T) {
	data, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	parsed := 0
	for _, block := range strings.Split(string(data), "```yaml\n")[1:] {
		example, _, _ := strings.Cut(block, "```")
		if !strings.HasPrefix(example, "models:") && !strings.HasPrefix(example, "providers:") {
			continue
		}
		parsed++
		if _, err := Default().Extend(page, []byte(example)); err != nil {
			t.Error(err)
		}
	}
	if parsed < 2 {
		t.Errorf("%s has %d examples of catalogue files, want one of models and one of providers", page, parsed)
	}
}
