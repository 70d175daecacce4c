package secrets

import (
	"bytes"
	"encoding/json"
)

// decode decodes one JSON value and keeps its numbers as written. It returns false for invalid JSON.
func decode(raw json.RawMessage) (any, bool) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil || d.More() {
		return nil, false
	}
	return v, true
}

// JSON masks the secrets in each string of a JSON value. It masks a string member whole if the member's name
// announces a secret, regardless of its value. It is for arguments in logs. It returns nil for invalid JSON. A nil
// masker masks nothing.
func (m *Masker) JSON(raw json.RawMessage) (masked json.RawMessage) {
	if m == nil {
		return raw
	}
	defer m.failClosed(func() { masked = nil })
	Formats() // the masks have their names
	v, ok := decode(raw)
	if !ok {
		return nil
	}
	b, err := json.Marshal(m.maskValue(v))
	if err != nil {
		return nil
	}
	return b
}

func (m *Masker) maskValue(v any) any {
	switch v := v.(type) {
	case string:
		s, _ := m.String(v)
		return s
	case []any:
		for i := range v {
			v[i] = m.maskValue(v[i])
		}
	case map[string]any:
		named := namedSecret(v)
		for k := range v {
			_, is := v[k].(string)
			f, loose := classify([]byte(k))
			if named != nil && isValueName([]byte(k)) {
				f, loose = named, false
			}
			if f != nil && !loose && is {
				v[k] = "[masked: " + f.Name + "]"
			} else {
				v[k] = m.maskValue(v[k])
			}
		}
	}
	return v
}

// namedSecret returns the format of the secret that an object such as {"name":"DB_PASSWORD","value":"…"} names; nil if
// it names none.
func namedSecret(v map[string]any) *Format {
	for k, name := range v {
		text, is := name.(string)
		if !is || !isNameName([]byte(k)) || nameSet.run([]byte(text), maxName) < len(text) {
			continue
		}
		if f, loose := classify([]byte(text)); f != nil && !loose {
			return f
		}
	}
	return nil
}
