package values

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
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
	text, err := readAll(r)
	if err != nil {
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
	if sink.Pointer != nil {
		if err := tomlPointers(text, sink.Pointer); err != nil {
			return err
		}
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

// tomlPointers reports the lines of tables and keys.
func tomlPointers(text []byte, pointer func(int64, string)) error {
	var p unstable.Parser
	p.Reset(text)
	table, arrays := "", map[string]int{} // number of tables of an array so far
	at, line := 0, int64(1)
	for p.NextExpression() {
		e := p.Expression()
		names := e.Key()
		here, offset := "", -1
		if e.Kind == unstable.KeyValue {
			here = table
		}
		for names.Next() {
			if n, ok := arrays[here]; ok {
				here = element(here, n-1)
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
		pointer(line, here)
	}
	return p.Error()
}

// settings is one object of strings, in order: keys of their own, and sections of keys.
type settings struct {
	sink     Sink
	sections []*section // the first has no name
}

type section struct {
	name string
	keys []setting
}

type setting struct {
	key, value string
	null       bool // there is no value
}

// section returns the section of a name.
func (s *settings) section(name string) *section {
	i := slices.IndexFunc(s.sections, func(x *section) bool { return x.name == name })
	if i < 0 {
		i = len(s.sections)
		s.sections = append(s.sections, &section{name: name})
	}
	return s.sections[i]
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
				o.String(k.key, k.value)
			}
		}
		if o != &all {
			all.Raw(in.name, o.Text())
		}
	}
	return s.sink.Value(1, []byte(all.Text()))
}
