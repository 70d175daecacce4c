package extract

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// notebook is a Jupyter notebook of format 4.
type notebook struct {
	Cells []struct {
		Source  lines
		Outputs []struct {
			Text          lines
			Data          map[string]json.RawMessage // by MIME type
			Ename, Evalue string
			Traceback     []string
		}
	}
}

// lines is text that JSON has as one string or as an array of them.
type lines string

// UnmarshalJSON implements [json.Unmarshaler].
func (l *lines) UnmarshalJSON(b []byte) error {
	var all []string
	if err := json.Unmarshal(b, &all); err == nil {
		*l = lines(strings.Join(all, ""))
		return nil
	}
	return json.Unmarshal(b, (*string)(l))
}

// colors are the terminal's in a traceback.
var colors = content.Pattern(`\x1b\[[0-9;]*m`)

// readNotebook reads the sources of cells and their outputs, as far as they are text.
func readNotebook(_ context.Context, b *builder, r io.ReaderAt, size int64) error {
	if size > maxText {
		return fmt.Errorf("%w: %d bytes, the limit is %d", ErrTooLarge, size, maxText)
	}
	var n notebook
	if err := json.NewDecoder(io.NewSectionReader(r, 0, size)).Decode(&n); err != nil {
		return err
	}
	if len(n.Cells) == 0 {
		return fmt.Errorf("%w: it has no cells of notebook format 4", ErrBroken)
	}
	noText := 0
	for i, c := range n.Cells {
		place := fmt.Sprintf("cell %d", i+1)
		b.addLines(place, string(c.Source))
		for _, o := range c.Outputs {
			text := o.Text
			if raw, ok := o.Data["text/plain"]; ok && text.UnmarshalJSON(raw) != nil || !ok && len(o.Data) > 0 {
				noText++
			}
			if o.Ename != "" {
				text += lines(colors().ReplaceAllString(strings.Join(append(o.Traceback, o.Ename+": "+o.Evalue), "\n"), ""))
			}
			b.addLines(place+", output", string(text))
		}
	}
	if noText > 0 {
		b.note("%s without text, such as pictures", count(noText, "output"))
	}
	return nil
}

// addLines appends lines that are not blank as they are, at a place.
func (b *builder) addLines(place, text string) {
	for line := range strings.Lines(text) {
		if line = strings.TrimRight(line, " \t\r\n"); line != "" {
			b.addRawAt(place, line)
		}
	}
}
