package gatewayhttp

import (
	"testing"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// The id of a result names the last event before it. A client that comes back with it is sent
// the record of the result again, and events of the runs below may come first: it still
// receives no result twice.
func TestAResultThatWasSeenIsNotSentAfterEventsBelow(t *testing.T) {
	const result = `{"type":"result","status":"parked"}`
	root := &harnessv1.Event{Id: "4-0", Offset: "4-0~0,3,0,a"}
	below := &harnessv1.Event{Id: "left/2-0", RunId: "left", Offset: "4-0~0,3,0,b"}

	var p place
	if fresh, err := p.see(root); !fresh || err != nil || !p.rest([]byte(result)) {
		t.Fatalf("%v %v: not sent", fresh, err)
	}
	for range 2 {
		back, err := placeOf(p.String(), "id")
		if err != nil || back != p {
			t.Fatalf("%s is read as %+v: %v", p, back, err)
		}
		p = back
		if fresh, err := p.see(below); !fresh || err != nil {
			t.Fatalf("an event below: %v %v", fresh, err)
		}
		if p.rest([]byte(result)) {
			t.Errorf("sent again after an event below, at %s", p)
		}
	}
	if _, err := p.see(&harnessv1.Event{Id: "6-0", Offset: "6-0~0,3,0,b"}); err != nil || !p.rest([]byte(result)) {
		t.Errorf("%v: the result of a run that has worked since is not sent", err)
	}
}
