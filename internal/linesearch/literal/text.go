package literal

import "bytes"

// Text searches for a text of at least two bytes, with vectors if the processor has them. It is safe for concurrent
// use.
type Text struct{ search *pair }

// NewText prepares a search for text.
func NewText(text string) *Text {
	return &Text{newPair(newNeedle(text, false))}
}

// In reports whether b holds the text.
func (l *Text) In(b []byte) bool {
	if !haveTeddy {
		return bytes.Contains(b, []byte(l.search.Text))
	}
	by := *l.search // a copy: Find changes it
	at, _, _ := by.Find(b, 0)
	return at < len(b)
}
