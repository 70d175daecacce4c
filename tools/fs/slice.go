package fs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/internal/content"
	"github.com/mcp-funnel/mcp-funnel/tools"
)

// sliceArgs are the arguments of slice.
type sliceArgs struct {
	Source  string  `json:"source" jsonschema:"path or obs:ID" help:"File, or obs:ID."`
	Lines   string  `json:"lines,omitempty" jsonschema:"from 1: 5, 5-9, 5- or -9 (the last 9)" help:"Lines from 1: 5, 5-9, 5- (to the end) or -9 (the last 9). Exactly one of lines, chars, bytes, records and at is to be given, but records go with at."`
	Chars   string  `json:"chars,omitempty" jsonschema:"from 0" help:"Characters from 0, as lines are given."`
	Bytes   string  `json:"bytes,omitempty" jsonschema:"from 0" help:"Bytes from 0, as lines are given; of a binary file a hex dump."`
	Records string  `json:"records,omitempty" jsonschema:"from 0: array elements, NDJSON lines, CSV rows, hunks" help:"Records from 0, as lines are given: elements of a JSON array, NDJSON lines, CSV rows, hunks of a diff."`
	At      *string `json:"at,omitempty" jsonschema:"JSON Pointer; records are then of that value" help:"One value of a JSON text by its JSON Pointer, as /items/3/name; with records, those of that value."`
}

// Slice is the tool.
//
// Bytes are those of the text as UTF-8 without byte order mark, which are the stored ones but
// for files in another encoding; of a binary source they are the stored ones, shown as a hex dump.
func Slice() tools.Tool {
	return tools.New(tools.Tool{
		Name:        "slice",
		Title:       "Show a part",
		Description: "Show a part of a file or observation: one range of lines, chars, bytes or records (both ends included), or one JSON value.",
		Effect:      tools.ReadOnly,
		Paged:       true,
	}, slice)
}

func slice(ctx context.Context, a sliceArgs, in tools.Input, out tools.Output) error {
	unit, given, r, err := a.span()
	if err != nil {
		return err
	}
	src, err := in.Sources.Open(ctx, a.Source)
	if err != nil {
		return err
	}
	defer src.Done(out)
	if src.Encoding == content.NoText && unit != "bytes" {
		return fmt.Errorf("%s is binary, %d bytes, and has no %s: give bytes, as in bytes=\"0-255\"", src.Name, src.Size, unitWord(unit))
	}
	s := slicer{ctx: ctx, src: src, text: newText(ctx, src, out), out: out, fit: in.Fit}
	if s.fit == nil {
		s.fit = func(text []byte) int { return len(text) }
	}
	switch unit {
	case "lines":
		return s.lines(r)
	case "chars":
		return s.chars(r)
	case "bytes":
		if !src.Plain() {
			out.Note(fmt.Sprintf("bytes are those of the text as UTF-8, without a byte order mark; %d are stored", src.Size))
		}
		return s.bytes(r)
	case "records":
		return s.records(r)
	}
	return s.at(given, r, a.Records != "")
}

func unitWord(unit string) string {
	if unit == "at" {
		return "JSON values"
	}
	return unit
}

// Check implements [tools.Checker].
func (a sliceArgs) Check() error {
	_, _, _, err := a.span()
	return err
}

// span is the part asked for; r are the records where it is a value.
func (a sliceArgs) span() (unit, given string, r span, err error) {
	if unit, given, err = a.part(); err != nil {
		return "", "", r, err
	}
	r = span{to: open}
	switch {
	case unit != "at":
		r, err = parseSpan(unit, given)
	case a.Records != "":
		r, err = parseSpan("records", a.Records)
	}
	return unit, given, r, err
}

// part says which of the five ways to name a part was used: exactly one must be, but records may narrow at.
func (a sliceArgs) part() (unit, given string, err error) {
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
		return "", "", errors.New(`no part named: give exactly one of lines, chars, bytes, records, at, as in lines="1-50"`)
	}
	return "", "", fmt.Errorf("%s were given: give exactly one of lines, chars, bytes, records, at", strings.Join(used, " and "))
}

// slicer answers one call.
type slicer struct {
	ctx  context.Context
	src  *tools.Source
	text *text
	out  tools.Output
	fit  func(text []byte) int
}

// call is a slice of the same source.
func (s *slicer) call(unit string, r span) tools.Call {
	a := sliceArgs{Source: s.src.Name}
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

// words is a call as it stands in a note.
func words(c tools.Call) string {
	b, err := json.Marshal(c.Args)
	if err != nil {
		return c.Tool
	}
	return c.Tool + " " + string(b)
}

// past is the error for a range that begins behind the end.
func (s *slicer) past(unit string, r span, total int64) error {
	return past(unit, r, s.src.Name, total)
}

func past(unit string, r span, name string, total int64) error {
	first := int64(0)
	if unit == "lines" {
		first = 1
	}
	if total == 0 {
		return fmt.Errorf("%s %s: %s has no %s", unit, r, name, unit)
	}
	return fmt.Errorf("%s %s: past the end: %s has %d %s (%d-%d)", unit, r, name, total, unit, first, first+total-1)
}
