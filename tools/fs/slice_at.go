package fs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/tools"
)

// showValue shows the value at a JSON Pointer: as stored if it fits on a page, else its elements or members as records.
// narrowed reports whether the call gave records, with range r.
func (s *slicer) showValue(pointer string, r sliceRange, narrowed bool) error {
	if s.src.Kind() == content.Diff {
		at, err := s.findInDiff(pointer)
		switch {
		case err != nil:
			return fmt.Errorf("at %w", err)
		case narrowed:
			return errors.New("at names one file or hunk of a diff: give either at or records")
		}
		return s.showSpan(at)
	}
	at, pointer, err := s.findValue(pointer)
	if err != nil {
		return err
	}
	s.at = pointer
	if s.src.Kind() == content.NDJSON && pointer == "" && (narrowed || !s.fitsPage(at)) {
		return s.showRecords(r)
	}
	l, err := s.elementList(pointer, at)
	if err != nil {
		return err
	}
	switch {
	case l != nil && (narrowed || !s.fitsPage(at)):
		return s.showList(*l, r)
	case narrowed:
		return fmt.Errorf("at %s in %s is not an array or object with elements, so it has no records",
			content.ClipBytes(content.VisibleLine(pointer), 100), s.src.Name)
	}
	return s.showSpan(at)
}

// showSpan shows a part of the text unchanged.
func (s *slicer) showSpan(at content.Span) error {
	return s.showText(textCursor{at: at.Start, unit: "bytes", number: at.Start, to: at.End - 1}, at.End, -1)
}

// findValue returns the span of the value and the pointer that found it. If the pointer is not found, its escaped
// hidden chars (\xNN) are decoded and the lookup is retried, because pointers are printed with such escapes.
func (s *slicer) findValue(pointer string) (content.Span, string, error) {
	k := s.src.Kind()
	if k != content.NDJSON {
		k = content.JSON
	}
	at, err := content.Point(s.ctx, s.text.reader(0), k, pointer)
	if real := content.Hidden(pointer); err != nil && real != pointer { // missing, or the text is malformed before it
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

// fitsPage reports whether a page can show all of a value.
func (s *slicer) fitsPage(at content.Span) bool {
	if at.End-at.Start > maxHeldRow {
		return false
	}
	l, err := readPart(s.text, at)
	return err == nil && s.fit(l.Whole) == len(l.Whole)
}

// elementList returns the elements of an array or the members of an object; nil if there are none.
func (s *slicer) elementList(pointer string, at content.Span) (*recordList, error) {
	var one [1]byte
	if _, err := s.text.ReadAt(one[:], at.Start); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	object := one[0] == '{'
	if !object && one[0] != '[' {
		return nil, nil
	}
	l := &recordList{name: s.src.Name + " at " + content.ClipBytes(content.VisibleLine(pointer), 100), end: at.End}
	l.each = func(visit func(int64, content.Span) bool) error {
		value := io.LimitReader(s.text.reader(at.Start), at.End-at.Start)
		return content.Elements(s.ctx, value, func(i int64, e content.Span) bool {
			return visit(i, content.Span{Start: at.Start + e.Start, End: at.Start + e.End})
		})
	}
	l.call = func(r sliceRange) tools.Call {
		return tools.Call{Tool: "slice", Args: sliceArgs{Source: s.src.Name, At: &pointer, Records: r.String()}}
	}
	l.whole = func(i int64, row textRow) tools.Call {
		token := strconv.FormatInt(i, 10)
		if object {
			key, ok := memberKey(row)
			if !ok {
				return s.bytesCall(row)
			}
			token = key
		}
		return s.pointerCall(pointer + "/" + token)
	}
	any := false
	if err := l.each(func(int64, content.Span) bool { any = true; return false }); err != nil || !any {
		return nil, err
	}
	return l, nil
}

var pointerEscapes = strings.NewReplacer("~", "~0", "/", "~1")

// memberKey returns the key of a member as a token of a JSON Pointer; ok is false if the row is cut within the key.
func memberKey(row textRow) (token string, ok bool) {
	d := jsontext.NewDecoder(bytes.NewReader(row.Head()))
	t, err := d.ReadToken()
	if err != nil || t.Kind() != '"' {
		return "", false
	}
	return pointerEscapes.Replace(t.String()), true
}
