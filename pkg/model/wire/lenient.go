package wire

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"
)

// Unmarshal decodes a JSON object and leaves out members whose value has another
// type than v's: compatible servers deviate in members that do not matter. It
// fails only on data that is not a JSON object.
func Unmarshal(data []byte, v any) error {
	err := json.Unmarshal(data, v)
	var mismatch *json.UnmarshalTypeError
	if errors.As(err, &mismatch) && mismatch.Field != "" {
		return nil
	}
	return err
}

// String is a member that should be a string; see Text.
type String string

// UnmarshalJSON implements json.Unmarshaler. It never fails.
func (s *String) UnmarshalJSON(raw []byte) error {
	*s = String(Text(raw))
	return nil
}

// Int is a member that should be an integer. A fraction is cut off, a number may
// be inside a string, and anything else is 0.
type Int int64

// UnmarshalJSON implements json.Unmarshaler. It never fails.
func (n *Int) UnmarshalJSON(raw []byte) error {
	text := strings.TrimSpace(Text(raw))
	*n = 0
	if i, err := strconv.ParseInt(text, 10, 64); err == nil {
		*n = Int(i)
	} else if f, err := strconv.ParseFloat(text, 64); err == nil {
		*n = Int(min(max(f, -1<<62), 1<<62))
	}
	return nil
}

// List is a member that should be an array of objects. One with another element
// counts as missing.
type List[T any] []T

// UnmarshalJSON implements json.Unmarshaler. It never fails.
func (l *List[T]) UnmarshalJSON(raw []byte) error {
	*l = nil
	var elements []json.RawMessage
	if json.Unmarshal(raw, &elements) != nil {
		return nil
	}
	list := make([]T, len(elements))
	for i, element := range elements {
		if !Absent(element) && Unmarshal(element, &list[i]) != nil {
			return nil
		}
	}
	*l = list
	return nil
}
