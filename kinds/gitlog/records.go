package gitlog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/mcp-funnel/mcp-funnel/kinds/digest"
	"github.com/mcp-funnel/mcp-funnel/kinds/record"
	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// Objects writes each commit as an object:
//
//	{"commit", "author", "date", "subject", "files": 3, "added": 10, "deleted": 2}
//
// author is the name without the address. date is in the form 2026-11-20T14:30:22+01:00 if the log has the zone, else
// as written. files, added and deleted are null for a commit without --stat or --numstat, and the error of a log with
// such commits is a [*content.Remarks].
func Objects(ctx context.Context, r io.Reader, w io.Writer) error {
	var failed error
	var commits, uncounted int64
	var o record.Object
	err := each(ctx, r, func(c *commit) bool {
		o.String("commit", string(c.hash))
		o.StringOrNull("author", string(c.author))
		o.StringOrNull("date", c.isoDate())
		o.String("subject", string(c.subject))
		if commits++; c.stat {
			o.Int("files", c.files)
			o.Int("added", c.added)
			o.Int("deleted", c.deleted)
		} else {
			uncounted++
			o.StringOrNull("files", "")
			o.StringOrNull("added", "")
			o.StringOrNull("deleted", "")
		}
		failed = o.WriteLine(w)
		return failed == nil
	})
	if err := cmp.Or(failed, err); err != nil || uncounted == 0 {
		return err
	}
	note := fmt.Sprintf("%d of %s no --stat or --numstat: files, added, deleted are null", uncounted,
		content.Plural(commits, "commit has", "commits have"))
	return &content.Remarks{OfFields: map[string]string{"files": note, "added": note, "deleted": note}}
}

// Spans calls visit with the number, from 0, and the place of each commit until visit returns false.
func Spans(ctx context.Context, r io.Reader, visit func(index int64, at content.Span) bool) error {
	index := int64(-1)
	return each(ctx, r, func(c *commit) bool {
		index++
		return visit(index, c.at)
	})
}

// each calls visit for each commit until it returns false.
func each(ctx context.Context, r io.Reader, visit func(*commit) bool) error {
	enough := false
	p := parser{onCommit: func(c *commit) { enough = enough || !visit(c) }}
	lines := record.NewLines(ctx, r, digest.LineBytes)
	for !enough {
		line, err := lines.Next()
		if errors.Is(err, io.EOF) {
			p.end()
			return nil
		}
		if err != nil {
			return err
		}
		p.line(line, lines.At)
	}
	return nil
}
