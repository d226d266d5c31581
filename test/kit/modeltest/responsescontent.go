package modeltest

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// contents reads a member that is a text or a list of contents of some types, and
// returns its texts and its media.
func (o object) contents(at, name string, kinds ...string) (text string, media []RequestMedia, err error) {
	if raw, ok := o[name]; ok && json.Unmarshal(raw, &text) == nil && string(raw) != "null" {
		return text, nil, nil
	}
	var list []object
	if err := o.member(at, name, "a string or an array of content parts", &list); err != nil {
		return "", nil, err
	}
	if len(list) == 0 {
		return "", nil, invalid(at+name, "Missing required parameter: '%s%s'.", at, name)
	}
	for i, part := range list {
		at := fmt.Sprintf("%s%s[%d].", at, name, i)
		var kind string
		if err := part.required(at, "type", &kind); err != nil {
			return "", nil, err
		}
		if !slices.Contains(kinds, kind) {
			return "", nil, invalid(at+"type", "Invalid value: '%s'. Supported values of '%stype' are: '%s'.", kind, at, strings.Join(kinds, "', '"))
		}
		if kind == "input_image" || kind == "input_file" {
			m, err := part.media(at, kind)
			if err != nil {
				return "", nil, err
			}
			media = append(media, m)
			continue
		}
		piece, err := part.textPiece(at)
		if err != nil {
			return "", nil, err
		}
		text += piece
	}
	return text, media, nil
}

// textPiece returns the text of a piece of a content.
func (o object) textPiece(at string) (string, error) {
	if err := o.known(at, "type", "text", "annotations", "logprobs"); err != nil {
		return "", err
	}
	if _, ok := o["text"]; !ok {
		return "", invalid(at+"text", "Missing required parameter: '%stext'.", at)
	}
	var text string
	err := o.member(at, "text", "a string", &text)
	return text, err
}

// media returns an image or a document.
func (o object) media(at, kind string) (RequestMedia, error) {
	if kind == "input_image" {
		if err := o.known(at, "type", "image_url", "detail"); err != nil {
			return RequestMedia{}, err
		}
		return o.dataURL(at, "image_url", mediaTypes["image"])
	}
	if err := o.known(at, "type", "filename", "file_data", "detail"); err != nil {
		return RequestMedia{}, err
	}
	var name string
	if err := o.required(at, "filename", &name); err != nil {
		return RequestMedia{}, err
	}
	m, err := o.dataURL(at, "file_data", mediaTypes["document"])
	m.Name = name
	return m, err
}

// dataURL decodes a member that must be a data URL with one of some media types.
func (o object) dataURL(at, name string, types []string) (RequestMedia, error) {
	var value string
	if err := o.required(at, name, &value); err != nil {
		return RequestMedia{}, err
	}
	for _, kind := range types {
		encoded, ok := strings.CutPrefix(value, "data:"+kind+";base64,")
		if !ok {
			continue
		}
		if data, err := base64.StdEncoding.DecodeString(encoded); err == nil && len(data) > 0 {
			return RequestMedia{Type: kind, Data: data}, nil
		}
	}
	return RequestMedia{}, invalid(at+name, "Invalid '%s%s'. Expected a base64-encoded data URL with one of the MIME types %s.", at, name, strings.Join(types, ", "))
}
