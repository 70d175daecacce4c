package transcript

import (
	"bytes"
	"errors"
	"fmt"
)

// Read parses a transcript. An error says why the text is none.
func Read(text []byte) (*Transcript, error) {
	if len(bytes.TrimSpace(text)) == 0 {
		return nil, errors.New("the transcript is empty")
	}
	t := &Transcript{cleared: map[string]clearing{}, drop: map[int]bool{}, lineOf: map[string]int{}}
	if whole, err := parse(text); err == nil && documentFormat(whole) != "" {
		t.Format, t.Lines = documentFormat(whole), [][]byte{text}
		t.document(whole)
	} else if err := t.readLines(text); err != nil {
		return nil, err
	}
	t.finish()
	return t, nil
}

// readLines reads JSON lines.
func (t *Transcript) readLines(text []byte) error {
	t.Lines = bytes.SplitAfter(text, []byte("\n"))
	if len(t.Lines[len(t.Lines)-1]) == 0 {
		t.Lines = t.Lines[:len(t.Lines)-1]
	}
	for i, line := range t.Lines {
		n, err := parse(line)
		if err != nil || n.kind != '{' {
			t.Unknown++
			t.Torn = t.Torn || i == len(t.Lines)-1 && !bytes.HasSuffix(line, []byte("\n"))
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
		return fmt.Errorf(
			"no known transcript: %d lines, none of a session of Claude Code or Codex, and no JSON value with"+
				" the messages of an API",
			len(t.Lines),
		)
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
