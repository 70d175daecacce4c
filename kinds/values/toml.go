package values

import (
	"bytes"
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

	"github.com/mcp-funnel/mcp-funnel/kinds/record"
	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// TOML reads a TOML 1.0 document, which is one record. Keys come out sorted; dates and times are strings, and so are inf
// and nan.
var TOML = guarded("TOML", readTOML)

func readTOML(_ context.Context, r io.Reader, sink Sink) error {
	text, err := readAll(r, map[string]int{"\n": 1, ",": 1, "[": 1, "{": 1, "=": 1, ".": 1})
	if err != nil {
		return err
	}
	if err := tomlPointers(text, sink.Pointer); err != nil {
		return err
	}
	var all map[string]any
	if err := toml.Unmarshal(text, &all); err != nil {
		if at, ok := errors.AsType[*toml.DecodeError](err); ok {
			line, column := at.Position()
			return fmt.Errorf("it is not valid TOML: line %d, column %d: %w", line, column, err)
		}
		return fmt.Errorf("it is not valid TOML: %w", err)
	}
	var m remarks
	value, err := content.PlainJSON(m.tomlValue(all))
	if err != nil {
		return err
	}
	if err := sink.Value(1, value); err != nil {
		return err
	}
	return m.err()
}

// tomlValue replaces what JSON lacks.
func (m *remarks) tomlValue(v any) any {
	switch v := v.(type) {
	case map[string]any:
		if v == nil {
			return map[string]any{}
		}
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

// settings is one object of strings, in order: keys of their own, and sections of keys.
type settings struct {
	sink     Sink
	sections []*section // the first has no name
	byName   map[string]*section
}

type section struct {
	name string
	keys []setting
}

type setting struct {
	key   string
	value []byte
	null  bool // there is no value
}

// section returns the section of a name.
func (s *settings) section(name string) *section {
	if s.byName[name] == nil {
		s.byName[name] = &section{name: name}
		s.sections = append(s.sections, s.byName[name])
	}
	return s.byName[name]
}

// mark reports the line of a key.
func (s *settings) mark(line int64, in *section, key string) {
	if s.sink.Pointer == nil {
		return
	}
	at := ""
	if in.name != "" {
		at = member(at, in.name)
	}
	if key != "" {
		at = member(at, key)
	}
	s.sink.Pointer(line, at)
}

// send passes the object on. Of keys that occur twice both are written.
func (s *settings) send() error {
	var all record.Object
	for _, in := range s.sections {
		o := &all
		if in.name != "" {
			o = new(record.Object)
		}
		for _, k := range in.keys {
			if k.null {
				o.Raw(k.key, "null")
			} else {
				o.String(k.key, string(k.value))
			}
		}
		if o != &all {
			all.Raw(in.name, o.Text())
		}
	}
	return s.sink.Value(1, []byte(all.Text()))
}
