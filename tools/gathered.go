package tools

import (
	"unicode/utf8"

	"github.com/mcp-funnel/mcp-funnel/internal/runes"
)

// Gathered is a row that comes piece by piece: all of it as long as it may be held, of a longer one its ends.
// The zero value is an empty row.
type Gathered struct {
	Whole []byte // all of it, where it is not Long
	Long  bool
	Size  int64 // in bytes

	head, tail []byte
	torn       []byte // a char that the end of what came before cut
	chars      int64  // without torn
}

// Add takes the next piece. A row of over most bytes becomes Long; most is at least [Edge].
func (g *Gathered) Add(p []byte, most int) {
	g.Size += int64(len(p))
	if !g.Long && len(g.Whole)+len(p) <= most {
		g.Whole = append(g.Whole, p...)
		return
	}
	if !g.Long {
		whole := g.Whole
		g.Long, g.Whole = true, nil
		g.further(whole)
	}
	g.further(p)
}

// further takes a piece of a row that is not held.
func (g *Gathered) further(p []byte) {
	g.head = append(g.head, p[:min(len(p), Edge-len(g.head))]...)
	g.tail = append(g.tail, p[max(0, len(p)-Edge):]...)
	if len(g.tail) > 8*Edge { // seldom: it is moved then
		g.tail = append(g.tail[:0], g.tail[len(g.tail)-Edge:]...)
	}
	if len(g.torn) > 0 {
		p = append(g.torn, p...)
	}
	done := runes.Complete(p)
	g.chars += int64(runes.Count(p[:done]))
	g.torn = append([]byte(nil), p[done:]...)
}

// CutSuffix leaves out the byte c, below 128, at the end of the row, and says whether it was there.
func (g *Gathered) CutSuffix(c byte) bool {
	end := &g.Whole
	if g.Long {
		end = &g.tail
	}
	n := len(*end)
	if n == 0 || (*end)[n-1] != c {
		return false
	}
	*end = (*end)[:n-1]
	g.Size--
	if g.Long {
		g.chars--
	}
	return true
}

// Head is the beginning of the row: all of it, or [Edge] bytes.
func (g *Gathered) Head() []byte {
	if g.Long {
		return g.head
	}
	return g.Whole
}

// Show gives the row to out; more shows all of it.
func (g *Gathered) Show(out Output, more Call) error {
	if !g.Long {
		return out.Row(g.Whole, more)
	}
	head := g.head[:runes.Complete(g.head)]
	tail := g.tail[max(0, len(g.tail)-Edge):]
	for i := 1; i < utf8.UTFMax && len(tail) > 0 && !utf8.RuneStart(tail[0]); i++ {
		tail = tail[1:]
	}
	between := g.chars + int64(runes.Count(g.torn)-runes.Count(head)-runes.Count(tail))
	return out.Cut(head, tail, between, more)
}
