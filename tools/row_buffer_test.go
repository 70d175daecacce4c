package tools

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// ends takes what a row is shown as.
type ends struct {
	Page
	row, tail string
	between   int64
	cut       bool
}

func (e *ends) Row(b []byte, _ Call) error { e.row = string(b); return nil }

func (e *ends) TruncatedRow(head, tail []byte, between int64, _ Call) error {
	e.row, e.tail, e.between, e.cut = string(head), string(tail), between, true
	return nil
}

// Whatever the pieces, a row is itself, or its two ends and the number of chars between them.
func TestRowBufferIsTheRow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		unit := rapid.SampledFrom([]string{"x", "é", "世", "a😀", "\xff", "\xe4\xb8x", "x\r"}).Draw(t, "text")
		text := strings.Repeat(unit, rapid.IntRange(0, 12*MaxRowEdge).Draw(t, "bytes")/len(unit))
		step := rapid.IntRange(MaxRowEdge/16+1, 3*MaxRowEdge).Draw(t, "piece")
		most := rapid.IntRange(MaxRowEdge, 4*MaxRowEdge).Draw(t, "most")
		var g RowBuffer
		for rest := text; rest != ""; rest = rest[min(step, len(rest)):] {
			g.Add([]byte(rest[:min(step, len(rest))]), most)
		}
		if strings.HasSuffix(text, "\r") != g.CutSuffix('\r') {
			t.Fatal("its last byte is another")
		}
		text = strings.TrimSuffix(text, "\r")
		var e ends
		if err := g.Show(&e, Call{}); err != nil || g.Size != int64(len(text)) {
			t.Fatal(g.Size, err)
		}
		switch {
		case !e.cut && (e.row != text || len(text) > most):
			t.Fatalf("%d bytes, not %d", len(e.row), len(text))
		case e.cut && (!strings.HasPrefix(text, e.row) || !strings.HasSuffix(text, e.tail) ||
			len(e.row) <= MaxRowEdge-utf8.UTFMax || len(e.tail) < MaxRowEdge-utf8.UTFMax):
			t.Fatalf("its ends are of %d and %d bytes", len(e.row), len(e.tail))
		case e.cut &&
			utf8.RuneCountInString(e.row)+utf8.RuneCountInString(e.tail)+int(e.between) != utf8.RuneCountInString(text):
			t.Fatalf(
				"%d chars between %d and %d bytes of %d chars", e.between, len(e.row), len(e.tail), utf8.RuneCountInString(text),
			)
		}
	})
}
