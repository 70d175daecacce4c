package tools

import "github.com/mcp-funnel/mcp-funnel/base/runes"

// RowBuffer collects a row that arrives in pieces: all of it up to a limit, of a longer row its ends and its length.
// The zero value is an empty row.
type RowBuffer struct {
	Whole []byte // the whole row, unless Long
	Long  bool
	Size  int64 // in bytes

	head, tail  []byte
	partialChar []byte // the bytes of an incomplete char at the end of the last piece
	chars       int64  // without partialChar
}

// Add appends the next piece. A row of over most bytes becomes Long; most must be at least [MaxRowEdge].
func (b *RowBuffer) Add(p []byte, most int) {
	b.Size += int64(len(p))
	if !b.Long && len(b.Whole)+len(p) <= most {
		b.Whole = append(b.Whole, p...)
		return
	}
	if !b.Long {
		whole := b.Whole
		b.Long, b.Whole = true, nil
		b.addToEnds(whole)
	}
	b.addToEnds(p)
}

// heldTail is how many bytes of a Long row's end are held: CutSuffix may take its last two, a line end.
const heldTail = MaxRowEdge + 2

// addToEnds appends a piece to a Long row, of which only both ends are held.
func (b *RowBuffer) addToEnds(p []byte) {
	b.head = append(b.head, p[:min(len(p), MaxRowEdge-len(b.head))]...)
	b.tail = append(b.tail, p[max(0, len(p)-heldTail):]...)
	if len(b.tail) > 8*MaxRowEdge { // not at every piece, because it copies the tail
		b.tail = append(b.tail[:0], b.tail[len(b.tail)-heldTail:]...)
	}
	if len(b.partialChar) > 0 {
		p = append(b.partialChar, p...)
	}
	done := runes.Complete(p)
	b.chars += int64(runes.Count(p[:done]))
	b.partialChar = append([]byte(nil), p[done:]...)
}

// CutSuffix removes the byte c, below 128, from the end of the row, and reports whether it was there.
func (b *RowBuffer) CutSuffix(c byte) bool {
	end := &b.Whole
	if b.Long {
		end = &b.tail
	}
	n := len(*end)
	if n == 0 || (*end)[n-1] != c {
		return false
	}
	*end = (*end)[:n-1]
	b.Size--
	if b.Long {
		b.chars--
	}
	return true
}

// Head returns the beginning of the row: all of it, or its first [MaxRowEdge] bytes.
func (b *RowBuffer) Head() []byte {
	if b.Long {
		return b.head
	}
	return b.Whole
}

// Show adds the row to a page; more is the call that shows all of it.
func (b *RowBuffer) Show(page Page, more Call) error {
	if !b.Long {
		return page.Row(b.Whole, more)
	}
	head := b.head[:runes.Complete(b.head)]
	tail := runes.TrimStart(b.tail[max(0, len(b.tail)-MaxRowEdge):])
	between := b.chars + int64(runes.Count(b.partialChar)-runes.Count(head)-runes.Count(tail))
	return page.TruncatedRow(head, tail, between, more)
}
