package transcripts

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"pgregory.net/rapid"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/test/kit/rejudge"
)

// rejudge makes the decisions about judged work again and returns what is not as it is stored.
func (d *driver) rejudge(log []*harnessv1.Record) []string {
	l := &rejudge.Log{}
	var wrong []string
	for i, rec := range log {
		e := runlog.Entry{Run: runlog.Run{Namespace: rec.GetNamespace(), ID: rec.GetRunId()}, Sequence: d.seqs[i], Header: runlog.HeaderOf(rec), Record: rec}
		if w := l.Add(e); w != "" {
			wrong = append(wrong, w)
		}
	}
	return wrong
}

// answerJobs draws what the models answer jobs, or that they are down.
func answerJobs(rt *rapid.T, d *driver) {
	if rapid.IntRange(0, 3).Draw(rt, "down") == 0 {
		d.play("judge down overloaded")
		return
	}
	for purpose, answers := range map[string][]string{
		"complexity": {`{"level":"SIMPLE"}`, `{"level":"COMPLEX","expected":{"min_documents":1}}`, "so so", "! overloaded"},
		"intent":     {`{"kind":"drafting","confidence":0.9}`, `{"kind":"recommendation","confidence":0.8}`, `{"kind":"nothing"}`, "! overloaded"},
		"plan":       {`{"plans":[{"description":"one","subtasks":["a"],"estimated_turns":2},{"description":"two"}]}`, "{}", "! overloaded"},
		"verify":     {`{"passed":true,"score":0.9}`, `{"passed":false,"score":0.3,"issues":["thin"]}`, `{"passed":false,"score":0.55}`, `{"score":7}`, "! overloaded"},
	} {
		d.judges.cycle[purpose] = rapid.SliceOfN(rapid.SampledFrom(answers), 1, 6).Draw(rt, purpose)
	}
}

// TestAlteredJudgingIsNoticed alters each stored value of judging in the log of each story with quality: the
// decision that is made again differs.
func TestAlteredJudgingIsNoticed(t *testing.T) {
	altered := map[string]int{}
	for _, name := range []string{"accepted", "healed", "degraded", "judge-down"} {
		story, err := os.ReadFile("testdata/quality-" + name + ".txt")
		if err != nil {
			t.Fatal(err)
		}
		d := newDriver(t)
		tellTo(t, d, string(story))
		for i := range d.log {
			for _, v := range valuesOf(d.log[i]) {
				log := slices.Clone(d.log)
				log[i] = proto.CloneOf(d.log[i])
				alter(valuesOf(log[i]), v)
				if proto.Equal(log[i], d.log[i]) {
					t.Fatalf("%s: %s is not altered", name, v.path)
				}
				altered[v.path]++
				if len(d.rejudge(log)) == 0 {
					t.Errorf("%s: version %d has another %s, and nothing is wrong", name, i+1, v.path)
				}
			}
		}
	}
	for _, path := range []string{
		"QualityVerified.score", "QualityVerified.passed", "QualityScored.score", "QualityAlert.severity", "QualityAlert.checkpoint", "QualityContract.passed",
		"QualityRetry.attempt", "QualityDegraded.best_score", "QualityVerdict.delivered", "QualityVerdict.verifier_score", "QualityAttempt.combined", "JobState.text",
		"QualityComplexity.level", "QualityProfile.total_runs",
	} {
		if altered[path] == 0 {
			t.Errorf("no story has %s", path)
		}
	}
}

// stored is a value in a record: a field that is set, in a message that is reached through steps.
type stored struct {
	path string // the name of the message and the field
	at   string // unique in the record
	in   protoreflect.Message
	fd   protoreflect.FieldDescriptor
}

// valuesOf returns the scalar values of judging in a record, in a fixed order.
func valuesOf(rec *harnessv1.Record) []stored {
	var found []stored
	var walk func(m protoreflect.Message, at string)
	walk = func(m protoreflect.Message, at string) {
		if unread[string(m.Descriptor().Name())] {
			return
		}
		fields := m.Descriptor().Fields()
		for i := range fields.Len() {
			fd := fields.Get(i)
			path := fmt.Sprintf("%s.%s", m.Descriptor().Name(), fd.Name())
			if !m.Has(fd) || unread[path] || fd.IsMap() {
				continue
			}
			here := at + "." + string(fd.Name())
			switch {
			case fd.IsList() && fd.Kind() == protoreflect.MessageKind:
				for j := range m.Get(fd).List().Len() {
					walk(m.Get(fd).List().Get(j).Message(), fmt.Sprint(here, j))
				}
			case fd.Kind() == protoreflect.MessageKind:
				walk(m.Get(fd).Message(), here)
			case !fd.IsList():
				found = append(found, stored{path: path, at: here, in: m, fd: fd})
			}
		}
	}
	for i, e := range rec.GetEvents() {
		m := e.ProtoReflect()
		if fd := m.WhichOneof(m.Descriptor().Oneofs().ByName("event")); strings.HasPrefix(string(fd.Name()), "quality_") {
			walk(m.Get(fd).Message(), fmt.Sprint("event", i))
		}
	}
	for i, a := range rec.GetJournal().GetModelResponded().GetAlerts() {
		walk(a.ProtoReflect(), fmt.Sprint("alert", i))
	}
	for i, o := range rec.GetStep().GetObserved() {
		if o.GetJob() != nil {
			walk(o.ProtoReflect(), fmt.Sprint("observed", i))
		}
	}
	if q := rec.GetStep().GetSnapshot().GetQuality(); q != nil {
		walk(q.ProtoReflect(), "state")
	}
	if v := rec.GetStep().GetResult().GetQuality(); v != nil {
		walk(v.ProtoReflect(), "result")
	}
	return found
}

// unread are messages and fields that no decision about the work reads or changes.
var unread = map[string]bool{
	"Timestamp": true, "Duration": true, "JobState.model": true, "ToolResultFigures": true,
}

// alter changes the value that is at the place of another one.
func alter(all []stored, like stored) {
	v := all[slices.IndexFunc(all, func(v stored) bool { return v.at == like.at })]
	value := v.in.Get(v.fd)
	switch v.fd.Kind() {
	case protoreflect.StringKind:
		if v.path == "JobState.text" { // a judge that says no more than this
			value = protoreflect.ValueOfString("")
		}
		value = protoreflect.ValueOfString(value.String() + "x")
	case protoreflect.DoubleKind:
		value = protoreflect.ValueOfFloat64(value.Float() + 0.25)
	case protoreflect.BoolKind:
		value = protoreflect.ValueOfBool(!value.Bool())
	case protoreflect.Uint32Kind:
		value = protoreflect.ValueOfUint32(uint32(value.Uint()) + 1)
	case protoreflect.Uint64Kind:
		value = protoreflect.ValueOfUint64(value.Uint() + 1)
	case protoreflect.Int64Kind:
		value = protoreflect.ValueOfInt64(value.Int() + 1)
	case protoreflect.EnumKind:
		value = protoreflect.ValueOfEnum(value.Enum() + 1)
	default:
		panic(v.fd.Kind())
	}
	v.in.Set(v.fd, value)
}
