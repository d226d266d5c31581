package jetstream

import (
	"fmt"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
)

// TestHousekeepingIsNoDenial: a refusal to delete a consumer that the client has replaced keeps no
// process from its work; that of any other message does.
func TestHousekeepingIsNoDenial(t *testing.T) {
	d := denial{noted: make(chan struct{})}
	refuse := func(subject string) {
		d.record(fmt.Errorf("%w: Permissions Violation for Publish to %q", nats.ErrPermissionViolation, subject))
	}
	refuse("$JS.API.CONSUMER.DELETE.RUNS_2.W6JwuUR19bMSIOfvAK669f_1")
	select {
	case <-d.noted:
		t.Error("it counts as a denial")
	default:
	}
	if err := d.err("nats://a"); err != nil {
		t.Error(err)
	}
	refuse("$JS.API.CONSUMER.CREATE.RUNS_2.x")
	if err := d.err("nats://a"); err == nil || !strings.Contains(err.Error(), "CONSUMER.CREATE") {
		t.Errorf("got %v", err)
	}
}
