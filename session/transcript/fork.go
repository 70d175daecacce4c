package transcript

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
)

// Forkable returns an error if the transcript is no session of a client.
func (t *Transcript) Forkable() error {
	if t.Session == "" || t.Format != Claude && t.Format != Codex {
		return fmt.Errorf("a transcript of the form %s has no session that a client could resume", t.Format)
	}
	return nil
}

// Fork returns a copy of a session under another id, which its client can resume, and the new line of each old one (−1:
// left out). Ids of lines are replaced by new ones, each by the same wherever it stands, so that the chain is kept.
// Snapshots of files are left out, and a last line that is not complete.
func (t *Transcript) Fork(session string, newID func() string) (fork []byte, lines []int, err error) {
	if err := t.Forkable(); err != nil {
		return nil, nil, err
	}
	ids := map[string]string{t.Session: session}
	edits := map[int][]Edit{}
	for _, l := range t.ids {
		if t.drop[l.Line] {
			continue
		}
		if ids[l.Text] == "" {
			ids[l.Text] = newID()
		}
		by, _ := json.Marshal(ids[l.Text]) // a string can always be written
		if t.Format == Codex {
			from, _ := json.Marshal(l.Text)
			if t.forkedFrom != nil { // a second field of that name would make the file unreadable for Codex
				edits[l.Line] = append(edits[l.Line], Edit{l.Line, t.forkedFrom.Span, from})
			} else {
				by = fmt.Appendf(by, ",\"forked_from_id\":%s", from)
			}
		}
		edits[l.Line] = append(edits[l.Line], Edit{l.Line, l.Span, by})
	}
	var out bytes.Buffer
	lines = make([]int, len(t.Lines))
	next := 0
	for i, line := range t.Lines {
		if t.drop[i] || t.Torn && i == len(t.Lines)-1 {
			lines[i] = -1
			continue
		}
		lines[i] = next
		next++
		slices.SortFunc(edits[i], func(a, b Edit) int { return cmp.Compare(a.Start, b.Start) })
		at := 0
		for _, e := range edits[i] {
			out.Write(line[at:e.Start])
			out.Write(e.By)
			at = e.End
		}
		out.Write(line[at:])
	}
	return out.Bytes(), lines, nil
}
