package modeltest

import (
	"encoding/json"
	"fmt"
	"slices"
)

// mediaTypes are the accepted media by the type of their block.
var mediaTypes = map[string][]string{
	"image":    {"image/png", "image/jpeg", "image/gif", "image/webp"},
	"document": {"application/pdf"},
}

func (r *Request) mediaBlock(o object, at string) (RequestMedia, error) {
	var m RequestMedia
	kind := blockType(o)
	known := []string{"type", "source", "cache_control"}
	if kind == "document" {
		known = append(known, "title")
	}
	if err := o.extra(at+".", known...); err != nil {
		return m, err
	}
	if _, ok := o["title"]; ok && (o.text("title", &m.Name) != nil || m.Name == "") {
		return m, fmt.Errorf("%s.document.title: Input should be a valid string with at least 1 character", at)
	}
	var source object
	var form string
	if json.Unmarshal(o["source"], &source) != nil || source.text("type", &form) != nil || form != "base64" {
		return m, fmt.Errorf("%s.%s.source: Input should be of type 'base64'", at, kind)
	}
	if err := source.extra(at+"."+kind+".source.", "type", "media_type", "data"); err != nil {
		return m, err
	}
	if source.text("media_type", &m.Type) != nil || !slices.Contains(mediaTypes[kind], m.Type) {
		return m, fmt.Errorf("%s.%s.source.base64.media_type: Input should be one of %s", at, kind, mediaTypes[kind])
	}
	if json.Unmarshal(source["data"], &m.Data) != nil || len(m.Data) == 0 {
		return m, fmt.Errorf("%s.%s.source.base64.data: invalid base64 data", at, kind)
	}
	return m, r.mark(o, at)
}
