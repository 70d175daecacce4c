package fs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/mcp-funnel/mcp-funnel/internal/content"
	"github.com/mcp-funnel/mcp-funnel/tools"
)

// at shows the value at a JSON Pointer: as it stands where a page takes it, else its elements or members, a record each.
// narrowed says that records were asked for, and r which.
func (s *slicer) at(pointer string, r span, narrowed bool) error {
	at, pointer, err := s.point(pointer)
	if err != nil {
		return err
	}
	if s.src.Kind() == content.NDJSON && pointer == "" && (narrowed || !s.fits(at)) {
		return s.records(r)
	}
	l, err := s.elements(pointer, at)
	if err != nil {
		return err
	}
	switch {
	case l != nil && (narrowed || !s.fits(at)):
		return s.list(*l, r)
	case narrowed:
		return fmt.Errorf("at %s in %s is no array or object with anything in it: it has no records", content.ClipBytes(content.VisibleLine(pointer), 100), s.src.Name)
	}
	return s.run(place{at: at.Start, unit: "bytes", number: at.Start, to: at.End - 1}, at.End, -1)
}

// point finds the value, and the pointer by which it was found: one that was copied from where hidden chars were shown means these.
func (s *slicer) point(pointer string) (content.Span, string, error) {
	k := s.src.Kind()
	if k != content.NDJSON {
		k = content.JSON
	}
	at, err := content.Point(s.ctx, s.text.reader(0), k, pointer)
	if real := content.Hidden(pointer); err != nil && real != pointer { // not there, or not before the text breaks off
		if there, err2 := content.Point(s.ctx, s.text.reader(0), k, real); err2 == nil {
			at, pointer, err = there, real, nil
		}
	}
	var syntax *content.SyntaxError
	switch {
	case errors.As(err, &syntax) && s.src.Kind() != content.JSON && s.src.Kind() != content.NDJSON:
		err = fmt.Errorf("at: %s is %s, not JSON: give lines, chars, bytes or records", s.src.Name, s.src.Kind())
	case err != nil:
		err = fmt.Errorf("at %s in %s: %w", content.ClipBytes(content.VisibleLine(pointer), 100), s.src.Name, err)
	case at.Start == at.End:
		err = fmt.Errorf("at: %s is empty", s.src.Name)
	}
	return at, pointer, err
}

// fits says whether a page takes all of a value.
func (s *slicer) fits(at content.Span) bool {
	if at.End-at.Start > longRow {
		return false
	}
	l, err := readPart(newText(s.ctx, s.src, s.out), at)
	return err == nil && s.fit(l.Whole) == len(l.Whole)
}

// elements lists what is in an array or object; nil for what has nothing in it.
func (s *slicer) elements(pointer string, at content.Span) (*list, error) {
	object := false
	var one [1]byte
	if _, err := s.text.ReadAt(one[:], at.Start); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	switch one[0] {
	case '{':
		object = true
	case '[':
	default:
		return nil, nil
	}
	l := &list{name: s.src.Name + " at " + content.ClipBytes(content.VisibleLine(pointer), 100), end: at.End}
	l.each = func(visit func(int64, content.Span) bool) error {
		value := io.LimitReader(s.text.reader(at.Start), at.End-at.Start)
		return content.Elements(s.ctx, value, func(i int64, e content.Span) bool {
			return visit(i, content.Span{Start: at.Start + e.Start, End: at.Start + e.End})
		})
	}
	l.call = func(r span) tools.Call {
		return tools.Call{Tool: "slice", Args: sliceArgs{Source: s.src.Name, At: &pointer, Records: r.String()}}
	}
	l.whole = func(i int64, row part) tools.Call {
		token := strconv.FormatInt(i, 10)
		if object {
			key, ok := memberKey(row)
			if !ok {
				return s.bytesOf(row)
			}
			token = key
		}
		return s.callAt(pointer + "/" + token)
	}
	any := false
	if err := l.each(func(int64, content.Span) bool { any = true; return false }); err != nil || !any {
		return nil, err
	}
	return l, nil
}

func (s *slicer) callAt(pointer string) tools.Call {
	return tools.Call{Tool: "slice", Args: sliceArgs{Source: s.src.Name, At: &pointer}}
}

var pointerEscapes = strings.NewReplacer("~", "~0", "/", "~1")

// memberKey is the key of a member as a token of a JSON Pointer; false where it is too long to be told.
func memberKey(row part) (token string, ok bool) {
	d := jsontext.NewDecoder(bytes.NewReader(row.Head()))
	t, err := d.ReadToken()
	if err != nil || t.Kind() != '"' {
		return "", false
	}
	return pointerEscapes.Replace(t.String()), true
}
