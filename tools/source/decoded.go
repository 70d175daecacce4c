package source

import (
	"fmt"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// Decoded collects which texts were decoded, for one note on all of them.
type Decoded struct {
	n     int64
	first []string
	from  content.Encoding // of the first
}

// Add counts a text that is shown under name, if it is stored in another encoding than UTF-8.
func (d *Decoded) Add(name string, stored content.Encoding) {
	switch stored {
	case "", content.UTF8, content.UTF8BOM, content.NoText:
		return
	}
	if d.n++; d.n == 1 {
		d.from = stored
	}
	if len(d.first) < 3 {
		d.first = append(d.first, content.ClipBytes(content.VisibleLine(name), 100)+" ("+string(stored)+")")
	}
}

// Note returns the note on the only text of a call, "" if it was not decoded.
func (d *Decoded) Note() string {
	if d.n == 0 {
		return ""
	}
	return "decoded from " + string(d.from)
}

// NoteAll returns the note on all of several texts, with the names of up to three; "" if none was decoded.
func (d *Decoded) NoteAll() string {
	switch {
	case d.n == 0:
		return ""
	case d.n == 1:
		return "decoded: " + d.first[0]
	case d.n == int64(len(d.first)):
		return fmt.Sprintf("%d files are decoded: %s", d.n, strings.Join(d.first, ", "))
	default:
		return fmt.Sprintf("%d files are decoded, the first: %s", d.n, strings.Join(d.first, ", "))
	}
}
