package fs

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// observationWriter writes one row for each observation, its columns separated by tabs: the list of obs: is a page.
type observationWriter struct{ f *finder }

func (w *observationWriter) streams() bool { return true }
func (w *observationWriter) finish() error { return nil }

func (w *observationWriter) writeEntry(e foundEntry) error {
	columns := []string{"path", "kind", "lines", "size", "modified", "tool", "name"}
	if w.f.Show == "stat" {
		columns = append(columns, "chars", "tokens", "pinned")
	}
	w.f.heading = strings.Join(columns, "\t")
	o := e.observation
	if o == nil { // the place holds nothing else
		return w.f.write([]byte(e.Path + "\n"))
	}
	name := strings.ReplaceAll(content.VisibleLine(cmp.Or(o.Name, o.File)), "\t", `\t`)
	size := fmt.Sprint(o.Bytes)
	if o.Dropped > 0 {
		w.f.keptInPart++
		size = fmt.Sprintf("%d of %d", o.Bytes, o.Bytes+o.Dropped)
	}
	row := fmt.Appendf(nil, "%s\t%s\t%d\t%s\t%s\t%s\t%s",
		e.Path, o.Stats.Kind, o.Stats.Lines, size, o.Created.UTC().Format(time.RFC3339), o.Tool, name)
	if w.f.Show == "stat" {
		tokens := "?"
		if n, margin, ok := w.f.in.ObservationTokens(o.Stats); ok {
			if tokens = fmt.Sprint(n); margin > 0 {
				tokens = fmt.Sprintf("%d ±%.1f %%", n, 100*margin)
			}
		}
		row = fmt.Appendf(row, "\t%d\t%s\t%t", o.Stats.Chars, tokens, o.Pinned)
	}
	*w.f.shown.counter(e.Type)++
	return w.f.write(append(row, '\n'))
}
