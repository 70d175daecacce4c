package compaction

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/session/transcript"
)

// ErrChanged is returned by Expand for a transcript that the map does not fit.
var ErrChanged = errors.New("the transcript is not as it was compacted")

// Expanded says what Expand did.
type Expanded struct {
	Restored int           // strings
	Left     []LeftPointer // pointers that the map does not have, in their order
}

// LeftPointer is a pointer that stays, because the map has nothing for it.
type LeftPointer struct {
	Line int // from 1
	Text string
}

// Expand restores what was replaced, byte for byte. A string that was not replaced stays. A string with neither its old
// text nor the text that the compaction wrote is an error.
func Expand(t *transcript.Transcript, m *Map, k Keeper) (transcript.Bytes, Expanded, error) {
	e := expander{t: t, m: m, read: func(s Swap) ([]byte, bool, error) {
		text, err := readSame(m, s, k)
		return text, true, err
	}}
	out, err := e.expand()
	return out, e.Expanded, err
}

// readSame reads the text of a swap: of its observation, or of another one of the map with the same text.
func readSame(m *Map, s Swap, k Keeper) ([]byte, error) {
	text, first := k.Read(s.Observation)
	if first == nil && hash(string(text)) == s.SHA256 {
		return text, nil
	}
	for _, other := range m.Swaps {
		if other.SHA256 != s.SHA256 || other.Observation == s.Observation {
			continue
		}
		if text, err := k.Read(other.Observation); err == nil && hash(string(text)) == s.SHA256 {
			return text, nil
		}
	}
	if first == nil {
		first = fmt.Errorf("%s has another text than the one that was replaced", s.Observation)
	}
	return nil, first
}

// expander is the state of one expansion.
type expander struct {
	Expanded
	t    *transcript.Transcript
	m    *Map
	read func(Swap) (text []byte, wanted bool, err error) // wanted: its pointer is to be restored

	edits []transcript.Edit
}

func (e *expander) expand() (transcript.Bytes, error) {
	swaps := map[string][]Swap{} // by call
	for _, s := range e.m.Swaps {
		swaps[s.ToolUse] = append(swaps[s.ToolUse], s)
	}
	for i := range e.t.Blocks {
		b := &e.t.Blocks[i]
		if !b.Result() || len(b.Texts) == 0 {
			continue
		}
		if err := e.block(b, swaps[b.ID]); err != nil {
			return nil, err
		}
	}
	return e.t.Apply(e.edits), e.t.Err()
}

// block restores a result, if one of the swaps of its call fits.
func (e *expander) block(b *transcript.Block, swaps []Swap) error {
	first := b.Texts[0]
	at := place{first.Line, first.Number}
	var fits *Swap // the one of this place, else the last one
	for i, s := range swaps {
		if first.Is(s.Pointer.Text()) && (fits == nil || fits.Literals[0].place() != at) {
			fits = &swaps[i]
		}
	}
	if fits != nil {
		return e.swap(b, *fits)
	}
	for _, s := range swaps {
		switch {
		case strings.Contains(first.Text(), s.Observation):
			return fmt.Errorf("%w: line %d has another text than the pointer to %s", ErrChanged,
				e.t.Number(first.Line, first.Start), s.Observation)
		case len(s.Literals) > 1 && s.replaced(b): // copies of it may still be replaced
			return e.swap(b, s)
		}
	}
	if isPointer(first) && !slices.Contains(e.m.Foreign, hash(first.Text())) {
		e.Left = append(e.Left, LeftPointer{e.t.Number(first.Line, first.Start), first.Text()})
	}
	return nil
}

// swap restores the strings of a result. It reads the observation only if one of them was replaced.
func (e *expander) swap(b *transcript.Block, s Swap) error {
	var text []byte
	for _, at := range s.moved(place{b.Texts[0].Line, b.Texts[0].Number}).Literals {
		l, ok := e.t.Find(at.Line, at.Number)
		if !ok {
			return fmt.Errorf("%w: line %d does not have %d strings", ErrChanged, at.Line+1, at.Number+1)
		}
		now := string(l.Raw())
		if hash(now) == at.SHA256 {
			continue
		}
		if now != at.By {
			return fmt.Errorf("%w: line %d has another text than the one that stands for %s", ErrChanged,
				e.t.Number(at.Line, l.Start), s.Observation)
		}
		if text == nil {
			var wanted bool
			var err error
			if text, wanted, err = e.read(s); err != nil || !wanted {
				return err
			}
		}
		raw, err := at.restore(text)
		if err != nil {
			return err
		}
		e.edits = append(e.edits, transcript.Edit{
			Line: at.Line, Span: l.Span, Size: len(raw), By: func() ([]byte, error) { // it is too much for the memory
				text, _, err := e.read(s)
				if err != nil {
					return nil, err
				}
				return at.restore(text)
			},
		})
		e.Restored++
	}
	return nil
}

// restore returns a string as it was written, from the text of the observation.
func (s SwappedAt) restore(text []byte) ([]byte, error) {
	raw := s.Raw
	if s.Form != rawForm {
		if s.From < 0 || s.From > len(text) || s.Size < 0 || s.Size > len(text)-s.From {
			return nil, fmt.Errorf("the map names %d bytes from %d of an observation of %d", s.Size, s.From, len(text))
		}
		whole := string(text[s.From : s.From+s.Size])
		if s.Inner != "" {
			whole = s.Head + string(quote(s.Inner, whole)) + s.Tail
		}
		raw = quote(s.Form, whole)
	}
	if hash(string(raw)) != s.SHA256 {
		return nil, fmt.Errorf("%w: line %d: the observation does not give its text back", ErrChanged, s.Line+1)
	}
	return raw, nil
}
