package gatewayhttp

import (
	"bytes"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/event/eventjson"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/tree"
)

// eventLine returns the name of an event and its line, whose first field is the name.
func eventLine(e *harnessv1.Event, seed bool) (name string, line []byte, err error) {
	line, err = eventjson.Event(e)
	name = eventjson.Type(e)
	if err != nil || !seed {
		return name, line, err
	}
	if state := swarmProgress(e); state != "" {
		line = bytes.Replace(line, []byte(`"type":"`+name+`"`), []byte(`"type":"`+toolSandbox+`","tool_name":"synthesis_swarm","state":"`+state+`"`), 1)
		return toolSandbox, line, nil
	}
	if other := seedName(e); other != "" {
		line = bytes.Replace(line, []byte(`"type":"`+name+`"`), []byte(`"type":"`+other+`"`), 1)
		name = other
	}
	return name, line, nil
}

// toolSandbox is the seed's name of the progress of a swarm.
const toolSandbox = "tool_sandbox"

// swarmProgress returns what a sub-agent of a swarm does: started or ended; empty if the event is of
// something else.
func swarmProgress(e *harnessv1.Event) string {
	switch {
	case tree.IsSwarmCall(e.GetAgentStarted().GetCallId()):
		return "started"
	case tree.IsSwarmCall(e.GetAgentEnded().GetCallId()):
		return "ended"
	}
	return ""
}

// seedName returns the seed's name of an event, an option of its field in event.proto; empty if
// it has none. A score has that of its type.
func seedName(e *harnessv1.Event) string {
	if s := e.GetQualityScored(); s != nil && s.GetType() != "" {
		return "harness_" + s.GetType()
	}
	m := e.ProtoReflect()
	set := m.WhichOneof(m.Descriptor().Oneofs().ByName("event"))
	if set == nil {
		return "" // an event of a newer server
	}
	return proto.GetExtension(set.Options(), harnessv1.E_SeedName).(string)
}
