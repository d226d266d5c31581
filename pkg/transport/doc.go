// Package transport groups the packages between a socket and a service. It has no code
// itself:
//
//   - access checks bearer tokens and the namespaces that they are valid for;
//   - tlsfiles configures TLS from files that are read again when they change;
//   - localkey makes the keys with which processes of a user on one machine admit each
//     other;
//   - reread keeps the parsed content of files and notices changes;
//   - frontdoor serves gRPC and HTTP/1.1 on one port;
//   - remote keeps connections to services that users run, such as hooks.
package transport
