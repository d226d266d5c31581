package judgement

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/harnessmesh/harnessmesh/test/kit/live"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/tokens"
)

// The estimate of the first request counts its tools: with sixty of them it is near what the
// request has, before any report of the provider.
func TestContextGaugeCountsToolsFromTurnOne(t *testing.T) {
	t.Parallel()
	var tools []*harnessv1.ToolSpec
	for i := range 60 {
		tool := jitClient(fmt.Sprintf("lookup_%02d", i), &harnessv1.ToolAnnotations{Reads: true})
		tool.Description = "Looks up an order of the shop in the archive of a year, and returns its lines, its payments and where it was sent."
		tool.ParametersSchema = `{"type":"object","properties":{` + `"year":{"type":"integer","minimum":1990,"description":"The year of the archive, such as 2025."},` +
			`"number":{"type":"string","description":"The number of the order as it is printed on the invoice, without the letters before it."},` +
			`"fields":{"type":"array","items":{"type":"string","enum":["lines","payments","address","notes"]},"description":"What to return; left out, everything."},` +
			`"language":{"type":["string","null"],"description":"Language of the notes, as in ISO 639-1."}},"required":["year","number"],"additionalProperties":false}`
		tools = append(tools, tool)
	}
	s := live.Play(t, live.Replies(live.Done()), jitClients(tools...))
	s.Want("DONE agent_done accepted")
	request := uint32(0)
	model := "openai:" + s.ID
	for _, m := range s.Requests[0].Messages {
		request += uint32(tokens.Count(model, m.Content)) + tokens.MessageOverhead
	}
	for _, tool := range s.Requests[0].Tools {
		raw, err := json.Marshal(tool.Parameters)
		if err != nil {
			t.Fatal(err)
		}
		request += uint32(tokens.Count(model, tool.Name) + tokens.Count(model, tool.Description) + tokens.Count(model, string(raw)))
	}
	var gauge uint32
	for _, e := range s.Events {
		if u := e.GetContextUsage(); u != nil && gauge == 0 {
			gauge = u.GetUsedTokens()
		}
	}
	// What is counted is scaled for a model that is not in the catalogue.
	want := float64(request)*s.State().GetTokenBudget().GetFactor() + float64(s.State().GetConfig().GetContext().GetSafetyBuffer())
	t.Logf("gauge %d, request %d, estimate of it %.0f", gauge, request, want)
	if request < 9_000 || float64(gauge) < want*0.97 || float64(gauge) > want*1.03 {
		t.Errorf("the gauge shows %d tokens, the first request has %d, about %.0f", gauge, request, want)
	}
}
