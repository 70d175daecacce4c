package tools

import (
	"encoding/json"
	"reflect"
)

// Text is an argument that is a text, given as a string, or as any JSON value: then it is the text of that value as the
// client wrote it. Models that write a JSON document as an argument often forget to quote it.
type Text string

// textKind is the kind of a [Text] argument in messages.
const textKind = "text"

var textType = reflect.TypeFor[Text]()

// Object is an argument that is a JSON object, as text. A string that holds one is accepted too: some clients quote
// objects.
type Object string

// objectKind is the kind of an [Object] argument in messages.
const objectKind = "object"

var objectType = reflect.TypeFor[Object]()

// MarshalJSON implements [json.Marshaler].
func (o Object) MarshalJSON() ([]byte, error) {
	if o == "" {
		return []byte("null"), nil
	}
	return []byte(o), nil
}

// UnmarshalJSON implements [json.Unmarshaler].
func (o *Object) UnmarshalJSON(raw []byte) error {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		raw = []byte(text)
	}
	*o = Object(raw)
	return nil
}

// isObject reports whether a value is a JSON object, or a string that holds one.
func isObject(raw json.RawMessage) bool {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		raw = []byte(text)
	}
	var members map[string]json.RawMessage
	return json.Unmarshal(raw, &members) == nil && members != nil
}
