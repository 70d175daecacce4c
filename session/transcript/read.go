package transcript

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mcp-funnel/mcp-funnel/kinds/record"
	"github.com/mcp-funnel/mcp-funnel/session/jsontree"
)

// Read parses a transcript in memory. An error says why the text is none.
func Read(text []byte) (*Transcript, error) { return ReadFrom(bytes.NewReader(text)) }

// ReadFrom is Read for bytes that need not be in memory. They must stay as they are: texts are read again when they are
// asked for. [Transcript.Err] says if that failed.
func ReadFrom(text Bytes) (*Transcript, error) {
	t := &Transcript{
		bytes: text, cleared: map[string]clearing{}, lineOf: map[string]int{},
		starts: []int64{0, text.Size()},
	}
	whole, err := t.parse(0)
	if errors.Is(err, jsontree.ErrTooMany) {
		return nil, err
	}
	if err == nil && documentFormat(whole) != "" {
		t.Format = documentFormat(whole)
		t.document(whole)
	} else if err := t.readLines(); err != nil {
		return nil, err
	}
	t.finish()
	return t, t.err
}

// findLines finds where the lines begin.
func (t *Transcript) findLines() error {
	t.starts = nil
	lines, blank := record.NewLines(context.Background(), io.NewSectionReader(t.bytes, 0, t.bytes.Size()), 64<<10), true
	for {
		line, err := lines.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		t.starts = append(t.starts, lines.At.Start)
		blank = blank && len(bytes.TrimSpace(line)) == 0
	}
	if blank {
		return errors.New("the transcript is empty")
	}
	t.starts = append(t.starts, t.bytes.Size())
	return nil
}

// parse parses a line.
func (t *Transcript) parse(line int) (*jsontree.Node, error) {
	return parse(io.NewSectionReader(t.bytes, t.starts[line], t.starts[line+1]-t.starts[line]))
}

func parse(text io.Reader) (*jsontree.Node, error) {
	return jsontree.Parse(text, jsontext.AllowDuplicateNames(true))
}

// readLines reads JSON lines.
func (t *Transcript) readLines() error {
	if err := t.findLines(); err != nil {
		return err
	}
	for i := range t.Lines() {
		n, err := t.parse(i)
		if err != nil || n.Kind != '{' {
			t.Unknown++
			var last [1]byte
			_, _ = t.bytes.ReadAt(last[:], t.bytes.Size()-1) // it was read before
			t.Torn = t.Torn || i == t.Lines()-1 && last[0] != '\n'
			continue
		}
		if t.Format == "" {
			t.Format = lineFormat(n)
		}
		known := false
		switch t.Format {
		case Claude:
			known = t.claude(i, n)
		case Codex:
			known = t.codex(i, n)
		}
		if !known {
			t.Unknown++
		}
	}
	if t.Format == "" {
		return fmt.Errorf("no known transcript: %d lines, none of a session of Claude Code or Codex, and no JSON value with"+
			" the messages of an API", t.Lines())
	}
	return nil
}

// place is where a message begins.
type place struct{ line, at int }

// finish names the tools of results, counts turns and marks what the client would send.
func (t *Transcript) finish() {
	calls := map[string]*Block{}
	turn := 0
	last := place{-1, 0}
	for i := range t.Blocks {
		b := &t.Blocks[i]
		if at := (place{b.Line, b.message}); b.Role == User && b.Sent && at != last {
			turn++
			last = at
		}
		b.Turn = turn
		switch {
		case b.Call:
			calls[b.ID] = b
		case b.Result() && calls[b.ID] != nil:
			b.Name, b.Args = calls[b.ID].Name, calls[b.ID].Args
		}
		if i < t.boundary && !t.preserved[b.Line] {
			b.Sent = false
		}
	}
}
