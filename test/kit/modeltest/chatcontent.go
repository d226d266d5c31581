package modeltest

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// imageTypes are the types of images that the service takes.
var imageTypes = []string{"image/png", "image/jpeg", "image/gif", "image/webp"}

// parseContent reads the content of a message: a text, or an array of parts.
func (t *Temper) parseContent(raw json.RawMessage, m *RequestMessage) error {
	if len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	m.HasContent = true
	if json.Unmarshal(raw, &m.Content) == nil {
		return nil
	}
	var parts []object
	if err := json.Unmarshal(raw, &parts); err != nil || len(parts) == 0 {
		return errors.New("expected a string or an array of parts")
	}
	var thinking []json.RawMessage
	for i, p := range parts {
		var kind string
		_ = p.text("type", &kind)
		var err error
		switch {
		case kind == "text":
			err = t.parseText(p, m)
		case kind == "image_url" && m.Role == "user":
			err = t.parseImage(p, m)
		case kind == "file" && m.Role == "user":
			err = t.parseFile(p, m)
		case kind == "thinking" && m.Role == "assistant" && t.member() == memberChunks && t.Return != ReturnRefused:
			thinking = append(thinking, mustJSON(p))
		default:
			err = fmt.Errorf("part %d: unsupported type %q in a message of the role %s", i, kind, m.Role)
		}
		if err != nil {
			return err
		}
	}
	if thinking != nil {
		m.reasoning = compact(mustJSON(thinking), false)
	}
	return nil
}

func (t *Temper) parseText(p object, m *RequestMessage) error {
	var text string
	if err := t.only(p, "content.", "", "type", "text"); err != nil {
		return err
	}
	if err := p.text("text", &text); err != nil {
		return errors.New("expected parts of type text")
	}
	m.Content += text
	return nil
}

func (t *Temper) parseImage(p object, m *RequestMessage) error {
	if err := t.only(p, "content.", "", "type", "image_url"); err != nil {
		return err
	}
	var image object
	if json.Unmarshal(p["image_url"], &image) != nil {
		return errors.New("image_url: expected an object")
	}
	if err := t.only(image, "content.image_url.", "", "url", "detail"); err != nil {
		return err
	}
	media, err := parseData(image, "url")
	if err != nil {
		return err
	}
	if !slices.Contains(imageTypes, media.Type) {
		return fmt.Errorf("unsupported image type %q", media.Type)
	}
	m.Media = append(m.Media, media)
	return nil
}

func (t *Temper) parseFile(p object, m *RequestMessage) error {
	if err := t.only(p, "content.", "", "type", "file"); err != nil {
		return err
	}
	var file object
	if json.Unmarshal(p["file"], &file) != nil {
		return errors.New("file: expected an object")
	}
	if err := t.only(file, "content.file.", "", "filename", "file_data"); err != nil {
		return err
	}
	media, err := parseData(file, "file_data")
	if err != nil {
		return err
	}
	if err := file.text("filename", &media.Name); err != nil || media.Name == "" {
		return errors.New("file.filename: expected a name")
	}
	if media.Type != "application/pdf" {
		return fmt.Errorf("unsupported file type %q", media.Type)
	}
	m.Media = append(m.Media, media)
	return nil
}

// parseData reads a member that is a data URL.
func parseData(o object, name string) (RequestMedia, error) {
	var url string
	if err := o.text(name, &url); err != nil {
		return RequestMedia{}, err
	}
	kind, data, ok := strings.Cut(strings.TrimPrefix(url, "data:"), ";base64,")
	decoded, err := base64.StdEncoding.DecodeString(data)
	if !ok || err != nil || len(decoded) == 0 || !strings.HasPrefix(url, "data:") {
		return RequestMedia{}, fmt.Errorf("%s: expected a data URL with base64", name)
	}
	return RequestMedia{Type: kind, Data: decoded}, nil
}

// parseAssistant reads what only a message of the assistant has.
func (t *Temper) parseAssistant(o object, at string, m *RequestMessage) error {
	if raw := o[memberExtra]; raw != nil {
		m.extra = compact(raw, false)
	}
	if raw := o[t.member()]; raw != nil && t.member() != memberChunks {
		m.reasoning = compact(raw, t.member() == memberDetails)
	}
	raw, ok := o["tool_calls"]
	if !ok {
		return nil
	}
	calls, extra, err := t.parseCalls(raw, at+".tool_calls")
	if err != nil {
		return err
	}
	m.ToolCalls = calls
	if extra != nil {
		m.extra = extra
	}
	return nil
}
