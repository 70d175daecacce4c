package receipt

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// Records are shown in a layout that has each name once: search hits grouped by file, other flat records as a table. It
// is lossless: the records can be restored from it, value for value, as the tests do. Records that fit no layout are
// shown as they are.

// member of a flat record: its name and its value as written.
type member struct {
	name  string
	value jsontext.Value
}

// layout returns the lines of NDJSON records in a more compact form, and whether the first row is the header of a
// table. ok is false if no layout fits.
func layout(records [][]byte) (rows []string, header, ok bool) {
	parsed := make([][]member, 0, len(records))
	for _, r := range records {
		if len(bytes.TrimSpace(r)) == 0 {
			return nil, false, false
		}
		m, ok := members(r)
		if !ok {
			return nil, false, false
		}
		parsed = append(parsed, m)
	}
	if len(parsed) == 0 {
		return nil, false, false
	}
	if rows, ok := hits(parsed); ok {
		return rows, false, true
	}
	rows, ok = table(parsed)
	return rows, ok, ok
}

// members parses one object. Invalid UTF-8, lone surrogates and repeated names are refused: they could not be restored.
func members(record []byte) ([]member, bool) {
	d := jsontext.NewDecoder(bytes.NewReader(record))
	if t, err := d.ReadToken(); err != nil || t.Kind() != '{' {
		return nil, false
	}
	var out []member
	for d.PeekKind() != '}' {
		name, err := d.ReadToken()
		if err != nil {
			return nil, false
		}
		n := name.String()
		v, err := d.ReadValue()
		if err != nil {
			return nil, false
		}
		out = append(out, member{n, v.Clone()})
	}
	if _, err := d.ReadToken(); err != nil {
		return nil, false
	}
	return out, len(bytes.TrimSpace(record[d.InputOffset():])) == 0
}

// hit is a record of search.
type hit struct {
	file, text    string
	line, end     int64
	column        int64
	cut           string // as written; "" where absent
	before, after []string
}

// hits groups records of search by file:
//
//	src/a.go
//	  12: text of line 12
//	  14- a line before a match
//	  15: a match
//	  16+ a line after it
//	  20-22: a match over three lines,
//	  | whose further lines
//	  | are like this
//	  30@4097~true: a window of a long line, around its match at that column; the value of "cut" is behind the ~
func hits(records [][]member) ([]string, bool) {
	var out []string
	file := ""
	for i, r := range records {
		h, ok := asHit(r)
		if !ok {
			return nil, false
		}
		if i == 0 || h.file != file {
			file = h.file
			out = append(out, file)
		}
		out = h.appendLines(out)
	}
	return out, true
}

func asHit(r []member) (hit, bool) {
	h := hit{}
	seen := 0
	for _, m := range r {
		var ok bool
		switch m.name {
		case "file":
			h.file, ok = stringValue(m.value)
			// The name begins its line: it must not be mistaken for a hit.
			ok = ok && h.file != "" && !strings.ContainsAny(h.file, "\n\r") && !strings.HasPrefix(h.file, "  ")
			seen |= 1
		case "line":
			h.line, ok = integerValue(m.value)
			seen |= 2
		case "text":
			h.text, ok = stringValue(m.value)
			seen |= 4
		case "end":
			h.end, ok = integerValue(m.value)
			ok = ok && h.end > 0
		case "column":
			h.column, ok = integerValue(m.value)
			ok = ok && h.column > 0
		case "cut":
			h.cut = string(m.value)
			ok = h.cut == "true" || h.cut == "false"
		case "before":
			h.before, ok = stringValues(m.value)
		case "after":
			h.after, ok = stringValues(m.value)
		default:
			return hit{}, false
		}
		if !ok {
			return hit{}, false
		}
	}
	return h, seen == 7
}

func (h hit) appendLines(out []string) []string {
	for i, t := range h.before {
		out = append(out, "  "+strconv.FormatInt(h.line-int64(len(h.before)-i), 10)+"- "+t)
	}
	head := "  " + strconv.FormatInt(h.line, 10)
	last := h.line
	if h.end > 0 {
		head += "-" + strconv.FormatInt(h.end, 10)
		last = h.end
	}
	if h.column > 0 {
		head += "@" + strconv.FormatInt(h.column, 10)
	}
	if h.cut != "" {
		head += "~" + h.cut
	}
	head += ": "
	for t := range strings.SplitSeq(h.text, "\n") {
		out = append(out, head+t)
		head = "  | "
	}
	for i, t := range h.after {
		out = append(out, "  "+strconv.FormatInt(last+1+int64(i), 10)+"+ "+t)
	}
	return out
}

// stringValue parses a string that stays on one line, but for \n.
func stringValue(v jsontext.Value) (string, bool) {
	if v.Kind() != '"' {
		return "", false
	}
	b, err := jsontext.AppendUnquote(nil, v)
	// Other line ends than \n would break the layout.
	return string(b), err == nil && !bytes.ContainsAny(b, "\r\v\f\u0085\u2028\u2029")
}

// stringValues parses the lines of a context. An empty array is refused: the layout would not differ from none.
func stringValues(v jsontext.Value) ([]string, bool) {
	var raw []jsontext.Value
	if v.Kind() != '[' || json.Unmarshal(v, &raw) != nil || len(raw) == 0 {
		return nil, false
	}
	out := make([]string, len(raw))
	for i, e := range raw {
		s, ok := stringValue(e)
		if !ok || strings.Contains(s, "\n") {
			return nil, false
		}
		out[i] = s
	}
	return out, true
}

// integerValue parses an integer ≥ 0 in its plain form.
func integerValue(v jsontext.Value) (int64, bool) {
	n, err := strconv.ParseInt(string(v), 10, 64)
	return n, err == nil && n >= 0 && strconv.FormatInt(n, 10) == string(v)
}

// table lays out flat records under one header, with tabs between cells. A cell is a string as it is, or another value
// as JSON has it; a string that could be taken for such a value, is empty, or has a tab or a line end is quoted. An
// empty cell is a member that is absent.
func table(records [][]member) ([]string, bool) {
	if len(records) < 2 {
		return nil, false
	}
	var names []string
	column := map[string]int{}
	for _, r := range records {
		for _, m := range r {
			if _, ok := column[m.name]; !ok {
				column[m.name] = len(names)
				names = append(names, m.name)
			}
		}
	}
	if len(names) == 0 || len(names) > 64 {
		return nil, false
	}
	header := make([]string, len(names))
	for i, n := range names {
		header[i] = cell(n)
	}
	out := []string{strings.Join(header, "\t")}
	filled := 0
	for _, r := range records {
		row := make([]string, len(names))
		for _, m := range r {
			switch m.value.Kind() {
			case '{', '[':
				return nil, false // nested: not a table
			case '"':
				b, err := jsontext.AppendUnquote(nil, m.value)
				if err != nil {
					return nil, false
				}
				row[column[m.name]] = cell(string(b))
			default:
				row[column[m.name]] = string(m.value)
			}
			filled++
		}
		if len(r) == 0 {
			return nil, false
		}
		out = append(out, strings.Join(row, "\t"))
	}
	// Records with few members in common make no table.
	return out, 4*filled >= 3*len(names)*len(records)
}

// cell quotes a string if it could be taken for another value.
func cell(s string) string {
	plain := s != "" && !strings.ContainsAny(s, "\t\n\r\v\f\u0085\u2028\u2029") && s[0] != '"' && !scalar(s)
	if plain {
		return s
	}
	b, err := jsontext.AppendQuote(nil, s)
	if err != nil {
		return s
	}
	return content.Visible(string(b), true) // within quotes hidden characters are shown as JSON has them
}

// scalar reports whether s reads as a JSON number, true, false or null.
func scalar(s string) bool {
	switch s {
	case "true", "false", "null":
		return true
	}
	return (s[0] == '-' || s[0] >= '0' && s[0] <= '9') && jsontext.Value(s).IsValid()
}
