package viewer

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"

	"github.com/mcp-funnel/mcp-funnel/kinds/record"
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/text/secrets"
	"github.com/mcp-funnel/mcp-funnel/tools/source"
)

// opened is a text that a page shows.
type opened struct {
	*source.Source
	o    *observations.Observation // nil for a file
	kind content.Kind
	done func()

	decoded io.Reader // of a text that is not plain, from the offset at on
	at      int64
}

// Close closes it.
func (o *opened) Close() {
	_ = o.Source.Close()
	o.done()
}

// toValues makes the text the records of the source as JSON if they are values in another form, such as YAML. What
// reads them ends with ctx, or when o is closed.
func (o *opened) toValues(ctx context.Context) error {
	if o.IsConverted() {
		return nil
	}
	ctx, stop := context.WithCancel(ctx)
	v, err := o.Values(ctx)
	if err != nil {
		stop()
		return err
	}
	done := o.done
	o.Source, o.kind, o.decoded, o.done = v, v.Kind(), nil, func() { stop(); done() }
	return nil
}

// open opens a source by its name; looking at it does not count as a use.
func (q *request) open(ctx context.Context, name string) (*opened, error) {
	set, done := q.sources()
	src, err := peek(ctx, set, name)
	if err != nil {
		done()
		return nil, problemf(http.StatusNotFound, "%s", err)
	}
	return &opened{Source: src, o: src.Observation, kind: src.Kind(), done: done}, nil
}

// peek opens the one file that a name is for, or a table of a database.
func peek(ctx context.Context, set source.Set, name string) (*source.Source, error) {
	where, err := set.Locate(ctx, name)
	if err == nil && len(where) == 1 && !where[0].IsDir {
		return where[0].Peek(ctx, where[0].Path)
	}
	return set.Open(ctx, name) // it also says why there is none
}

// from returns a reader of the text from an offset of it on, which is valid until the next call.
func (o *opened) from(at int64) (io.Reader, error) {
	if o.Plain() {
		return io.NewSectionReader(o.Source, at, max(o.Size-at, 0)), nil
	}
	if o.decoded == nil || at < o.at { // else it is decoded on from there: parts of a page follow each other
		r, err := o.Text()
		if err != nil {
			return nil, err
		}
		o.decoded, o.at = r, 0
	}
	_, err := io.CopyN(io.Discard, (*decoding)(o), at-o.at)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return (*decoding)(o), err
}

// decoding reads the text of a source, and knows where it is.
type decoding opened

func (d *decoding) Read(p []byte) (int, error) {
	n, err := d.decoded.Read(p)
	d.at += int64(n)
	return n, err
}

// noticed reads the rest of a text that is decoded, and returns as remarks what its source says then and has not said
// before.
func (o *opened) noticed(before []string) error {
	if o.decoded == nil {
		return nil
	}
	_, err := io.Copy(io.Discard, (*decoding)(o))
	said := slices.DeleteFunc(o.Notes(), func(n string) bool { return slices.Contains(before, n) })
	if err == nil && len(said) > 0 {
		err = &content.Remarks{Notes: said}
	}
	return err
}

// bytesAt returns at most n bytes of the text from an offset on.
func (o *opened) bytesAt(at, n int64) ([]byte, error) {
	r, err := o.from(at)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(r, n))
}

// lines calls visit for the lines of a span of a text, with at most most bytes of each, until it returns false.
func (o *opened) lines(
	ctx context.Context, at content.Span, most int, visit func(in *record.Lines, b []byte) bool,
) error {
	r, err := o.from(at.Start)
	in := record.NewLines(ctx, io.LimitReader(r, at.End-at.Start), most)
	for err == nil {
		var b []byte
		if b, err = in.Next(); err == nil && !visit(in, b) {
			return nil
		}
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return err
}

// version differs between the states of a file that changes.
func (o *opened) version() string { return itoa(o.Size) + " " + o.Modified.String() }

// listOf returns the list of parts of a text. The walk may find more than the list: beside, if the list is new, else
// that of the list.
func (q *request) listOf(o *opened, of string, beside any, all parts) *list {
	name, background := o.Name, *q
	background.ctx = q.Viewer.ctx
	return q.list(q.who.Owner+"\x00"+name+"\x00"+of, o.version(), beside, func() (walk, func(), error) {
		again, err := background.open(background.ctx, name)
		if err != nil {
			return nil, nil, err
		}
		return all(again, 0), again.Close, nil
	})
}

// masks returns what masks a part of a text, which may begin within a secret.
func (q *request) masks() *secrets.Stream {
	if q.plain {
		return (*secrets.Masker)(nil).Middle()
	}
	return q.o.Mask.Middle()
}
