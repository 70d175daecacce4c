package values

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"

	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// TOML reads a TOML 1.0 document, which is one record. Keys come out sorted; dates and times are strings, and so are
// inf and nan.
var TOML = guarded("TOML", readTOML)

func readTOML(_ context.Context, r io.Reader, sink Sink) error {
	text, err := readAll(r, map[string]int{"\n": 1, ",": 1, "[": 1, "{": 1, "=": 1, ".": 1})
	if err != nil {
		return err
	}
	if err := tomlPointers(text, sink.Pointer); err != nil {
		return err
	}
	all := map[string]any{}
	err = toml.Unmarshal(text, &all)
	if at, ok := errors.AsType[*toml.DecodeError](err); ok {
		line, column := at.Position()
		err = fmt.Errorf("line %d, column %d: %w", line, column, err)
	}
	if err != nil {
		return fmt.Errorf("it is not valid TOML: %w", err)
	}
	var m remarks
	value, _ := content.PlainJSON(m.tomlValue(all)) // it has only values that JSON has
	return cmp.Or(sink.Value(1, value), m.err())
}

// tomlValue replaces what JSON lacks.
func (m *remarks) tomlValue(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			v[k] = m.tomlValue(e)
		}
	case []any:
		for i, e := range v {
			v[i] = m.tomlValue(e)
		}
	case float64:
		if math.IsInf(v, 0) || math.IsNaN(v) {
			m.add("JSON has no inf and nan: they are strings")
			return strings.ToLower(strings.TrimPrefix(strconv.FormatFloat(v, 'g', -1, 64), "+"))
		}
		return json.RawMessage(decimalOf(v))
	case time.Time:
		return v.Format(time.RFC3339Nano)
	case fmt.Stringer: // a local date or time
		return v.String()
	}
	return v
}

const (
	maxTOMLKeys  = 30_000 // and tables: the parser looks through all at each
	maxTOMLParts = 64     // of a dotted key
)

// tomlPointers reports the lines of tables and keys, as far as the text is TOML, and refuses too many.
func tomlPointers(text []byte, pointer func(int64, string)) error {
	var p unstable.Parser
	p.Reset(text)
	table, arrays := "", map[string]int{} // number of tables of an array so far
	at, line := 0, int64(1)
	for n := 1; p.NextExpression(); n++ {
		e := p.Expression()
		names := e.Key()
		here, offset, parts := "", -1, 0
		if e.Kind == unstable.KeyValue {
			here = table
		}
		for names.Next() {
			if n, ok := arrays[here]; ok {
				here = element(here, n-1)
			}
			if parts++; parts > maxTOMLParts {
				return fmt.Errorf("line %d: a key has more than %d parts", line, maxTOMLParts)
			}
			here = member(here, string(names.Node().Data))
			if offset < 0 {
				offset = int(names.Node().Raw.Offset)
			}
		}
		if e.Kind == unstable.ArrayTable {
			arrays[here]++
			here = element(here, arrays[here]-1)
		}
		if e.Kind != unstable.KeyValue {
			table = here
		}
		if offset >= at {
			line += int64(bytes.Count(text[at:offset], []byte{'\n'}))
			at = offset
		}
		if pointer != nil {
			pointer(line, here)
		}
		if n > maxTOMLKeys {
			return fmt.Errorf("line %d: it has more than %d keys and tables; slice and grep read its text", line, maxTOMLKeys)
		}
	}
	return nil
}
