package tools

import (
	"encoding/json"
	"reflect"
	"strings"
)

// Strings is an argument that is one string or an array of strings. Its schema is anyOf the two, because some clients
// accept no list of types in "type".
type Strings []string

// stringsKind is the kind of a [Strings] argument in messages.
const stringsKind = "string or array of strings"

var stringsType = reflect.TypeFor[Strings]()

// stringsSchema is the schema of a [Strings] argument, without the braces around it.
const stringsSchema = `"anyOf":[{"type":"string"},{"type":"array","items":{"type":"string"}}]`

// UnmarshalJSON implements [json.Unmarshaler].
func (s *Strings) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '[' {
		return json.Unmarshal(b, (*[]string)(s))
	}
	var one string
	if err := json.Unmarshal(b, &one); err != nil {
		return err
	}
	// Some clients send an array as the string that it is in JSON.
	var all []string
	if strings.HasPrefix(strings.TrimSpace(one), "[") && json.Unmarshal([]byte(one), &all) == nil {
		*s = all
		return nil
	}
	*s = nil
	if one != "" { // "" means that the argument is left out
		*s = Strings{one}
	}
	return nil
}

// MarshalJSON writes a single string as a string.
func (s Strings) MarshalJSON() ([]byte, error) {
	if len(s) == 1 {
		return json.Marshal(s[0])
	}
	return json.Marshal([]string(s))
}
