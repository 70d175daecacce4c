package transcript

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/session/jsontree"
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
func (t *Transcript) Fork(session string, newID func() string) (fork Bytes, lines []int, err error) {
	if err := t.Forkable(); err != nil {
		return nil, nil, err
	}
	ids := map[string]string{t.Session: session}
	newOf := func(id string) []byte {
		if ids[id] == "" {
			ids[id] = newID()
		}
		by, _ := json.Marshal(ids[id]) // a string can always be written
		return by
	}
	var edits []Edit
	lines = make([]int, t.Lines())
	next, named := 0, false
	for i := range lines {
		n, err := t.parse(i)
		torn := t.Torn && i == t.Lines()-1
		if torn || err == nil && t.Format == Claude && n.Str("type") == snapshot {
			lines[i] = -1
			edits = append(edits, NewEdit(i, Span{End: int(t.starts[i+1] - t.starts[i])}, nil))
			continue
		}
		lines[i] = next
		next++
		switch {
		case err != nil: // a line that is not understood stays
		case t.Format == Claude:
			for _, path := range idPaths {
				for _, id := range n.Get(strings.Split(path, ".")...).Strings() {
					edits = append(edits, NewEdit(i, id.Span, newOf(id.Text)))
				}
			}
		case n.Str("type") == "session_meta" && n.Str("payload", "id") != "" && !named:
			edits, named = append(edits, forkedFrom(i, n.Get("payload"), newOf)...), true
		}
	}
	return t.Apply(edits), lines, t.err
}

// snapshot is the type of lines with files as they were, which are of the old session.
const snapshot = "file-history-snapshot"

// idPaths are where a line of Claude Code has ids of lines: its own, and those that a boundary names.
var idPaths = strings.Fields("uuid parentUuid logicalParentUuid sessionId leafUuid messageId sourceToolAssistantUUID" +
	" compactMetadata.preservedSegment.headUuid compactMetadata.preservedSegment.anchorUuid" +
	" compactMetadata.preservedSegment.tailUuid compactMetadata.preservedMessages.anchorUuid" +
	" compactMetadata.preservedMessages.uuids compactMetadata.preservedMessages.allUuids")

// forkedFrom returns the edits of Codex's first line: the new id, and the old one as the origin.
func forkedFrom(line int, meta *jsontree.Node, newOf func(id string) []byte) []Edit {
	id := meta.Get("id")
	from, _ := json.Marshal(id.Text)
	by := newOf(id.Text)
	if old := meta.Get("forked_from_id"); old != nil { // Codex reads no file with two fields of that name
		return []Edit{NewEdit(line, id.Span, by), NewEdit(line, old.Span, from)}
	}
	return []Edit{NewEdit(line, id.Span, fmt.Appendf(by, ",\"forked_from_id\":%s", from))}
}
