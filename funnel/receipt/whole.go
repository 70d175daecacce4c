package receipt

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/mcp-funnel/mcp-funnel/base/runes"
	"github.com/mcp-funnel/mcp-funnel/funnel/capture"
	"github.com/mcp-funnel/mcp-funnel/funnel/policy"
	"github.com/mcp-funnel/mcp-funnel/funnel/text"
	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// MaxAnswer bounds one block of text, in bytes: a common client takes no more than 1 MB.
const MaxAnswer = 1_000_000

// Whole is an output as it is shown in full, with its notes.
type Whole struct {
	Text      string
	Tokens    int
	Collapsed bool // it is shown as a terminal would: the output itself has more bytes

	Output  string // Text without its notes
	Notes   string // "": none
	Written bool   // Output is as it was written: nothing in it is masked, escaped or laid out
}

// Render returns the output as it would be shown in full, without notes: records in their compact layout if that costs
// less, or exactly as they are. ok is false if too much was written for that.
func Render(f Facts, asIs bool) (w Whole, ok bool) {
	c := f.Captured
	held, all := c.Beginning()
	// No layout shrinks a text to a twelfth, and a page is smaller than that too.
	if !all || !asIs && c.Tokens.N > 12*policy.MaxReceipt {
		return Whole{}, false
	}
	shown := held
	if f.Terminal && !asIs && c.Kind() != content.Binary {
		shown = text.Terminal(held)
		w.Collapsed = !bytes.Equal(shown, held)
	}
	w.Text = text.Sanitize(string(shown), c.JSON(), text.Standalone)
	if f.Terminal {
		w.Text = markStderr(w.Text, &c.Streams, 0)
	}
	if asIs && len(w.Text) > MaxAnswer {
		return Whole{}, false
	}
	if w.Written = c.Unmasked() && w.Text == string(held); w.Written && c.Tokens.Margin == 0 {
		w.Tokens = int(c.Tokens.N)
	} else {
		w.Tokens = f.Count(w.Text)
	}
	if f.records() && !asIs {
		if rows, _, found := layout(bytes.Split(bytes.TrimSuffix(held, []byte("\n")), []byte("\n"))); found {
			t := text.Sanitize(strings.Join(rows, "\n"), false, text.Standalone)
			if n := f.Count(t); n < w.Tokens {
				w = Whole{Text: t, Tokens: n}
			}
		}
	}
	return w, true
}

// WithNotes returns the output with its notes below. One that is empty is named.
func (w Whole) WithNotes(f Facts) Whole {
	notes := Notes(f.wholeNotes())
	w.Output, w.Notes = w.Text, notes
	switch {
	case notes != "":
		if w.Text != "" && !strings.HasSuffix(w.Text, "\n") {
			w.Text += "\n"
		}
		w.Text += notes
	case f.Captured.Bytes == 0 && f.Images == 0:
		w.Text = "no output"
	default:
		return w
	}
	w.Tokens = f.Count(w.Text)
	return w
}

// ShowNews returns what an earlier answer has not shown. ok is false if too much was written for that.
func ShowNews(f Facts) (shown string, ok bool) {
	c := f.Captured
	held, all := c.News.Beginning()
	if !all || c.Kind() == content.Binary && len(held) > 0 {
		return "", false
	}
	if f.Terminal {
		held = text.Terminal(held)
	}
	shown = text.Sanitize(string(held), c.JSON(), text.Standalone)
	if f.Terminal {
		shown = markStderr(shown, &c.Streams, c.News.Line)
	}
	return shown, utf8.RuneCountInString(shown) <= policy.MaxPageChars
}

// markStderr marks the lines of standard error, if there are others, and lines that begin as if they were marked. The
// first line has the number n in the output.
func markStderr(shown string, s *capture.Streams, n int64) string {
	if !s.Mixed() && !strings.Contains(shown, text.StderrMark) {
		return shown
	}
	var out strings.Builder
	for line := range strings.Lines(shown) {
		switch {
		case s.Mixed() && s.HasStderr(n):
			out.WriteString(text.StderrMark)
		case strings.HasPrefix(strings.TrimLeft(line, "> "), text.StderrMark):
			out.WriteByte('>')
		}
		out.WriteString(line)
		n++
	}
	return out.String()
}

// wholeNotes returns the notes below an output that is shown whole: a receipt says more in its line of totals. A list
// that counts matches ends with their totals.
func (f Facts) wholeNotes() string {
	if _, list := f.Counts["rows"]; list && f.Counts["total_matches"] > 0 {
		return strings.TrimSuffix("total: "+f.matchCounts()+"; "+f.Notes, "; ")
	}
	code, ok := f.Counts["exit_code"]
	if !ok || code == 0 {
		return f.Notes
	}
	return strings.TrimSuffix(fmt.Sprintf("exit code %g; %s", code, f.Notes), "; ")
}

// Beginning returns as much of the output as one answer takes: its length in bytes, and the text as it is shown, which
// may be longer.
func Beginning(c *capture.Captured) (size int, shown string) {
	held, _ := c.Beginning()
	for limit := len(held); ; limit = min(int(int64(limit)*MaxAnswer/int64(len(shown))), limit*15/16) {
		held = held[:limit]
		if at := bytes.LastIndexByte(held, '\n'); at > len(held)/2 {
			held = held[:at]
		} else {
			held = held[:runes.Complete(held)]
		}
		if shown = text.Sanitize(string(held), c.JSON(), text.Standalone); len(shown) <= MaxAnswer {
			return len(held), shown
		}
		limit = len(held)
	}
}

// Notes returns the notes as a line of their own, "" for none.
func Notes(notes string) string {
	if notes == "" {
		return ""
	}
	return text.NotePrefix + text.LineOf(notes).Clip(600, false)
}

// MaskedNote returns a note of how much is masked, so that nobody takes a mask for a fault of the output.
func MaskedNote(n int) string { return content.Plural(int64(n), "secret", "secrets") + " masked" }
