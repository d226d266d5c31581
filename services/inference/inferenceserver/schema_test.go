package inferenceserver_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"google.golang.org/protobuf/types/known/timestamppb"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model"
	"github.com/harnessmesh/harnessmesh/pkg/model/catalogue"
	"github.com/harnessmesh/harnessmesh/pkg/model/provider"
	"github.com/harnessmesh/harnessmesh/pkg/quality"
	"github.com/harnessmesh/harnessmesh/services/inference/inferenceserver"
	"github.com/harnessmesh/harnessmesh/test/kit/modeltest"
)

// services are providers at their own addresses, one a wire, and one that takes no schema.
const services = `providers:
  - {name: chat, wire: chat, address: %[1]s, answer_schema: true}
  - {name: responses, wire: responses, address: %[1]s, answer_schema: true}
  - {name: messages, wire: messages, address: %[2]s, answer_schema: true}
  - {name: plain, wire: chat, address: %[1]s}
  - {name: elsewhere, wire: chat, address: "http://127.0.0.2:1/v1", address_variable: ELSEWHERE, answer_schema: true}
`

// atServices has models opened that are at the model server.
func (b *bed) atServices(cfg *inferenceserver.Config) {
	b.Helper()
	c, err := catalogue.Default().Extend("services.yaml", fmt.Appendf(nil, services, b.model.BaseURL(), b.model.MessagesURL()))
	if err != nil {
		b.Fatal(err)
	}
	env := map[string]string{"ELSEWHERE": b.model.BaseURL()}
	cfg.Open = func(ref string) (model.Provider, string, error) {
		p, name, err := provider.OpenWith(c, ref, func(name string) string { return env[name] })
		if closer, ok := p.(interface{ Close() error }); ok {
			b.Cleanup(func() { _ = closer.Close() })
		}
		return p, name, err
	}
}

// requestsOfJudges returns the requests of all judges.
func requestsOfJudges() []*harnessv1.JobRequest {
	kind := quality.KindOf(quality.Synthesis, nil, 1)
	return []*harnessv1.JobRequest{
		quality.ClassifyJob("goal", nil), quality.IntentJob("goal", nil, 1), quality.PlanJob("goal", kind, &harnessv1.QualityComplexity{}, nil),
		quality.VerifyJob("goal", "output", "none", "", ""),
	}
}

// TestServicesGetTheSchemaOfAnAnswer in the form of their wire, if the catalogue lists that they
// take one; a server at another address gets none.
func TestServicesGetTheSchemaOfAnAnswer(t *testing.T) {
	t.Parallel()
	for ref, sent := range map[string]bool{"chat:m": true, "responses:m": true, "messages:m": true, "plain:m": false, "elsewhere:m": false} {
		t.Run(ref, func(t *testing.T) {
			t.Parallel()
			all := requestsOfJudges()
			replies := make([]modeltest.Reply, len(all))
			for i := range replies {
				replies[i] = said("{}")
			}
			b := newBed(t, replies...)
			s := b.server(b.atServices)
			for i, r := range all {
				request := b.request()
				request.AnswerSchema = r.GetSchema()
				key := fmt.Sprint("j", i)
				b.create(b.jobOf(key, request, func(j *harnessv1.Job) { j.Model, j.CreateTime = ref, timestamppb.Now() }))
			}
			stop := b.Start(s.Run)
			for i := range all {
				if result := b.result(fmt.Sprint("j", i)); result.GetText() != "{}" || result.GetTries() != 1 {
					t.Errorf("%s: %v", all[i].GetPurpose(), result)
				}
			}
			stop()
			for _, r := range b.model.Requests() {
				if (r.Schema != nil) != sent || r.Schema != nil && !json.Valid(r.Schema) {
					t.Errorf("the schema is %s", r.Schema)
				}
			}
			if b.calls() != len(all) {
				t.Errorf("%d calls", b.calls())
			}
		})
	}
}

// TestARefusedSchemaIsLeftOut: the request is sent again without it, which is no try.
func TestARefusedSchemaIsLeftOut(t *testing.T) {
	t.Parallel()
	b := newBed(t, said("{}"), said("{}"))
	b.model.Temper.NoSchema = true
	request := b.request()
	request.AnswerSchema = requestsOfJudges()[3].GetSchema()
	b.create(b.jobOf("j", request, func(j *harnessv1.Job) { j.Model, j.MaxTries = "chat:m", 1 }))
	stop := b.work(b.atServices)
	defer stop()
	if result := b.result("j"); result.GetText() != "{}" || result.GetTries() != 1 {
		t.Errorf("%v", result)
	}
	requests := b.model.Requests()
	if len(requests) != 2 || requests[0].Refused == "" || requests[1].Schema != nil {
		t.Errorf("%d requests: %+v", len(requests), requests)
	}
}

// TestCustomServicesGetTheSchema with the request.
func TestCustomServicesGetTheSchema(t *testing.T) {
	t.Parallel()
	b, service := newBed(t), &customService{}
	service.replies = append(service.replies, returns(&harnessv1.JobResult{Text: "{}"}))
	request := b.request()
	request.AnswerSchema = `{"type":"object"}`
	b.create(b.jobOf("j", request, func(j *harnessv1.Job) { j.Model = service.serve(t) }))
	stop := b.work(nil)
	defer stop()
	b.result("j")
	if calls := service.calls(); len(calls) != 1 || calls[0].GetRequest().GetAnswerSchema() != `{"type":"object"}` {
		t.Errorf("called with %v", calls)
	}
}
