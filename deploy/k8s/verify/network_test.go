package verify

import (
	"fmt"
	"slices"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// destinations are the names of the workloads that the policies let a workload
// reach, with "dns" and "internet" for what is outside and "elsewhere" for any
// other namespace.
func (r *rendering) destinations(w workload) []string {
	var all []string
	for _, p := range r.policies {
		s, err := metav1.LabelSelectorAsSelector(&p.Spec.PodSelector)
		if err != nil || !s.Matches(labels.Set(w.pod.Labels)) || !slices.Contains(p.Spec.PolicyTypes, networkingv1.PolicyTypeEgress) {
			continue
		}
		for _, rule := range p.Spec.Egress {
			if len(rule.To) == 0 {
				all = append(all, "internet")
			}
			for _, peer := range rule.To {
				switch {
				case peer.IPBlock != nil:
					all = append(all, "internet")
				case peer.NamespaceSelector != nil && len(rule.Ports) > 0 && rule.Ports[0].Port.IntVal == 53:
					all = append(all, "dns")
				case peer.NamespaceSelector != nil:
					all = append(all, "elsewhere")
				default:
					names, _ := r.selected(peer.PodSelector)
					all = append(all, names...)
				}
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// reach is where each workload may connect to. Nothing else is allowed.
var reach = map[string][]string{
	"gateway":      {"dns", "nats", "toolhost"},
	"repair":       {"dns", "nats", "toolhost"},
	"compaction":   {"dns", "nats"},
	"inference":    {"dns", "internet", "nats"},
	"turn":         {"dns", "internet", "nats", "toolhost"},
	"stopdecision": {"dns", "nats", "toolhost"},
	"toolhost":     {"nats"},
	"nats":         {"dns", "nats"},
	"provision":    {"dns", "nats"},
}

// checkNetwork finds ways that are open and should not be, and the other way round.
func checkNetwork(r *rendering) (found []string) {
	denied := slices.ContainsFunc(r.policies, func(p *networkingv1.NetworkPolicy) bool {
		return len(p.Spec.PodSelector.MatchLabels) == 0 && len(p.Spec.PodSelector.MatchExpressions) == 0 &&
			len(p.Spec.PolicyTypes) == 2 && len(p.Spec.Ingress) == 0 && len(p.Spec.Egress) == 0
	})
	if !denied {
		found = append(found, "no policy denies what the others do not allow")
	}
	for _, w := range r.workloads() {
		if got := r.destinations(w); !slices.Equal(got, reach[w.name]) {
			found = append(found, fmt.Sprintf("%s may connect to %v, and should to %v", w.name, got, reach[w.name]))
		}
	}
	for _, p := range r.policies {
		if slices.Contains(p.Spec.PolicyTypes, networkingv1.PolicyTypeIngress) {
			for _, rule := range p.Spec.Ingress {
				if len(rule.From) == 0 || len(rule.Ports) == 0 {
					found = append(found, "policy "+p.Name+" lets everybody in")
				}
			}
		}
		for _, rule := range p.Spec.Egress {
			if len(rule.To) == 0 || len(rule.Ports) == 0 {
				found = append(found, "policy "+p.Name+" lets its pods out to everywhere")
			}
		}
	}
	return found
}

// checkEntries finds workloads that accept connections from others that they should not.
func checkEntries(r *rendering) (found []string) {
	for _, w := range r.workloads() {
		for _, to := range r.destinations(w) {
			target := r.workload(to)
			if target.name != "" && !r.admits(target, w) {
				found = append(found, fmt.Sprintf("%s may connect to %s, which does not let it in", w.name, to))
			}
		}
		for _, target := range r.workloads() {
			if r.admits(target, w) && !slices.Contains(r.destinations(w), target.name) {
				found = append(found, fmt.Sprintf("%s lets %s in, which may not connect to it", target.name, w.name))
			}
		}
	}
	return found
}

// admits reports whether an ingress policy of a workload lets another one in.
func (r *rendering) admits(target, from workload) bool {
	for _, p := range r.policies {
		s, err := metav1.LabelSelectorAsSelector(&p.Spec.PodSelector)
		if err != nil || !s.Matches(labels.Set(target.pod.Labels)) {
			continue
		}
		for _, rule := range p.Spec.Ingress {
			for _, peer := range rule.From {
				if peer.PodSelector == nil || peer.NamespaceSelector != nil {
					continue
				}
				if ps, err := metav1.LabelSelectorAsSelector(peer.PodSelector); err == nil && ps.Matches(labels.Set(from.pod.Labels)) {
					return true
				}
			}
		}
	}
	return false
}
