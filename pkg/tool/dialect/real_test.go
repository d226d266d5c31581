package dialect

import (
	"bufio"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
)

// leftOut names the tools of testdata that the dialect cannot express.
var leftOut = []string{}

func TestRealSchemasAreAcceptedByEveryService(t *testing.T) {
	file, err := os.Open("testdata/schemas.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	count, asText := 0, 0
	var refused []string
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var line struct {
			Server, Name string
			Schema       json.RawMessage
		}
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			t.Fatal(err)
		}
		count++
		name := Name("mcp__"+line.Server+"__", line.Name)
		converted, err := Convert(string(line.Schema))
		if err != nil {
			refused = append(refused, line.Server+" "+line.Name+": "+err.Error())
			continue
		}
		strict(t, name, converted.Schema)
		if converted.check == nil {
			t.Errorf("%s: its arguments are not checked", name)
		}
		asText += strings.Count(converted.Schema, "as text")
	}
	if count < 300 {
		t.Errorf("%d schemas, want at least 300", count)
	}
	if !slices.Equal(refused, leftOut) {
		t.Errorf("left out: %s", strings.Join(refused, "\n"))
	}
	t.Logf("%d schemas, %d values as text", count, asText)
}
