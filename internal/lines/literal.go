package lines

import "bytes"

// Literal is one text of two bytes or more to look for, at the speed of memory where there are vectors. Safe for concurrent use.
type Literal struct {
	text []byte
	by   *pair
}

// NewLiteral prepares to look for text.
func NewLiteral(text string) *Literal {
	return &Literal{text: []byte(text), by: newPair(newNeedle(text, false))}
}

// In says whether it stands in b.
func (l *Literal) In(b []byte) bool {
	if !haveTeddy {
		return bytes.Contains(b, l.text)
	}
	by := *l.by // it may learn from b
	at, _, _ := by.find(b, 0)
	return at < len(b)
}
