package tools

import (
	"fmt"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/internal/content"
)

// Decoded gathers which texts are shown decoded, for one note on all of them.
type Decoded struct {
	n     int64
	first []string
	from  content.Encoding // of the first
}

// Add takes a text that is shown, by the name it is shown under and how it is stored. One that is stored as UTF-8 is nothing to tell.
func (d *Decoded) Add(name string, stored content.Encoding) {
	switch stored {
	case "", content.UTF8, content.UTF8BOM, content.NoText:
		return
	}
	if d.n++; d.n == 1 {
		d.from = stored
	}
	if len(d.first) < 3 {
		d.first = append(d.first, content.ClipBytes(VisibleName(name), 100)+" ("+string(stored)+")")
	}
}

// Tell notes of the only text there was how it is stored.
func (d *Decoded) Tell(out Output) {
	if d.n > 0 {
		out.Note("decoded from " + string(d.from))
	}
}

// TellAll notes which of several texts were decoded.
func (d *Decoded) TellAll(out Output) {
	switch {
	case d.n == 0:
	case d.n == 1:
		out.Note("decoded: " + d.first[0])
	case d.n == int64(len(d.first)):
		out.Note(fmt.Sprintf("%d files are decoded: %s", d.n, strings.Join(d.first, ", ")))
	default:
		out.Note(fmt.Sprintf("%d files are decoded, the first: %s", d.n, strings.Join(d.first, ", ")))
	}
}
