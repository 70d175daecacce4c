package write

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/transform"

	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/tools"
)

// Edit replaces a text by another one.
type Edit struct {
	Old string `json:"old"`           // must be in the file exactly once
	New string `json:"new"`           // in its place
	All bool   `json:"all,omitempty"` // every place is replaced
}

// Edits are made one after another: each sees what those before it made.
type Edits []Edit

// Shape implements [tools.Shaped].
func (Edits) Shape() (kind, schema string) {
	return "array of edits", `"type":"array","items":{"type":"object","properties":{"old":{"type":"string"},` +
		`"new":{"type":"string"},"all":{"type":"boolean"}},"required":["old","new"]}`
}

// UnmarshalJSON implements [json.Unmarshaler]. One object is a list of one; some clients quote the list.
func (e *Edits) UnmarshalJSON(raw []byte) error {
	var quoted string
	if json.Unmarshal(raw, &quoted) == nil {
		raw = []byte(quoted)
	}
	if raw = bytes.TrimSpace(raw); len(raw) > 0 && raw[0] == '{' {
		raw = append(append([]byte{'['}, raw...), ']')
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	var list []struct {
		Old, New *string
		All      bool
	}
	err := d.Decode(&list)
	for i, one := range list {
		if one.Old == nil || one.New == nil {
			err = errors.Join(err, fmt.Errorf("edits[%d] lacks old or new", i))
			break
		}
		*e = append(*e, Edit{*one.Old, *one.New, one.All})
	}
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		err = errors.New("not " + wrong.Value)
	}
	if err != nil {
		return fmt.Errorf(`edits must be a list of {"old": "…", "new": "…"}, perhaps with "all": true: %w`, err)
	}
	return nil
}

type editArgs struct {
	Path   string `json:"path" help:"File to change."`
	Edits  Edits  `json:"edits" help:"Replacements, made one after another, all or none: old must be in the file exactly once, or all is true. A line end in old and new is that of the file."`
	Expect string `json:"expect,omitempty" jsonschema:"hash shown by read" help:"Hash of the file, as read and the answers of these tools show it: the file is changed only if it still has it."`
	DryRun bool   `json:"dry_run,omitempty" help:"Show the diff and change nothing."`
	Keep   *bool  `json:"keep,omitempty" help:"false: the old content is not kept, and the change cannot be undone. Needed for files of over 64 MiB."`
}

// Check implements [tools.Checker].
func (a editArgs) Check() error {
	if len(a.Edits) == 0 {
		return errors.New(`edits is empty: give [{"old": "…", "new": "…"}]`)
	}
	for i, e := range a.Edits {
		switch e.Old {
		case "":
			return fmt.Errorf("edits[%d]: old is empty: give the text to replace; "+
				"write with append=true adds at the end", i)
		case e.New:
			return fmt.Errorf("edits[%d]: old and new are the same text", i)
		}
	}
	return nil
}

// Edit returns the tool edit.
func (w *Writer) Edit() tools.Tool {
	return tools.New(tools.Tool{
		Name:        "edit",
		Title:       "Edit",
		Description: "Replace exact texts; shows the diff.",
		Effect:      tools.Destructive,
		Toolset:     Toolset,
		Whole:       tools.Whole{Lines: shownLines},
	}, w.edit)
}

// shownLines is how many lines of a diff are shown; a longer one is a receipt.
const shownLines = 45 // 40 of the diff, and what stands before it

// maxGrowth bounds the bytes by which edits make a file longer.
const maxGrowth = 256 << 20

func (w *Writer) edit(ctx context.Context, a editArgs, in tools.Input, out tools.Output) error {
	if err := a.Check(); err != nil {
		return err
	}
	t, err := w.target(in, a.Path, false)
	if err != nil {
		return err
	}
	c := w.newCall(in, out, a.Keep, t)
	c.dry = a.DryRun
	return c.answer(ctx, func() (*step, error) {
		old, err := c.expected(ctx, t, a.Expect)
		if err != nil {
			return nil, err
		}
		if old == nil {
			return nil, t.wrap(errors.New("no such file; write with content creates it"))
		}
		text, places := *old.text, 0
		for i, one := range a.Edits {
			n, err := text.edit(ctx, one)
			if err != nil {
				which, after := "", ""
				if len(a.Edits) > 1 {
					which = fmt.Sprintf("edits[%d]: ", i)
				}
				if i > 0 {
					after = "; the edits before it were made first"
				}
				return nil, t.wrap(fmt.Errorf("nothing was changed: %s%w (hash %s%s)", which, err, old.hash(), after))
			}
			places += n
			if by := text.size() - old.size(); by > maxGrowth {
				return nil, t.wrap(fmt.Errorf("nothing was changed: the file would grow by %d bytes, over %d MiB", by, maxGrowth>>20))
			}
		}
		return c.replace(ctx, "edit", old, &text, content.Plural(int64(places), "place", "places")+" replaced")
	})
}

// fits returns an error if a text has characters beyond ASCII, and the file counts as UTF-8 by its beginning but is not.
func (p *pieces) fits(ctx context.Context, text string) error {
	if p.enc != content.UTF8 || !strings.ContainsFunc(text, func(r rune) bool { return r >= utf8.RuneSelf }) {
		return nil
	}
	valid := transform.NewReader(content.WithContext(ctx, p.reader()), encoding.UTF8Validator)
	_, err := io.Copy(io.Discard, valid)
	if errors.Is(err, encoding.ErrInvalidUTF8) {
		err = errors.New("it has bytes that are not UTF-8, so only ASCII can be written to it")
	}
	return err
}

// edit makes an edit and returns at how many places. The error says what is in the way, and where.
func (p *pieces) edit(ctx context.Context, one Edit) (int, error) {
	if err := maskedIn(one.New, one.Old); err != nil {
		return 0, err
	}
	forms := []string{one.Old}
	if !strings.Contains(one.Old, "\r") { // else it says which line ends it means
		one.New = strings.ReplaceAll(one.New, "\r\n", "\n")
		if strings.Contains(one.Old, "\n") {
			forms = append(forms, inCRLF(one.Old))
		}
	}
	var places []place
	for _, form := range forms {
		at, n, err := p.find(ctx, form, maxMatches)
		if err != nil {
			return 0, err
		}
		if n > maxMatches {
			return 0, fmt.Errorf("old is in the file %d times, and at most %d places are replaced at once", n, maxMatches)
		}
		if form[0] == '\n' { // none begins in the middle of \r\n
			split, _, err := p.find(ctx, "\r"+form, maxMatches)
			if err != nil {
				return 0, err
			}
			at = slices.DeleteFunc(at, func(one place) bool {
				_, is := slices.BinarySearchFunc(split, one, func(a, b place) int { return cmp.Compare(a.end(), b.end()) })
				return is
			})
		}
		places = append(places, at...)
	}
	slices.SortFunc(places, func(a, b place) int { return cmp.Compare(a.at, b.at) })
	switch {
	case len(places) == 0:
		return 0, p.explainMissing(ctx, one)
	case len(places) > 1 && !one.All: // also if they overlap: each would leave another text
		return 0, p.explainSeveral(ctx, places)
	}
	end := int64(0)
	places = slices.DeleteFunc(places, func(p place) bool {
		if p.at < end {
			return true
		}
		end = p.end()
		return false
	})
	return len(places), p.replaceBy(ctx, places, one)
}

// replaceBy replaces the places by the new text, in which a line end is that of the place.
func (p *pieces) replaceBy(ctx context.Context, places []place, one Edit) error {
	if err := p.fits(ctx, one.New); err != nil {
		return err
	}
	plain, _, err := p.enc.Encode(one.New)
	if err != nil {
		return err
	}
	crlf := plain
	if strings.Contains(one.New, "\n") && !strings.Contains(one.New, "\r") {
		if crlf, _, err = p.enc.Encode(inCRLF(one.New)); err == nil && !strings.Contains(one.Old, "\n") {
			err = p.findLineEnds(ctx, places)
		}
		if err != nil {
			return err
		}
	}
	short, long := newPiece(plain), newPiece(crlf)
	for i := range places {
		if places[i].by = short; places[i].crlf {
			places[i].by = long
		}
	}
	p.splice(places)
	return nil
}

// inCRLF returns a text without \r with line ends \r\n.
func inCRLF(text string) string { return strings.ReplaceAll(text, "\n", "\r\n") }

// maxMixed bounds the places whose line ends are looked up, in a file that has both.
const maxMixed = 1000

// findLineEnds sets whether the line of each place ends in \r\n; one without an end is like most of the file.
func (p *pieces) findLineEnds(ctx context.Context, places []place) error {
	_, long, err := p.find(ctx, "\r\n", 0)
	if err != nil || long == 0 {
		return err
	}
	_, all, err := p.find(ctx, "\n", 0)
	if long != all && len(places) > maxMixed { // each is looked up by itself
		return fmt.Errorf("some lines of the file end in \\r\\n and others in \\n: at most %d places are replaced at once by a "+
			"text with a line end", maxMixed)
	}
	for i, one := range places {
		if places[i].crlf = 2*long > all; long == all || err != nil {
			continue
		}
		near := p.part(one.end(), one.end()+maxAround)
		var first, windows []place
		if first, _, err = near.find(ctx, "\n", 1); err == nil && len(first) > 0 {
			windows, _, err = near.find(ctx, "\r\n", 1)
			places[i].crlf = len(windows) > 0 && windows[0].end() == first[0].end()
		}
	}
	return err
}
