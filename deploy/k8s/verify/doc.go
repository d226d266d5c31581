// Package verify holds the manifests of deploy/k8s to what the program, the NATS
// server and Kubernetes really accept: each overlay is rendered as kubectl would,
// decoded strictly, checked, and started on loopback with the arguments, the
// environment and the configuration that it gives to its containers.
//
// It is a module of its own, so that what renders and decodes manifests is no
// dependency of the program.
package verify
