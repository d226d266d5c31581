// Package verify tests that the program, the NATS server and Kubernetes accept the
// manifests of deploy/k8s: each overlay is rendered as kubectl would,
// decoded strictly, checked, and started on loopback with the arguments, the
// environment and the configuration that it gives to its containers.
//
// It is a separate module, so that the packages that render and decode manifests are
// no dependencies of the program.
package verify
