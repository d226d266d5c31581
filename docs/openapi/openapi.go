// Package openapi is the description of the gateway's HTTP interface, OpenAPI 3.1.
package openapi

import _ "embed"

// Document is the description as JSON.
//
//go:embed openapi.json
var Document []byte
