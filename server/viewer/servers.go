package viewer

import (
	"net/http"
	"slices"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/tools/upstream"
)

// servers lists the wrapped servers of the store, or shows one with the tools that are held back. They belong to no
// identity: commands are shown to people of this machine only.
func (q *request) servers() (*page, error) {
	if !q.who.Operator && q.who.Owner != observations.Local {
		return nil, problemf(http.StatusForbidden, "Wrapped servers are shown to their operator: mcp-funnel view.")
	}
	all := upstream.RecordsIn(q.o.Records)
	keys, err := all.Keys()
	if err != nil {
		return nil, err
	}
	if len(q.path) > 1 {
		return q.server(all, keys)
	}
	t := &table{
		Heads: []cell{words("Server"), words("Command"), words("Protocol"), {Text: "Tools", Num: true}, {Text: "Held back", Num: true}},
		Empty: "No server was wrapped yet: mcp-funnel wrap -- COMMAND starts one.", Key: "servers",
	}
	from := min(q.number("top", 0), int64(len(keys)))
	to := min(from+pageLines, int64(len(keys)))
	for _, key := range keys[from:to] {
		name := code(key).to(q.url("servers/" + key))
		r, err := all.Load(key)
		if err != nil || r == nil {
			t.Rows = append(t.Rows, []cell{name, {Text: errorText(err), Class: "bad"}})
			continue
		}
		if r.Server != "" {
			name.Text, name.Title = r.Server, key
		}
		held := number(int64(len(r.Held)))
		if len(r.Held) > 0 {
			held.Class = "bad"
		}
		t.Rows = append(t.Rows, []cell{name, code(q.clip([]byte(strings.Join(r.Command, " ")), 200)), words(era(r)),
			number(int64(len(r.Approved))), held})
	}
	t.Pager = q.rowPager(from, to, int64(len(keys)))
	return &page{Title: "Servers", Blocks: []any{t}}, nil
}

func errorText(err error) string {
	if err == nil {
		return "it was removed"
	}
	return err.Error()
}

// era names the protocol that a server speaks.
func era(r *upstream.Record) string {
	if r.Modern {
		return "stateless, 2026-07-28"
	}
	return "with sessions, up to 2025-11-25"
}

// server shows a wrapped server, and each definition that is held back beside the approved one.
func (q *request) server(all upstream.Records, keys []string) (*page, error) {
	key := q.path[1]
	if !slices.Contains(keys, key) {
		return nil, problemf(http.StatusNotFound, "There is no server of this name.")
	}
	r, err := all.Load(key)
	if err != nil || r == nil {
		return nil, problemf(http.StatusConflict, "%s", errorText(err))
	}
	p := &page{Title: key, Crumbs: []link{{Text: "Servers", To: q.url("servers")}}}
	about := facts{{"Last name", words(r.Server)}, {"Command", code(strings.Join(r.Command, " "))}, {"Directory", code(r.Dir)},
		{"Protocol", words(era(r))}, {"Approved tools", number(int64(len(r.Approved)))}, {"Held back", number(int64(len(r.Held)))}}
	p.Blocks = append(p.Blocks, slices.DeleteFunc(about, func(f fact) bool { return f.Cell.Text == "" }))
	if len(r.Held) > 0 {
		p.Blocks = append(p.Blocks, note{"Calls of these tools are refused until somebody approves them, with the --store of this server:", "bad"},
			pre("mcp-funnel upstream diff "+key+"\nmcp-funnel upstream approve "+key))
	}
	room := pageBytes
	for i, h := range r.Held {
		approved, listed := r.Definitions(h.Name)
		before, after := upstream.Lines(approved), upstream.Lines(listed)
		if room -= len(approved) + len(listed); room < 0 && i > 0 {
			p.Blocks = append(p.Blocks, note{grouped(int64(len(r.Held)-i)) + " more tools: the command upstream diff shows them.", ""})
			break
		}
		start, end := upstream.Differ(before, after)
		p.Blocks = append(p.Blocks, section{Title: h.Name + " (" + h.Why + ")", Blocks: []any{columns{
			{Title: "Approved", Blocks: []any{q.definition(before, start, end, "-", "del")}},
			{Title: "Listed now", Blocks: []any{q.definition(after, start, end, "+", "add")}},
		}}})
	}
	return p, nil
}

// definition returns the lines of a definition of a tool, those that differ behind a mark.
func (q *request) definition(text []string, start, end int, mark, class string) *lines {
	out, room := &lines{Empty: "There is none: the tool is new."}, pageBytes/2
	for i, one := range text {
		l := line{Text: "  " + q.cut([]byte(one), lineBytes)}
		if i >= start && i < len(text)-end {
			l.Class, l.Text = class, mark+l.Text[1:]
		}
		if room -= len(l.Text); room < 0 {
			l = line{Text: grouped(int64(len(text)-i)) + " more lines: the command upstream diff shows those that differ", Class: "dim"}
		}
		out.Lines = append(out.Lines, l)
		if room < 0 {
			break
		}
	}
	return out
}
