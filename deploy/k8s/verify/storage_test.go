package verify

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

var storeSize = regexp.MustCompile(`max_file_store: (\d+)GiB`)

// checkStorage finds disks that are smaller than what is set aside on them, and
// copies for which there are too few servers.
func checkStorage(r *rendering) (found []string) {
	provision := r.config("provision")
	number := func(name string) int64 {
		n, err := strconv.ParseInt(provision[name], 10, 64)
		if err != nil || n < 1 {
			found = append(found, fmt.Sprintf("%s=%q is no number above zero", name, provision[name]))
		}
		return n
	}
	partitions, copies, size := number("HARNESS_PARTITIONS"), number("HARNESS_REPLICAS"), number("HARNESS_MAX_BYTES")
	nats := r.workload("nats")
	if copies != int64(nats.replicas) {
		found = append(found, fmt.Sprintf("%d copies on %d servers", copies, nats.replicas))
	}
	conf := r.config("nats")["nats.conf"]
	match := storeSize.FindStringSubmatch(conf)
	if match == nil || !strings.Contains(conf, "sync_interval: always") {
		return append(found, "nats.conf has no max_file_store in GiB, or does not sync always")
	}
	gib, _ := strconv.ParseInt(match[1], 10, 64)
	// Records, twice as much for blobs, an eighth for timers.
	if aside := partitions * (size + 2*size + size/8); aside > gib<<30 {
		found = append(found, fmt.Sprintf("%d bytes are set aside in a store of %d GiB", aside, gib))
	}
	for _, c := range nats.claims {
		if disk := c.Spec.Resources.Requests.Storage(); disk.Cmp(*resource.NewQuantity(gib<<30, resource.BinarySI)) < 0 {
			found = append(found, fmt.Sprintf("a store of %d GiB is on a disk of %s", gib, disk))
		}
	}
	if routes := strings.Count(conf, "nats-route://"); nats.replicas > 1 && routes != int(nats.replicas) {
		found = append(found, fmt.Sprintf("nats.conf has %d routes for %d servers", routes, nats.replicas))
	}
	return found
}

// checkScaler finds a scaler that does not count all partitions, once each.
func checkScaler(r *rendering) (found []string) {
	partitions, _ := strconv.Atoi(r.config("provision")["HARNESS_PARTITIONS"])
	for _, s := range r.scaledObjects {
		var sum []string
		for i, t := range s.Spec.Triggers {
			if want := "RUNS_" + strconv.Itoa(i); t.Metadata.Stream != want {
				found = append(found, fmt.Sprintf("trigger %s looks at %s and not at %s", t.Name, t.Metadata.Stream, want))
			}
			if want := "nats-headless.harness.svc.cluster.local:8222"; t.Type != "nats-jetstream" || t.Metadata.Account != "$G" || t.Metadata.Endpoint != want {
				found = append(found, fmt.Sprintf("trigger %s asks nobody that answers", t.Name))
			}
			sum = append(sum, t.Name)
		}
		if len(s.Spec.Triggers) != partitions {
			found = append(found, fmt.Sprintf("%d triggers for %d partitions", len(s.Spec.Triggers), partitions))
		}
		if s.Spec.Advanced.ScalingModifiers.Formula != strings.Join(sum, " + ") {
			found = append(found, "the formula is not the sum of the triggers")
		}
		if s.Spec.MinReplicaCount < 2 || s.Spec.MaxReplicaCount < s.Spec.MinReplicaCount {
			found = append(found, "the scaler does not keep two")
		}
	}
	return found
}
