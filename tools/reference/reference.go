// Package reference reads texts that an argument may name instead of having them, so that no model types them again.
//
// A reference is {"$obs": "obs:ID"}, also with "jq": "FILTER" (and "slurp": true) or "lines": "A-B", or one string: obs:ID,
// obs:ID jq FILTER, obs:ID lines A-B. It stands for the text of the observation, the results of the filter (strings as
// they are, one a line), or those lines.
package reference

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/system/jsonrpc"
	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/tools"
)

// Max is the longest text of a reference, in bytes.
const Max = 8 << 20

// Reader reads the texts of references for one call.
type Reader struct {
	JQ    tools.Tool // the tool jq
	In    tools.Input
	Notes []string // notes for the answer
}

// Reference names a text.
type Reference struct {
	Obs   string  `json:"$obs"` // obs:ID
	JQ    *string `json:"jq"`
	Slurp bool    `json:"slurp"` // as of the tool jq
	Lines *string `json:"lines"`
}

// Parse returns the reference in a string; ok is false if it has another form.
func Parse(s string) (r Reference, ok bool) {
	const size = len(observations.Prefix) + 12
	if len(s) < size || !strings.HasPrefix(s, observations.Prefix) {
		return r, false
	}
	if _, err := observations.ParseID(s[:size]); err != nil {
		return r, false
	}
	r.Obs = s[:size]
	rest := s[size:]
	if filter, ok := strings.CutPrefix(rest, " jq "); ok {
		r.JQ = &filter
	} else if lines, ok := strings.CutPrefix(rest, " lines "); ok {
		r.Lines = &lines
	} else if rest != "" {
		return r, false
	}
	return r, true
}

// Decode returns the reference that an object with the member $obs is.
func Decode(object []byte) (r Reference, err error) {
	d := json.NewDecoder(bytes.NewReader(object))
	d.DisallowUnknownFields()
	err = d.Decode(&r)
	id, wrong := observations.ParseID(strings.TrimSpace(r.Obs))
	r.Obs = observations.Prefix + string(id)
	if err != nil || wrong != nil || r.JQ != nil && r.Lines != nil || r.Slurp && r.JQ == nil {
		return r, fmt.Errorf(`a reference has the form {"$obs": "obs:ID"}, perhaps with "jq" (and "slurp": true) or `+
			`"lines": not %s`, jsonrpc.Quoted(string(object)))
	}
	return r, nil
}

// Read returns the text of a reference. Lines have their ends, but for the last one. A whole text is decoded to UTF-8,
// unless it is or its bytes are wanted.
func (s *Reader) Read(ctx context.Context, r Reference, bytes bool) (string, error) {
	if _, err := observations.ParseID(r.Obs); err != nil {
		return "", err
	}
	src, err := s.In.Sources.Open(ctx, r.Obs)
	if err != nil {
		return "", err
	}
	defer src.Close() //nolint:errcheck // it was only read
	if why := src.Caveat(); why != "" {
		return "", errors.New(why)
	}
	if r.JQ != nil && src.Binary() {
		return "", errors.New("it is binary: jq would change its bytes")
	}
	if r.JQ != nil {
		return s.filtered(ctx, r)
	}
	text, err := src.Text()
	if err != nil {
		return "", err
	}
	if r.Lines == nil && (bytes || src.Encoding == content.UTF8BOM) {
		text = io.NewSectionReader(src, 0, src.Size)
	} else {
		s.Notes = append(s.Notes, src.Notes()...)
	}
	if r.Lines == nil {
		b, err := io.ReadAll(io.LimitReader(text, Max+1))
		if err == nil && len(b) > Max {
			err = ErrTooLarge
		}
		return string(b), err
	}
	from, to, err := parseLines(*r.Lines)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	in := bufio.NewReaderSize(text, 64<<10)
	for line := int64(1); to == 0 || line <= to; {
		part, err := in.ReadSlice('\n')
		if line >= from {
			if b.Write(part); b.Len() > Max {
				return "", ErrTooLarge
			}
		}
		switch {
		case err == nil:
			line++
		case errors.Is(err, io.EOF) && (line > from || line == from && len(part) > 0):
			return withoutEnd(b.String()), nil
		case errors.Is(err, io.EOF):
			return "", fmt.Errorf("it has no line %d", from)
		case !errors.Is(err, bufio.ErrBufferFull):
			return "", err
		}
	}
	return withoutEnd(b.String()), nil
}

// withoutEnd returns a text without the end of its last line, \n or \r\n.
func withoutEnd(text string) string {
	if line, ok := strings.CutSuffix(text, "\n"); ok {
		return strings.TrimSuffix(line, "\r")
	}
	return text
}

// ErrTooLarge is the error for a text of over [Max] bytes.
var ErrTooLarge = fmt.Errorf("it has over %d MiB: choose a part by jq or lines", Max>>20)

// parseLines parses A-B, A- or A, counted from 1; to is 0 for the last line.
func parseLines(s string) (from, to int64, err error) {
	first, last, isRange := strings.Cut(strings.TrimSpace(s), "-")
	from, err = strconv.ParseInt(first, 10, 64)
	if to = from; err == nil && isRange {
		if to = 0; last != "" {
			to, err = strconv.ParseInt(last, 10, 64)
		}
	}
	if err != nil || from < 1 || to != 0 && to < from {
		return 0, 0, fmt.Errorf("lines are 5, 5-9 or 5- (to the end), counted from 1: not %s", jsonrpc.Quoted(s))
	}
	return from, to, nil
}

// filtered returns the results of a reference's filter, one a line; strings as they are.
func (s *Reader) filtered(ctx context.Context, r Reference) (string, error) {
	in := s.In
	var err error
	in.Args, err = json.Marshal(map[string]any{
		"source": r.Obs, "filter": *r.JQ, "slurp": r.Slurp, "raw": true, "save": true,
	})
	if err != nil {
		return "", err
	}
	g := &gatherer{}
	if err := s.JQ.Run(ctx, in, g); err != nil {
		return "", err
	}
	s.Notes = append(s.Notes, g.notes...)
	if g.failed != nil {
		return "", g.failed
	}
	if g.more {
		return "", ErrTooLarge
	}
	return strings.TrimSuffix(g.rows.String(), "\n"), nil
}

// gatherer takes all rows of a tool: it is the output, and the page of the output.
type gatherer struct {
	tools.Discard
	rows   strings.Builder
	begun  bool
	more   bool // there are rows after the last one
	failed error
	notes  []string
}

func (g *gatherer) Page() tools.Page            { return g }
func (g *gatherer) Note(text string)            { g.notes = append(g.notes, text) }
func (g *gatherer) Write(b []byte) (int, error) { return len(b), g.add(b, false) }

func (g *gatherer) add(b []byte, row bool) error {
	if g.begun && row {
		g.rows.WriteByte('\n')
	}
	g.begun = true
	if g.rows.Write(b); g.rows.Len() > Max {
		g.failed = ErrTooLarge
		return tools.ErrPageFull
	}
	return nil
}

func (g *gatherer) Row(b []byte, _ tools.Call) error { return g.add(b, true) }
func (g *gatherer) Text(b []byte) error              { return g.add(b, false) }
func (g *gatherer) Next(tools.Call)                  { g.more = true }
func (g *gatherer) TruncatedRow([]byte, []byte, int64, tools.Call) error {
	g.failed = ErrTooLarge
	return tools.ErrPageFull
}
