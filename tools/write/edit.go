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
		e, err := newEditor(old)
		if err != nil {
			return nil, t.wrap(err)
		}
		places := 0
		for i, one := range a.Edits {
			n, err := e.replace(ctx, one)
			if err != nil {
				which := ""
				if len(a.Edits) > 1 {
					which = fmt.Sprintf("edits[%d]: ", i)
				}
				return nil, t.wrap(fmt.Errorf("nothing was changed: %s%w (hash %s)", which, err, old.hash()))
			}
			places += n
		}
		return c.replace(ctx, "edit", old, &result{text: e.text},
			content.Plural(int64(places), "place", "places")+" replaced",
			func(to io.Writer) (int64, int64, error) { return e.text.diff(ctx, to, old.size(), e.enc) })
	})
}

// editor makes edits of one file.
type editor struct {
	text *pieces
	enc  content.Encoding
}

// newEditor returns an editor of a text file. The error says that the file is none.
func newEditor(old *before) (*editor, error) {
	head, err := readRange(old, 0, min(old.size(), content.SniffSize))
	if err != nil {
		return nil, err
	}
	enc := content.Detect(head, int64(len(head)) == old.size())
	if enc == content.NoText {
		return nil, errors.New("it is binary, and only texts can be edited")
	}
	return &editor{text: newPieces(old, old.size()), enc: enc}, nil
}

// fits returns an error if a text has characters beyond ASCII, and the file counts as UTF-8 by its beginning but is not.
func (e *editor) fits(ctx context.Context, text string) error {
	if e.enc != content.UTF8 || !strings.ContainsFunc(text, func(r rune) bool { return r >= utf8.RuneSelf }) {
		return nil
	}
	valid := transform.NewReader(content.WithContext(ctx, e.text.reader()), encoding.UTF8Validator)
	_, err := io.Copy(io.Discard, valid)
	if errors.Is(err, encoding.ErrInvalidUTF8) {
		err = errors.New("it has bytes that are not UTF-8, so only ASCII can be written to it")
	}
	return err
}

// replace makes an edit and returns at how many places. The error says what is in the way, and where.
func (e *editor) replace(ctx context.Context, one Edit) (int, error) {
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
		raw, unit, err := e.enc.Encode(form)
		if err != nil {
			return 0, err
		}
		at, n, err := e.text.find(ctx, raw, unit, maxMatches)
		if err != nil {
			return 0, err
		}
		if n > maxMatches {
			return 0, fmt.Errorf("old is in the file %d times, and at most %d places are replaced at once", n, maxMatches)
		}
		var split []int64 // where it begins in the middle of \r\n, less a unit
		if raw, _, err := e.enc.Encode("\r" + form); err == nil && form[0] == '\n' {
			if split, _, err = e.text.find(ctx, raw, unit, maxMatches); err != nil {
				return 0, err
			}
		}
		for _, at := range at {
			if _, is := slices.BinarySearch(split, at-int64(unit)); !is {
				places = append(places, place{at: at, n: int64(len(raw)), crlf: strings.Contains(form, "\r\n")})
			}
		}
	}
	slices.SortFunc(places, func(a, b place) int { return cmp.Compare(a.at, b.at) })
	switch {
	case len(places) == 0:
		return 0, e.explainMissing(ctx, one)
	case len(places) > 1 && !one.All: // also if they overlap: each would leave another text
		return 0, e.explainSeveral(ctx, places)
	}
	end := int64(0)
	places = slices.DeleteFunc(places, func(p place) bool {
		if p.at < end {
			return true
		}
		end = p.at + p.n
		return false
	})
	return len(places), e.put(ctx, places, one)
}

// put replaces the places by the new text, in which a line end is that of the place.
func (e *editor) put(ctx context.Context, places []place, one Edit) error {
	if err := e.fits(ctx, one.New); err != nil {
		return err
	}
	plain, _, err := e.enc.Encode(one.New)
	if err != nil {
		return err
	}
	crlf := plain
	if strings.Contains(one.New, "\n") && !strings.Contains(one.New, "\r") {
		if crlf, _, err = e.enc.Encode(inCRLF(one.New)); err == nil && !strings.Contains(one.Old, "\n") {
			err = e.findLineEnds(ctx, places)
		}
		if err != nil {
			return err
		}
	}
	for i := range places {
		if places[i].text = plain; places[i].crlf {
			places[i].text = crlf
		}
	}
	e.text.replace(places)
	return nil
}

// inCRLF returns a text without \r with line ends \r\n.
func inCRLF(text string) string { return strings.ReplaceAll(text, "\n", "\r\n") }

// findLineEnds sets whether the line of each place ends in \r\n; one without an
// end is like most of the file.
func (e *editor) findLineEnds(ctx context.Context, places []place) error {
	lf, unit, err := e.enc.Encode("\n")
	if err != nil {
		return err
	}
	crlf, _, err := e.enc.Encode("\r\n")
	if err != nil {
		return err
	}
	_, short, err := e.text.find(ctx, crlf, unit, 0)
	if err != nil || short == 0 {
		return err
	}
	_, all, err := e.text.find(ctx, lf, unit, 0)
	for i := range places {
		if places[i].crlf = short == all; short == all || err != nil {
			continue
		}
		end := places[i].at + places[i].n
		var near []byte
		if near, err = e.text.section(end, end+maxAround); err == nil {
			at := indexUnit(near, lf)
			places[i].crlf = at >= 0 && bytes.HasSuffix(near[:at+unit], crlf) || at < 0 && 2*short > all
		}
	}
	return err
}
