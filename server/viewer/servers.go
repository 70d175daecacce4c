package viewer

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/tools/upstream"
)

// servers lists the wrapped servers of the store, and below them each definition that is held back beside the approved
// one. They belong to no identity: commands are shown to people of this machine only.
func (q *request) servers() (*page, error) {
	if !q.who.Operator && q.who.Owner != observations.Local {
		return nil, problemf(http.StatusForbidden, "Wrapped servers are shown to their operator: mcp-funnel view.")
	}
	all := upstream.RecordsIn(q.o.Records)
	keys, err := all.Keys()
	room, held := pageBytes, []any(nil)
	row := func(key string) []cell {
		r, err := all.Load(key)
		if err != nil || r == nil {
			return []cell{code(key), {Text: "it cannot be read: mcp-funnel upstream list says why", Class: "bad"}, {}, {}, {}}
		}
		era := map[bool]string{true: "stateless, 2026-07-28", false: "with sessions, up to 2025-11-25"}[r.Modern]
		name, n := code(strings.TrimSpace(key+" "+q.clip([]byte(r.Server), 60))), number(int64(len(r.Held)))
		if len(r.Held) > 0 {
			name.To, n.Class = href("#"+key), "bad"
			held = append(held, q.heldBack(key, r, &room))
		}
		command := code(q.clip([]byte(strings.Join(r.Command, " ")), 200))
		return []cell{name, command, words(era), number(int64(len(r.Approved))), n}
	}
	p := listing(q, "Servers", "No server was wrapped yet: mcp-funnel wrap -- COMMAND starts one.",
		heads("Server", "Command", "Protocol", "#Tools", "#Held back"), keys, row)
	p.Blocks = append(p.Blocks, held...)
	return p, err
}

// heldBack shows the definitions of a server that are held back, in bytes of a page that are left.
func (q *request) heldBack(key string, r *upstream.Record, room *int) section {
	s := section{Title: "Held back: " + key, Key: key, Blocks: []any{
		note{"Calls of these tools are refused until somebody approves them, with the --store of this server:", "bad"},
		pre("mcp-funnel upstream diff " + key + "\nmcp-funnel upstream approve " + key),
	}}
	of := *q
	of.query = nil // the rows of a page are those of the list
	for i, h := range r.Held {
		if *room < 0 {
			s.Blocks = append(s.Blocks, note{grouped(int64(len(r.Held)-i)) + " more tools: the command above shows them.", ""})
			return s
		}
		approved, listed := r.Definitions(h.Name)
		text := func(of json.RawMessage) []byte { return []byte(strings.Join(upstream.Lines(of), "\n")) }
		blocks, err := of.changes([2][]byte{text(approved), text(listed)}, nil)
		if err != nil {
			blocks = []any{note{err.Error(), "bad"}}
		}
		if approved == nil {
			blocks = append([]any{note{"Nothing was approved: the tool is new.", ""}}, blocks...)
		}
		if t, ok := blocks[len(blocks)-1].(*table); ok {
			for _, row := range t.Rows {
				*room -= len(row[1].Text) + len(row[3].Text) + 60
			}
			if t.Pager != nil {
				t.Pager = &pager{Text: "the first lines; the command above shows all that differ"}
			}
		}
		s.Blocks = append(s.Blocks, section{Title: h.Name + " (" + h.Why + ")", Blocks: blocks})
	}
	return s
}
