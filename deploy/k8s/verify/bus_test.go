package verify

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// probeSeconds is how long a probe may keep clients from a server that works.
const probeSeconds = 2

// checkBus finds NATS servers that clients reach late after a restart, and those that leave their
// clients without JetStream before they end: a server in lame duck mode switches it off and closes
// connections over lame_duck_duration, so there must be others to which they go.
func checkBus(r *rendering) (found []string) {
	w := r.workload("nats")
	for name, p := range map[string]*corev1.Probe{"startup": w.main().StartupProbe, "readiness": w.main().ReadinessProbe} {
		if p == nil || p.PeriodSeconds == 0 || p.InitialDelaySeconds+p.PeriodSeconds > probeSeconds || p.TimeoutSeconds > probeSeconds {
			found = append(found, fmt.Sprintf("the %s probe of nats costs more than %d s", name, probeSeconds))
		}
	}
	duck := false
	if l := w.main().Lifecycle; l != nil && l.PreStop != nil && l.PreStop.Exec != nil {
		duck = strings.Contains(strings.Join(l.PreStop.Exec.Command, " "), "-sl=ldm")
	}
	if several := w.replicas > 1; several != duck {
		found = append(found, fmt.Sprintf("%d servers of nats, lame duck mode %v", w.replicas, duck))
	}
	return found
}
