package content

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
)

// Plural returns a count with its noun: "1 file", "2 files".
func Plural(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.FormatInt(n, 10) + " " + many
}

// Article returns the word with "a" or "an" before it.
func Article(word string) string {
	if strings.IndexByte("aeio", word[0]) >= 0 {
		return "an " + word
	}
	return "a " + word
}

// PlainJSON is [json.Marshal] without escaping <, > and &, because no model needs these escapes.
func PlainJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
