package gatewayhttp

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/harnessmesh/harnessmesh/docs/openapi"
	"github.com/harnessmesh/harnessmesh/pkg/event/eventjson"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/services/gateway"
)

// calling returns the context of the calls that a request makes, with its trace headers.
func calling(r *http.Request) context.Context {
	var pairs []string
	for _, name := range []string{"traceparent", "tracestate"} {
		value := strings.Join(r.Header.Values(name), ",")
		if value != "" && !strings.ContainsFunc(value, func(c rune) bool { return c < ' ' || c > '~' }) { // as metadata is
			pairs = append(pairs, name, value)
		}
	}
	return metadata.AppendToOutgoingContext(r.Context(), pairs...)
}

// answerJSON writes the answer to a call.
func answerJSON(w http.ResponseWriter, code int, body []byte) error {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	deliver(w, append(body, '\n'))
	return nil
}

// piece is the part of an answer for which a client has Patience.
const piece = 64 << 10

// deliver writes a body to a client that has a bounded time to read each piece. A client
// that has left or does not read gets no error.
func deliver(w http.ResponseWriter, body []byte) {
	p := &patient{w: w, control: http.NewResponseController(w), patience: defaultPatience}
	for part := range slices.Chunk(body, piece) {
		if _, err := p.Write(part); err != nil {
			return
		}
	}
}

// answerMessage writes a message in the JSON of package eventjson.
func answerMessage(w http.ResponseWriter, code int, m protoreflect.ProtoMessage) error {
	body, err := eventjson.Message(m)
	if err != nil {
		return err
	}
	return answerJSON(w, code, body)
}

func (s *server) index(w http.ResponseWriter, _ *http.Request) error {
	return answerJSON(w, http.StatusOK, []byte(`{"name":"harnessmesh","runs":"/v1/runs","openapi":"/openapi.json"}`))
}

func (s *server) description(w http.ResponseWriter, _ *http.Request) error {
	w.Header().Set("Content-Type", "application/json")
	deliver(w, openapi.Document)
	return nil
}

// start starts a run; a client that accepts a stream receives its events.
func (s *server) start(w http.ResponseWriter, r *http.Request) error {
	q := queryOf(r, "until", "no_deltas", "names", "tree")
	form, err := formOf(r, formJSON, formEvents, formLines)
	if err != nil {
		return err
	}
	watch, err := s.watchOf(r, q)
	if err != nil {
		return err
	}
	body, err := bodyOf(w, r, false)
	if err != nil {
		return err
	}
	start, err := startOf(body, q.namespace())
	if err != nil {
		return err
	}
	if start.request.RequestId, err = requestID(r, start.request.GetRequestId()); err != nil {
		return err
	}
	run, err := s.gateway.StartRun(calling(r), start.request)
	if err != nil {
		return start.written(err)
	}
	code := http.StatusCreated
	if run.GetExisted() {
		code = http.StatusOK
	}
	w.Header().Set("Location", locationOf(run))
	if form == formJSON {
		return answerMessage(w, code, run)
	}
	watch.request.Namespace, watch.request.RunId = run.GetNamespace(), run.GetRunId()
	return s.stream(w, r, form, code, watch)
}

func locationOf(run *harnessv1.StartRunResponse) string {
	return fmt.Sprintf("/v1/runs/%s?namespace=%s", run.GetRunId(), run.GetNamespace())
}

// list lists runs, newest first.
func (s *server) list(w http.ResponseWriter, r *http.Request) error {
	q := queryOf(r, "status", "page_size", "page_token")
	request := &harnessv1.ListRunsRequest{
		Namespace: q.namespace(), Statuses: q.statuses(), PageSize: uint32(q.number("page_size", 32)), PageToken: q.text("page_token"), //nolint:gosec // parsed as 32 bits
	}
	if q.err != nil {
		return q.err
	}
	page, err := s.gateway.ListRuns(calling(r), request)
	if err != nil {
		return err
	}
	runs, err := list(page.GetRuns(), eventjson.Run)
	if err != nil {
		return err
	}
	token, _ := json.Marshal(page.GetNextPageToken()) // a string: it cannot fail
	return answerJSON(w, http.StatusOK, fmt.Appendf(nil, `{"runs":%s,"next_page_token":%s}`, runs, token))
}

// list returns an array of what write returns for each message.
func list[M any](messages []M, write func(M) ([]byte, error)) ([]byte, error) {
	out := []byte("[")
	for i, m := range messages {
		item, err := write(m)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, item...)
	}
	return append(out, ']'), nil
}

// run returns the status of a run: the last line of its stream, with the run itself and
// its queued inputs.
func (s *server) run(w http.ResponseWriter, r *http.Request) error {
	q := queryOf(r, "spec")
	withSpec := q.flag("spec")
	if q.err != nil {
		return q.err
	}
	ctx, id := calling(r), r.PathValue("run_id")
	resp, err := s.gateway.GetRun(ctx, &harnessv1.GetRunRequest{Namespace: q.namespace(), RunId: id})
	if err != nil {
		return err
	}
	result := resp.GetResult()
	if result == nil {
		if result, err = s.soFar(ctx, resp.GetRun()); err != nil {
			return err
		}
	}
	if result, err = s.whole(ctx, q.namespace(), id, result); err != nil {
		return err
	}
	body, err := eventjson.Result(id, result)
	if err != nil {
		return err
	}
	run, err := eventjson.Run(resp.GetRun())
	if err != nil {
		return err
	}
	waiting, err := list(resp.GetWaiting(), func(m *harnessv1.WaitingInput) ([]byte, error) { return eventjson.Message(m) })
	if err != nil {
		return err
	}
	body = with(with(body, "run", run), "waiting", waiting)
	if withSpec {
		spec := []byte("null")
		if resp.GetSpec() != nil {
			if spec, err = eventjson.Message(resp.GetSpec()); err != nil {
				return err
			}
		}
		body = with(body, "spec", spec)
	}
	return answerJSON(w, http.StatusOK, body)
}

// soFar returns the current figures of a run that is running.
func (s *server) soFar(ctx context.Context, run *harnessv1.Run) (*harnessv1.HarnessResult, error) {
	state, err := s.gateway.GetState(ctx, &harnessv1.GetStateRequest{Namespace: run.GetNamespace(), RunId: run.GetRunId()})
	if err != nil {
		return nil, err
	}
	at := state.GetSnapshot()
	return &harnessv1.HarnessResult{
		Status: run.GetStatus(), Answer: at.GetAnswer(), Summary: at.GetSummary(), TurnCount: run.GetTurnCount(),
		ToolCalls: at.GetSpent().GetToolCallsTotal(), Usage: at.GetSpent().GetUsage(), Duration: at.GetSpent().GetActive(),
		Coverage: at.GetCoverageLedger().GetCoverage(), Output: at.GetOutput(), Model: at.GetAnswerModel(),
		Transcript: gateway.TranscriptPath(run.GetNamespace(), run.GetRunId()),
	}, nil
}

// with returns an object with one more field.
func with(object []byte, name string, value []byte) []byte {
	return fmt.Appendf(object[:len(object)-1], `,%q:%s}`, name, value)
}

// delete deletes a parked or ended run.
func (s *server) delete(w http.ResponseWriter, r *http.Request) error {
	q := queryOf(r)
	if q.err != nil {
		return q.err
	}
	answer, err := s.gateway.DeleteRun(calling(r), &harnessv1.DeleteRunRequest{Namespace: q.namespace(), RunId: r.PathValue("run_id")})
	if err != nil {
		return err
	}
	return answerMessage(w, http.StatusOK, answer)
}
