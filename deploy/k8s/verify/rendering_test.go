package verify

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/json"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

// rendering is what kubectl apply would send, decoded.
type rendering struct {
	namespaces    []*corev1.Namespace
	configs       []*corev1.ConfigMap
	secrets       []*corev1.Secret
	services      []*corev1.Service
	deployments   []*appsv1.Deployment
	statefulSets  []*appsv1.StatefulSet
	jobs          []*batchv1.Job
	budgets       []*policyv1.PodDisruptionBudget
	policies      []*networkingv1.NetworkPolicy
	scaledObjects []*scaledObject
	certificates  []*certificate
	issuers       []*issuer
	podMonitors   []*podMonitor
}

// render renders a folder of deploy/k8s.
func render(t *testing.T, dir string) string {
	t.Helper()
	resources, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		t.Fatalf("render %s: %v", dir, err)
	}
	text, err := resources.AsYaml()
	if err != nil {
		t.Fatalf("render %s: %v", dir, err)
	}
	return string(text)
}

// decode decodes every document strictly: an unknown kind or field, or a value of
// another type, is an error.
func decode(text string) (*rendering, error) {
	r := &rendering{}
	seen := map[string]bool{}
	for _, document := range bytes.Split([]byte(text), []byte("\n---\n")) {
		var meta struct {
			metav1.TypeMeta   `json:",inline"`
			metav1.ObjectMeta `json:"metadata"`
		}
		if err := yaml.Unmarshal(document, &meta); err != nil {
			return nil, err
		}
		name := meta.APIVersion + " " + meta.Kind + " " + meta.Name
		if seen[name] {
			return nil, fmt.Errorf("%s is there twice", name)
		}
		seen[name] = true
		if meta.Kind != "Namespace" && meta.Namespace != "harness" {
			return nil, fmt.Errorf("%s is in the namespace %q", name, meta.Namespace)
		}
		var err error
		switch meta.APIVersion + " " + meta.Kind {
		case "v1 Namespace":
			r.namespaces, err = add(r.namespaces, document)
		case "v1 ConfigMap":
			r.configs, err = add(r.configs, document)
		case "v1 Secret":
			r.secrets, err = add(r.secrets, document)
		case "v1 Service":
			r.services, err = add(r.services, document)
		case "apps/v1 Deployment":
			r.deployments, err = add(r.deployments, document)
		case "apps/v1 StatefulSet":
			r.statefulSets, err = add(r.statefulSets, document)
		case "batch/v1 Job":
			r.jobs, err = add(r.jobs, document)
		case "policy/v1 PodDisruptionBudget":
			r.budgets, err = add(r.budgets, document)
		case "networking.k8s.io/v1 NetworkPolicy":
			r.policies, err = add(r.policies, document)
		case "keda.sh/v1alpha1 ScaledObject":
			r.scaledObjects, err = add(r.scaledObjects, document)
		case "cert-manager.io/v1 Certificate":
			r.certificates, err = add(r.certificates, document)
		case "cert-manager.io/v1 Issuer":
			r.issuers, err = add(r.issuers, document)
		case "monitoring.coreos.com/v1 PodMonitor":
			r.podMonitors, err = add(r.podMonitors, document)
		default:
			err = fmt.Errorf("a kind that these tests do not know")
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return r, nil
}

func add[T any](all []*T, document []byte) ([]*T, error) {
	object := new(T)
	raw, err := yaml.YAMLToJSONStrict(document)
	if err != nil {
		return nil, err
	}
	// As the API server does it: names of fields in the wrong case are unknown.
	strict, err := json.UnmarshalStrict(raw, object)
	if err := errors.Join(append(strict, err)...); err != nil {
		return nil, err
	}
	return append(all, object), nil
}

// workload is anything that makes pods.
type workload struct {
	name     string
	replicas int32
	selector *metav1.LabelSelector // nil for a job, whose selector is made for it
	pod      corev1.PodTemplateSpec
	claims   []corev1.PersistentVolumeClaim
}

func (r *rendering) workloads() []workload {
	var all []workload
	count := func(n *int32) int32 {
		if n == nil {
			return 1
		}
		return *n
	}
	for _, d := range r.deployments {
		all = append(all, workload{name: d.Name, replicas: count(d.Spec.Replicas), selector: d.Spec.Selector, pod: d.Spec.Template})
	}
	for _, s := range r.statefulSets {
		all = append(all, workload{name: s.Name, replicas: count(s.Spec.Replicas), selector: s.Spec.Selector, pod: s.Spec.Template, claims: s.Spec.VolumeClaimTemplates})
	}
	for _, j := range r.jobs {
		all = append(all, workload{name: j.Name, replicas: 1, pod: j.Spec.Template})
	}
	return all
}

// workload returns the one of a name; the zero one when there is none.
func (r *rendering) workload(name string) workload {
	for _, w := range r.workloads() {
		if w.name == name {
			return w
		}
	}
	return workload{}
}

// containers are all of a pod, those that run first included.
func (w workload) containers() []corev1.Container {
	return append(append([]corev1.Container(nil), w.pod.Spec.InitContainers...), w.pod.Spec.Containers...)
}

// main is the container that the pod is for.
func (w workload) main() corev1.Container {
	if len(w.pod.Spec.Containers) == 0 {
		return corev1.Container{}
	}
	return w.pod.Spec.Containers[0]
}

// config is the data of a generated ConfigMap, by the name before its hash.
func (r *rendering) config(name string) map[string]string {
	for _, c := range r.configs {
		if cut := strings.LastIndex(c.Name, "-"); cut > 0 && c.Name[:cut] == name {
			return c.Data
		}
	}
	return nil
}

// configNamed is the data of the ConfigMap with just this name.
func (r *rendering) configNamed(name string) (map[string]string, bool) {
	for _, c := range r.configs {
		if c.Name == name {
			return c.Data, true
		}
	}
	return nil, false
}

// secretNamed is the content of the Secret with this name, if the rendering has it.
func (r *rendering) secretNamed(name string) (map[string]string, bool) {
	for _, s := range r.secrets {
		if s.Name != name {
			continue
		}
		content := map[string]string{}
		for key, value := range s.Data {
			content[key] = string(value)
		}
		return content, true
	}
	return nil, false
}
