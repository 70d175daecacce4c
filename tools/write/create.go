package write

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/tools"
	"github.com/mcp-funnel/mcp-funnel/tools/reference"
)

type writeArgs struct {
	Path    string      `json:"path,omitempty" help:"File to write."`
	Content *tools.Text `json:"content,omitempty" help:"Text of the file."`
	From    tools.Text  `json:"from,omitempty" jsonschema:"obs:ID, obs:ID jq FILTER" help:"What was kept, in place of content: obs:ID, obs:ID jq FILTER (its results, one a line), obs:ID lines A-B, or {\"$obs\": \"obs:ID\", \"jq\": \"FILTER\"}."`
	Append  bool        `json:"append,omitempty" help:"Add the text at the end of the file, in its encoding and with its line ends."`
	Mode    string      `json:"mode,omitempty" enum:"create|replace" help:"create (the default): the file must not exist. replace: the whole content of an existing file, whose hash is expect."`
	Expect  string      `json:"expect,omitempty" help:"Hash of the file that is replaced, as read shows it."`
	Parents bool        `json:"parents,omitempty" help:"Make missing directories on the way."`
	Undo    string      `json:"undo,omitempty" jsonschema:"obs:ID" help:"Undo a change: obs:ID as the answer of the change named it. The file must still be as the change left it."`
	Keep    *bool       `json:"keep,omitempty" help:"false: the old content is not kept, and the change cannot be undone. Needed for files of over 64 MiB."`
}

// Check implements [tools.Checker].
func (a writeArgs) Check() error {
	if a.Undo != "" {
		if a.Path != "" || a.Content != nil || a.From != "" || a.Append || a.Mode != "" || a.Expect != "" || a.Parents {
			return errors.New("undo is given alone: it knows the file")
		}
		_, err := observations.ParseID(a.Undo)
		return err
	}
	switch {
	case a.Path == "":
		return errors.New("path is missing: name the file to write")
	case strings.HasSuffix(a.Path, "/"):
		return fmt.Errorf("%s: it ends in /: add the name of the file", content.ClipBytes(a.Path, 200))
	case a.Content != nil && *a.Content != "" && a.From != "":
		return errors.New("give content or from, not both")
	case a.Content == nil && a.From == "":
		return errors.New("content is missing: give it, perhaps empty, or from")
	case a.Append && a.Mode != "":
		return errors.New("append adds to the file: leave out mode")
	case a.Mode == "replace" && a.Expect == "":
		return errors.New("mode=replace needs expect, the hash that read shows; edit changes a part of a file")
	case a.Mode != "replace" && !a.Append && a.Expect != "":
		return errors.New("expect is the hash of a file that is replaced: add mode=replace")
	}
	return nil
}

// Write returns the tool write.
func (w *Writer) Write() tools.Tool {
	return tools.New(tools.Tool{
		Name:        "write",
		Title:       "Write",
		Description: "Create, replace or append to a file, or undo a change.",
		Rules:       []string{"Give content or from, or undo alone."},
		Effect:      tools.Destructive,
		Toolset:     Toolset,
		Whole:       tools.Whole{Lines: shownLines},
	}, w.write)
}

func (w *Writer) write(ctx context.Context, a writeArgs, in tools.Input, out tools.Output) error {
	if err := a.Check(); err != nil {
		return err
	}
	if a.Undo != "" {
		return w.undo(ctx, a.Undo, a.Keep, in, out)
	}
	text, closed, err := w.given(ctx, a, in, out)
	if err != nil {
		return err
	}
	defer closed()
	t, err := w.target(in, a.Path, a.Parents)
	if err != nil {
		return err
	}
	c := w.newCall(in, out, a.Keep, t)
	return c.answer(ctx, func() (*step, error) {
		old, err := c.expected(ctx, t, a.Expect)
		if err != nil {
			return nil, err
		}
		switch {
		case old == nil && a.Mode == "replace":
			return nil, t.wrap(errors.New("no such file: leave out mode and expect to create it"))
		case old != nil && a.Append:
			return c.appended(ctx, t, old, text)
		case old != nil && a.Mode != "replace":
			return nil, t.wrap(fmt.Errorf("it exists, with %d bytes and hash %s: edit changes a part of it; "+
				"mode=replace with expect=%[2]s replaces the whole; append=true adds to it", old.size(), old.hash()))
		}
		return c.creation(ctx, old, text)
	})
}

// Save creates a file with a text for another tool, and returns what its answer says. There must be no such file.
func (w *Writer) Save(
	ctx context.Context, name string, text []byte, in tools.Input, out tools.Output,
) (says string, err error) {
	var answer strings.Builder
	whole := tools.Text(text)
	err = w.write(ctx, writeArgs{Path: name, Content: &whole}, in, answerTo{out, &answer})
	return answer.String(), err
}

// answerTo is an output whose answer goes elsewhere.
type answerTo struct {
	tools.Output
	to io.Writer
}

func (a answerTo) Write(b []byte) (int, error) { return a.to.Write(b) }

// creation returns the step that creates the target, or replaces the file old.
func (c *call) creation(ctx context.Context, old *before, text *pieces) (*step, error) {
	_, lines, err := (&pieces{list: text.list, enc: content.UTF8}).find(ctx, "\n", 0)
	if err != nil {
		return nil, err
	}
	says := content.Plural(int64(lines), "line", "lines") + ", " + content.Plural(text.size(), "byte", "bytes")
	if old == nil {
		return c.replace(ctx, "write", nil, text, "created, "+says)
	}
	if enc := old.text.enc; enc != content.UTF8 && enc != content.NoText {
		c.out.Note(fmt.Sprintf("the file was in %s; it has what was given now, byte for byte", enc))
	}
	if _, was, _ := old.text.find(ctx, "\r\n", 0); was > 0 && lines > 0 {
		if _, is, err := (&pieces{list: text.list, enc: content.UTF8}).find(ctx, "\r\n", 0); err == nil && is == 0 {
			c.out.Note(`lines of the file ended in \r\n; they end in \n now`)
		}
	}
	return c.replace(ctx, "write", old, text, "replaced, "+says)
}

// given returns the text that a call gives. The caller calls closed when it is read.
func (w *Writer) given(ctx context.Context, a writeArgs, in tools.Input, out tools.Output) (
	text *pieces, closed func(), err error,
) {
	closed = func() {}
	if a.From == "" {
		if err := maskedIn(string(*a.Content), ""); err != nil {
			return nil, nil, err
		}
		text, err = newPieces(newPiece([]byte(*a.Content)))
		return text, closed, err
	}
	ref, ok := reference.Parse(strings.TrimSpace(string(a.From)))
	if !ok {
		if ref, err = reference.Decode([]byte(a.From)); err != nil {
			if !strings.HasPrefix(strings.TrimSpace(string(a.From)), "{") {
				err = fmt.Errorf("not %q", content.ClipBytes(string(a.From), 200))
			}
			return nil, nil, fmt.Errorf("from is obs:ID, obs:ID jq FILTER or obs:ID lines A-B: %w", err)
		}
	}
	if ref.JQ == nil && ref.Lines == nil && !a.Append { // of any size, byte for byte
		src, err := in.Sources.Open(ctx, ref.Obs)
		if err != nil {
			return nil, nil, err
		}
		if why := src.Caveat(); why != "" {
			_ = src.Close()
			return nil, nil, errors.New(why)
		}
		text, err = newPieces(piece{from: src, n: src.Size})
		return text, func() { _ = src.Close() }, err
	}
	r := reference.Reader{JQ: w.options.JQ, In: in}
	read, err := r.Read(ctx, ref, false)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: nothing was written: %w", ref.Obs, err)
	}
	for _, note := range r.Notes {
		out.Note(note)
	}
	if read != "" && !strings.HasSuffix(read, "\n") {
		read += "\n"
	}
	text, err = newPieces(newPiece([]byte(read)))
	return text, closed, err
}

// appended returns a file with a text at its end, in its encoding and with its line ends. A last line without an end gets
// one.
func (c *call) appended(ctx context.Context, t *target, old *before, more *pieces) (*step, error) {
	newline, unit, err := old.text.enc.Encode("\n")
	if err != nil {
		return nil, t.wrap(err)
	}
	add, err := more.bytes()
	if err != nil {
		return nil, err
	}
	last, err := old.text.part(old.size()-int64(unit), old.size()).bytes()
	if err != nil {
		return nil, err
	}
	if old.size() > 0 && !bytes.Equal(last, newline) {
		add = append([]byte("\n"), add...)
		c.out.Note("the file did not end with a line end: one was added before the text")
	}
	text := *old.text
	if err := text.replaceBy(ctx, []place{{at: old.size()}}, Edit{New: string(add)}); err != nil {
		return nil, t.wrap(err)
	}
	return c.replace(ctx, "append", old, &text, fmt.Sprintf("%d bytes appended", text.size()-old.size()))
}
