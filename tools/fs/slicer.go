package fs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/tools"
	"github.com/mcp-funnel/mcp-funnel/tools/source"
)

type sliceArgs tools.SliceArgs

// Check implements [tools.Checker].
func (a sliceArgs) Check() error {
	_, _, _, err := a.parse()
	return err
}

// parse returns the unit, the argument as given and its range; for unit "at", r is the range of records.
func (a sliceArgs) parse() (unit, given string, r sliceRange, err error) {
	if unit, given, err = a.givenRange(); err != nil {
		return "", "", r, err
	}
	r = sliceRange{to: openEnd}
	switch {
	case unit != "at":
		r, err = parseRange(unit, given)
	case a.Records != "":
		r, err = parseRange("records", a.Records)
	}
	return unit, given, r, err
}

// givenRange returns the one argument that was given of lines, chars, bytes, records and at. Only records may be
// combined with at.
func (a sliceArgs) givenRange() (unit, given string, err error) {
	var used []string
	for _, p := range []struct{ unit, given string }{{"lines", a.Lines}, {"chars", a.Chars}, {"bytes", a.Bytes}, {"records", a.Records}} {
		if p.given != "" {
			used, unit, given = append(used, p.unit), p.unit, p.given
		}
	}
	if a.At != nil {
		used, unit, given = append(used, "at"), "at", *a.At
	}
	switch {
	case len(used) == 1, len(used) == 2 && a.At != nil && a.Records != "":
		return unit, given, nil
	case len(used) == 0:
		return "", "", errors.New(`no range given: give exactly one of lines, chars, bytes, records, at, as in lines="1-50"`)
	}
	return "", "", fmt.Errorf("%s were given: give exactly one of lines, chars, bytes, records, at",
		strings.Join(used, " and "))
}

// slicer runs one call.
type slicer struct {
	ctx  context.Context
	src  *source.Source
	text *sourceText
	out  tools.Output
	page tools.Page
	fit  func(text []byte) int
	at   string // the pointer of the value that is shown
}

// call returns the call for another range of the same source. What does not fit a page of a converted source is read
// as it is stored, by its lines: its bytes are others.
func (s *slicer) call(unit string, r sliceRange) tools.Call {
	a := sliceArgs{Source: s.src.Name}
	if unit == "bytes" && s.src.IsConverted() {
		unit = "lines"
		if r.from, r.to = s.src.LinesOf(s.ctx, s.at); r.to == 0 {
			r.to = openEnd
		}
	}
	switch unit {
	case "lines":
		a.Lines = r.String()
	case "chars":
		a.Chars = r.String()
	case "bytes":
		a.Bytes = r.String()
	case "records":
		a.Records = r.String()
	}
	return tools.Call{Tool: "slice", Args: a}
}

// callText returns a call as notes show it.
func callText(c tools.Call) string {
	b, err := json.Marshal(c.Args)
	if err != nil {
		return c.Tool
	}
	return c.Tool + " " + string(b)
}

// pastEnd returns the error for a range that begins after the end of the source, or of a value in it.
func pastEnd(unit string, r sliceRange, name string, total int64) error {
	first := firstOf(unit)
	if total == 0 {
		return fmt.Errorf("%s %s: %s has no %s", unit, r, name, unit)
	}
	return fmt.Errorf("%s %s: past the end: %s has %d %s (%d-%d)", unit, r, name, total, unit, first, first+total-1)
}

func (s *slicer) pointerCall(pointer string) tools.Call {
	return tools.Call{Tool: "slice", Args: sliceArgs{Source: s.src.Name, At: &pointer}}
}

// callAround returns the call that shows 200 bytes before and 100 bytes after an offset.
func (s *slicer) callAround(at int64) tools.Call {
	return s.call("bytes", sliceRange{from: max(at-200, 0), to: at + 100})
}
