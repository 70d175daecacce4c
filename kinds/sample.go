package kinds

import (
	"bytes"
	"context"
	"errors"
	"io"
	"path"
	"strings"
	"sync"

	"github.com/mcp-funnel/mcp-funnel/kinds/values"
	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// Sample is the beginning of a text, as sniffers see it.
type Sample struct {
	text   []byte // in UTF-8, at most 2·[content.SniffSize] bytes
	whole  bool   // text is the complete text
	name   string // file name, or ""
	ext    string // file extension in lower case, with the dot
	binary bool   // the bytes are not text in any encoding; field text is not decoded then

	lines func() [][]byte     // calls splitText once
	json  func() content.Kind // calls parseJSON once, for the sniffers of JSON and of NDJSON
}

func newSample(prefix []byte, whole bool, name string) *Sample {
	if len(prefix) > content.SniffSize {
		prefix, whole = prefix[:content.SniffSize], false
	}
	s := &Sample{text: prefix, whole: whole, name: name, ext: strings.ToLower(path.Ext(name))}
	switch e := content.Detect(prefix, whole); e {
	case content.NoText:
		s.binary = true
	case content.UTF8:
	default:
		// The prefix may end inside a character; the incomplete character does not matter here.
		s.text, _ = io.ReadAll(io.LimitReader(e.Reader(bytes.NewReader(prefix)), 2*content.SniffSize))
	}
	s.lines, s.json = sync.OnceValue(s.splitText), sync.OnceValue(s.parseJSON)
	return s
}

// parseJSON returns JSON, NDJSON, or "" for another text.
func (s *Sample) parseJSON() content.Kind {
	if text := bytes.TrimLeft(s.text, " \t\r\n"); len(text) > 0 {
		return sniffJSON(text, s.whole, s.ext)
	}
	return ""
}

// splitText returns the lines of the text. It returns none for blank text and for source code: both are kind text,
// whatever their lines look like.
func (s *Sample) splitText() [][]byte {
	if len(bytes.TrimLeft(s.text, " \t\r\n")) == 0 {
		return nil
	}
	all := splitLines(s.text, s.whole)
	name := s.name
	if name == "" {
		name, _ = content.FileHeader(all[0])
	}
	if content.IsSource(name) {
		return nil
	}
	return all
}

// splitLines splits a text into lines without line endings. It drops a last line that the end of the prefix cuts.
func splitLines(p []byte, whole bool) [][]byte {
	all := bytes.Split(p, []byte{'\n'})
	if last := len(all) - 1; last > 0 && (!whole || len(all[last]) == 0) {
		all = all[:last]
	}
	for i, l := range all {
		all[i] = bytes.TrimSuffix(l, []byte{'\r'})
	}
	return all
}

// parses reports whether a reader takes the sample; of a part of a text, up to the last line that is not indented, or
// to the last line if all but the first are.
func (s *Sample) parses(read values.Reader) bool {
	text := s.text
	if !s.whole {
		text = text[:bytes.LastIndexByte(text, '\n')+1]
		for end := len(text); end > 0; end = bytes.LastIndexByte(text[:end-1], '\n') + 1 {
			if end < len(text) && text[end] > ' ' {
				text = text[:end]
				break
			}
		}
	}
	err := read(context.Background(), bytes.NewReader(text), values.Sink{Value: func(int64, []byte) error { return nil }})
	_, remarks := errors.AsType[*content.Remarks](err)
	return err == nil || remarks
}
