package verify

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// selected are the names of the workloads whose pods a selector matches.
func (r *rendering) selected(s *metav1.LabelSelector) ([]string, error) {
	selector, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, w := range r.workloads() {
		if selector.Matches(labels.Set(w.pod.Labels)) {
			names = append(names, w.name)
		}
	}
	return names, nil
}

// checkSelectors finds selectors that match nothing, or another's pods.
func checkSelectors(r *rendering) (found []string) {
	expect := func(who string, s *metav1.LabelSelector, want string) {
		names, err := r.selected(s)
		switch {
		case err != nil:
			found = append(found, who+": "+err.Error())
		case len(names) == 0:
			found = append(found, who+" selects no pods")
		case want != "" && (len(names) != 1 || names[0] != want):
			found = append(found, fmt.Sprintf("%s selects the pods of %s", who, strings.Join(names, ", ")))
		}
	}
	for _, w := range r.workloads() {
		if w.selector != nil {
			expect("workload "+w.name, w.selector, w.name)
		}
		for _, c := range w.pod.Spec.TopologySpreadConstraints {
			expect("the spread of "+w.name, c.LabelSelector, "")
			if s, err := metav1.LabelSelectorAsSelector(c.LabelSelector); err == nil && !s.Matches(labels.Set(w.pod.Labels)) {
				found = append(found, "the spread of "+w.name+" does not count its own pods")
			}
		}
	}
	for _, s := range r.services {
		want, _, _ := strings.Cut(s.Name, "-")
		expect("service "+s.Name, &metav1.LabelSelector{MatchLabels: s.Spec.Selector}, want)
	}
	for _, s := range r.statefulSets {
		if _, ok := r.service(s.Spec.ServiceName); !ok {
			found = append(found, fmt.Sprintf("workload %s names the service %s, which is not there", s.Name, s.Spec.ServiceName))
		}
	}
	for _, b := range r.budgets {
		expect("budget "+b.Name, b.Spec.Selector, b.Name)
	}
	for _, p := range r.policies {
		expect("policy "+p.Name, &p.Spec.PodSelector, "")
		for _, peer := range peers(p) {
			if peer.PodSelector != nil && peer.NamespaceSelector == nil {
				expect("a peer of policy "+p.Name, peer.PodSelector, "")
			}
		}
	}
	for _, m := range r.podMonitors {
		expect("pod monitor "+m.Name, &m.Spec.Selector, "")
	}
	for _, s := range r.scaledObjects {
		target := s.Spec.ScaleTargetRef
		w := r.workload(target.Name)
		if target.Kind != "Deployment" || target.APIVersion != "apps/v1" || w.name == "" {
			found = append(found, fmt.Sprintf("scaled object %s scales %s %s, which is not there", s.Name, target.Kind, target.Name))
		}
		for _, d := range r.deployments {
			if d.Name == target.Name && d.Spec.Replicas != nil {
				found = append(found, "workload "+d.Name+" sets the replicas that belong to its scaler")
			}
		}
	}
	return found
}
