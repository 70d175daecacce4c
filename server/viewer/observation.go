package viewer

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mcp-funnel/mcp-funnel/funnel"
	"github.com/mcp-funnel/mcp-funnel/kinds"
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/session/trace"
	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/tools"
)

// view is one way to show a text.
type view struct {
	name string
	for_ func(o *opened) bool
	show func(q *request, o *opened) ([]any, error)
}

// of returns a condition for views: the text is of one of these kinds.
func of(all ...content.Kind) func(*opened) bool {
	return func(o *opened) bool { return slices.Contains(all, o.kind) }
}

// views are tried in this order: the first one that is for a text is its default.
func views() []view {
	return []view{
		{"grid", of(content.Table), tableView},
		{"log", of(content.Log), logView},
		{"records", of(content.Diff, content.GitLog), recordsView},
		{"found", isFound, foundView},
		{"rendered", of(content.Markdown), markdownView},
		{"image", func(o *opened) bool { return o.o != nil && o.imageType() != "" }, imageView},
		{"hex", of(content.Binary), hexView},
		{"tree", of(content.JSON, content.NDJSON), treeView},
		{"tree", func(o *opened) bool { return kinds.Of(o.kind).Values != nil }, treeView},
		{"text", func(o *opened) bool { return o.kind != content.Binary }, textView},
		{"receipt", func(o *opened) bool { return o.o != nil && o.o.Stats.Receipt != "" }, receiptView},
	}
}

// receiptView shows what the model was shown in place of the output.
func receiptView(q *request, o *opened) ([]any, error) {
	full, err := q.o.Store.Stat(q.who.Owner, o.o.ID)
	return []any{wholeLines(full.Stats.Receipt)}, err
}

// observation is the page of one observation, or of all.
func (q *request) observation() (*page, error) {
	if len(q.path) == 1 {
		return q.observations()
	}
	o, err := q.openID(q.path[1])
	if err != nil {
		return nil, err
	}
	defer o.Close()
	if q.query.Get("ask") == "delete" {
		return &page{Title: "Delete " + o.Name + "?", Blocks: []any{q.factsOf(o), note{"Its bytes are gone for good.", "bad"},
			q.button("delete", string(o.o.ID)), links{{Text: "keep it", To: q.with("ask", "")}}}}, nil
	}
	p := &page{
		Title:  q.titleOf(o.o),
		Crumbs: []link{{Text: "Observations", To: q.url("obs")}},
		Notes:  o.Notes(),
		Blocks: []any{q.factsOf(o), q.actionsOf(o.o)},
	}
	return p, q.showText(p, o)
}

// idOf returns the ID of an observation by its name. An operator who sees all owners acts for its owner.
func (q *request) idOf(name string) (observations.ID, error) {
	id, err := observations.ParseID(name)
	if err != nil {
		return "", problemf(http.StatusNotFound, "%s is no ID of an observation.", content.ClipBytes(name, 40))
	}
	if q.ofAll() == "" {
		if q.who.Owner, err = q.o.Store.Owner(id); err != nil {
			return "", problemf(http.StatusNotFound, "There is no observation obs:%s.", id)
		}
	}
	return id, nil
}

// openID opens an observation by its ID, with or without obs:.
func (q *request) openID(word string) (*opened, error) {
	id, err := q.idOf(word)
	if err != nil {
		return nil, err
	}
	return q.open(q.ctx, observations.Prefix+string(id))
}

// showText adds to a page the boxes that ask a text, the answer if one was asked, and a view of the text.
func (q *request) showText(p *page, o *opened) error {
	fits := slices.DeleteFunc(views(), func(v view) bool { return !v.for_(o) })
	if len(fits) == 0 {
		p.Blocks = append(p.Blocks, note{"Nothing shows a text of this kind: download it.", ""})
		return nil
	}
	wanted := q.query.Get("as")
	if wanted == "" && q.query.Get("line") != "" {
		wanted = "text"
	}
	chosen := max(slices.IndexFunc(fits, func(v view) bool { return v.name == wanted }), 0)
	choices := links{}
	for i, v := range fits {
		to := q.url(strings.Join(q.path, "/"), "as", v.name, "name", q.query.Get("name"))
		choices = append(choices, link{Text: v.name, On: i == chosen, To: to})
	}
	if o.kind != content.Binary {
		answer, err := q.answer(o)
		if err != nil {
			return err
		}
		p.Blocks = append(append(p.Blocks, q.boxes()), answer...)
	}
	blocks, err := fits[chosen].show(q, o)
	if err != nil {
		return err
	}
	p.Blocks = append(p.Blocks, section{Title: "Content", Key: "content", Blocks: append([]any{choices}, blocks...)})
	return nil
}

func (q *request) titleOf(o *observations.Observation) string {
	name := cmp.Or(o.Name, o.Tool)
	if o.Name != "" {
		name += " (" + o.Tool + ")"
	}
	return content.Clip(name, 100)
}

// factsOf says what is known of an observation.
func (q *request) factsOf(o *opened) facts {
	s := o.o.Stats
	tokens := number(s.Tokens)
	if s.TokensMargin > 0 {
		tokens.Text += fmt.Sprintf(" ±%.0f %%", 100*s.TokensMargin)
	}
	all := facts{
		{"ID", code(observations.Prefix + string(o.o.ID))}, {"Kind", words(string(o.kind))}, {"Size", bytesCell(o.o.Bytes)},
		{"Lines", number(s.Lines)}, {"Tokens", tokens}, {"Made", when(o.o.Created)}, {"Used", when(o.o.Used)},
	}
	if len(o.o.Args) > 0 {
		all = append(all, fact{"Call", code(o.o.Tool + " " + string(o.o.Args))})
	}
	for _, from := range o.o.Origin {
		c := code(from)
		if id, err := observations.ParseID(from); err == nil {
			c.To = q.url("obs/" + string(id))
		}
		all = append(all, fact{"From", c})
	}
	if s.Status != "" && s.Status != "success" {
		all = append(all, fact{"Status", cell{Text: s.Status, Class: "bad"}})
	}
	for _, name := range slices.Sorted(maps.Keys(s.Counts)) {
		all = append(all, fact{name, cell{Text: strconv.FormatFloat(s.Counts[name], 'f', -1, 64), Num: true}})
	}
	if o.o.Dropped > 0 {
		all = append(all, fact{"Not stored", cell{Text: size(o.o.Dropped) + ": " + o.o.Cause, Class: "bad"}})
	}
	if o.o.Pinned {
		all = append(all, fact{"Pinned", words("it neither expires nor makes room")})
	}
	return all
}

// boxes are the forms that ask a text.
func (q *request) boxes() any {
	box := func(name, hint string, more ...field) section {
		fields := append([]field{{Name: name, Label: name, Value: q.query.Get(name), Hint: hint, Size: 30}}, more...)
		if q.query.Has("name") {
			fields = append(fields, hidden("name", q.query.Get("name")))
		}
		return section{Blocks: []any{form{To: q.url(strings.Join(q.path, "/")), Submit: name, Fields: fields}}}
	}
	return columns{box("grep", "pattern, RE2"), box("jq", "filter",
		field{Name: "slurp", Label: "all records as one array", Check: true, Value: q.query.Get("slurp")})}
}

// answer is what the tool grep or jq answers to what is in a box: as the model would be shown it.
func (q *request) answer(o *opened) ([]any, error) {
	name, args := q.asked(o)
	if args == nil {
		return nil, nil
	}
	a, err := q.call(name, args)
	if err != nil {
		return nil, err
	}
	out := section{Title: "Answer of " + name, Key: "answer"}
	for _, b := range a.Blocks {
		out.Blocks = append(out.Blocks, pre(b.Text))
		if next := q.nextOf(b.Text); next != "" {
			out.Blocks = append(out.Blocks, &pager{Next: next})
		}
	}
	if !a.Failed && o.o != nil {
		out.Blocks = append(out.Blocks, action{To: q.url("act"), Submit: "save as observation", Fields: []field{
			hidden("act", "save"), hidden("tool", name), hidden("args", string(args)), hidden("token", q.token),
		}})
	}
	return []any{out}, nil
}

func hidden(name, value string) field { return field{Name: name, Value: value, Hidden: true} }

// asked returns the call that a box, or the link to a further page of its answer, asks for; nil if none does.
func (q *request) asked(o *opened) (tool string, args json.RawMessage) {
	given := map[string]any{"source": o.Name}
	switch grep, jq := q.query.Get("grep"), q.query.Get("jq"); {
	case grep != "":
		tool, given["pattern"] = "grep", grep
	case jq != "":
		tool, given["filter"], given["slurp"] = "jq", jq, q.query.Get("slurp") != ""
	default:
		return "", nil
	}
	if q.query.Has("offset") {
		given["offset"] = q.number("offset", 0)
	}
	args, _ = json.Marshal(given) // cannot fail
	return tool, args
}

const answerTime = 30 * time.Second // of a tool; the server gives up a request after 60

// call calls a tool for the person; what it shows counts for no session.
func (q *request) call(name string, args json.RawMessage) (funnel.Answer, error) {
	at := slices.IndexFunc(q.o.Tools, func(t tools.Tool) bool { return t.Name == name })
	if at < 0 {
		return funnel.Answer{}, problemf(http.StatusNotFound, "This server has no tool %s.", name)
	}
	set, done := q.sources()
	defer done()
	ctx, stop := context.WithTimeout(q.ctx, answerTime) // it is shown then what was found until then
	defer stop()
	return q.o.Funnel.Call(ctx, funnel.Request{
		Tool: q.o.Tools[at], Args: args, Who: funnel.Session{ID: "view", Owner: q.who.Owner}, Sources: set,
		Via: trace.ViaView,
	})
}

// nextOf returns the address of the next page of an answer, whose header has the call of that; "" if none follows.
func (q *request) nextOf(text string) href {
	header, _, _ := strings.Cut(text, "\n")
	_, next, _ := strings.Cut(header, "next: ")
	_, raw, _ := strings.Cut(next, " ")
	var args struct{ Offset int64 }
	if json.Unmarshal([]byte(raw), &args) != nil || args.Offset == 0 {
		return ""
	}
	return q.with("offset", itoa(args.Offset))
}

// observations lists those of the person, the newest first.
func (q *request) observations() (*page, error) {
	all, err := q.o.Store.List(q.ofAll(), false)
	if err != nil {
		return nil, err
	}
	const empty = "Nothing is stored yet. Large outputs of tools appear here."
	t := &table{Heads: observationHeads, Empty: empty, Key: "observations"}
	listed(q, t, all, func(o observations.Observation) []cell { return q.observationRow(&o) })
	return &page{Title: "Observations", Blocks: []any{t}, Live: true}, nil
}

// ofAll is the person as an owner in lists: "" for an operator who sees what belongs to all.
func (q *request) ofAll() string {
	if q.o.AnyOwner && q.who.Operator {
		return ""
	}
	return q.who.Owner
}

var observationHeads = heads("ID", "Made", "Tool", "Kind", "#Size", "#Lines", "#Tokens", "Name or call")

// observationRow is the row of an observation in lists.
func (q *request) observationRow(o *observations.Observation) []cell {
	id := code(string(o.ID)).to(q.url("obs/" + string(o.ID)))
	tool := words(o.Tool)
	if o.Pinned {
		tool.Text += " (pinned)"
	}
	return []cell{
		id, when(o.Created), tool, words(o.Stats.Kind), bytesCell(o.Bytes), number(o.Stats.Lines), number(o.Stats.Tokens),
		{Text: content.Clip(q.clip([]byte(cmp.Or(o.Name, string(o.Args))), 400), 80), Class: "code"},
	}
}

// paged returns the part of a list that this page shows.
func paged[T any](q *request, all []T) ([]T, *pager) {
	from := min(q.number("top", 0), int64(len(all)))
	to := min(from+pageLines, int64(len(all)))
	return all[from:to], q.rowPager(from, to, int64(len(all)))
}

// listed adds to a table a row for each of a list that this page shows.
func listed[T any](q *request, t *table, all []T, row func(T) []cell) {
	all, t.Pager = paged(q, all)
	for _, one := range all {
		t.Rows = append(t.Rows, row(one))
	}
}

// rowPager leads through pages of rows, all of which are known.
func (q *request) rowPager(from, to, total int64) *pager {
	return q.pager(grouped(min(from+1, to))+"–"+grouped(to)+" of "+grouped(total), "top", 0, from, to, pageLines, total)
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }
