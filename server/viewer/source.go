package viewer

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"

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
	set  source.Set
	done func()
}

// Close closes it.
func (o *opened) Close() {
	_ = o.Source.Close()
	o.done()
}

// open opens a source by its name; looking at it does not count as a use.
func (q *request) open(ctx context.Context, name string) (*opened, error) {
	set, done := q.sources()
	where, err := set.Locate(ctx, name)
	if err == nil && len(where) != 1 {
		err = problemf(http.StatusBadRequest, "%s names %d places; name one file", content.ClipBytes(name, 200), len(where))
	}
	if err == nil && where[0].IsDir {
		err = problemf(http.StatusBadRequest, "%s is a directory; name a file", content.ClipBytes(name, 200))
	}
	var src *source.Source
	if err == nil {
		src, err = where[0].Peek(ctx, where[0].Path)
	}
	if err != nil {
		done()
		var known *problem
		if !errors.As(err, &known) {
			err = problemf(http.StatusNotFound, "%s", err)
		}
		return nil, err
	}
	return &opened{src, src.Observation, src.Kind(), set, done}, nil
}

// from returns a reader of the text from an offset of it on.
func (o *opened) from(at int64) (io.Reader, error) {
	if o.Plain() {
		return io.NewSectionReader(o.Source, at, max(o.Size-at, 0)), nil
	}
	r, err := o.Text()
	if err == nil {
		_, err = io.CopyN(io.Discard, r, at)
	}
	if errors.Is(err, io.EOF) {
		return bytes.NewReader(nil), nil
	}
	return r, err
}

// bytesAt returns at most n bytes of the text from an offset on.
func (o *opened) bytesAt(at, n int64) ([]byte, error) {
	r, err := o.from(at)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(r, n))
}

// key names a list of a text. A file is another one when it changes.
func (o *opened) key(of string) string {
	return o.Name + "\x00" + strconv.FormatInt(o.Size, 10) + "\x00" + o.Modified.String() + "\x00" + of
}

// listOf returns the list of a text that is read by records.
func (q *request) listOf(o *opened, of string, walks func(o *opened) (walk, error)) *list {
	return q.listBeside(o, of, nil, walks)
}

// listBeside is listOf for a walk that finds more than the list: beside, if the list is new, else that of the list.
func (q *request) listBeside(o *opened, of string, beside any, walks func(o *opened) (walk, error)) *list {
	name, background := o.Name, *q
	background.ctx = q.Viewer.ctx
	return q.list(q.who.Owner+"\x00"+o.key(of), beside, func() (walk, func(), error) {
		again, err := background.open(background.ctx, name)
		if err != nil {
			return nil, nil, err
		}
		w, err := walks(again)
		if err != nil {
			again.Close()
		}
		return w, again.Close, err
	})
}

// masks returns what masks a part of a text, which may begin within a secret.
func (q *request) masks() *secrets.Stream {
	if q.plain {
		return (*secrets.Masker)(nil).Middle()
	}
	return q.o.Mask.Middle()
}
