package viewer

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/tools/ask"
	"github.com/mcp-funnel/mcp-funnel/tools/investigate"
)

// ofAll is the person as an owner in lists: "" for an operator who sees what belongs to all.
func (q *request) ofAll() string {
	if q.o.AnyOwner && q.who.Operator {
		return ""
	}
	return q.who.Owner
}

// investigations is the page of one investigation, of a path in it, or of all.
func (q *request) investigations() (*page, error) {
	all, err := q.o.Investigator.List(q.ofAll())
	if err != nil {
		return nil, err
	}
	if len(q.path) > 1 {
		at := slices.IndexFunc(all, func(m investigate.Meta) bool { return m.ID == q.path[1] })
		if at < 0 {
			return nil, problemf(http.StatusNotFound, "There is no investigation inv:%s.", content.ClipBytes(q.path[1], 40))
		}
		q.who.Owner = all[at].Identity
		return q.investigation(all[at].ID)
	}
	t := &table{
		Heads: []cell{words("ID"), words("Begun"), words("Used"), words("Target"), words("Goal"), {Text: "Directories", Num: true}},
		Empty: "Nothing was investigated yet: mcp-funnel investigate DIR begins.", Key: "investigations",
	}
	from := min(q.number("top", 0), int64(len(all)))
	to := min(from+pageLines, int64(len(all)))
	for _, m := range all[from:to] {
		t.Rows = append(t.Rows, []cell{code(m.ID).to(q.url("inv/" + m.ID)), when(m.StartedAt), when(m.LastUsed),
			code(content.Clip(m.Target, 80)), words(q.clip([]byte(m.Goal), 200)), number(int64(m.DirCount))})
	}
	t.Pager = q.rowPager(from, to, int64(len(all)))
	return &page{Title: "Investigations", Blocks: []any{links{{Text: "answers of ask", To: q.url("ans")}}, t}}, nil
}

// investigation shows an investigation: what it is about, its flags and its directories; or its report, or one path.
func (q *request) investigation(id string) (*page, error) {
	k, err := q.o.Investigator.Kept(q.who.Owner, id)
	if errors.Is(err, investigate.ErrNone) {
		err = problemf(http.StatusNotFound, "%s", err)
	}
	if err != nil {
		return nil, err
	}
	at := "inv/" + id
	p := &page{Title: "inv:" + id, Crumbs: []link{{Text: "Investigations", To: q.url("inv")}}}
	if k.Damaged > 0 {
		p.Notes = append(p.Notes, content.Plural(int64(k.Damaged), "entry is", "entries are")+" damaged and not shown; the next investigation of the directory makes them again")
	}
	switch {
	case q.query.Has("path"):
		p.Title, p.Crumbs = content.Clip(q.query.Get("path"), 100), append(p.Crumbs, link{Text: "inv:" + id, To: q.url(at)})
		p.Blocks, err = q.entry(k, q.query.Get("path"))
		return p, err
	case q.query.Has("report"):
		p.Title, p.Crumbs = "Report", append(p.Crumbs, link{Text: "inv:" + id, To: q.url(at)})
		if k.Report.ID == "" {
			p.Blocks = []any{note{"No report was shown yet: mcp-funnel investigations report inv:" + id + " makes it.", ""}}
			return p, nil
		}
		p.Blocks, err = q.noted(k, "general", nil, k.Report.Text())
		return p, err
	}
	seen := map[string]int64{}
	flagged := &table{Caption: "Flags, the worst first", Heads: []cell{words("Severity"), words("Path"), words("Finding")}, Empty: "No flags."}
	for i, f := range k.Flags {
		if seen[f.Path]++; i < pageLines {
			flagged.Rows = append(flagged.Rows, []cell{{Text: f.Severity, Class: severityClass(f.Severity)}, q.pathCell(id, f.Path),
				words(q.clip([]byte(f.Finding), 300))})
		} else if i == pageLines {
			p.Notes = append(p.Notes, grouped(int64(len(k.Flags)-i))+" more flags are on the pages of their paths")
		}
	}
	t := &table{Caption: "Directories", Empty: "No directory was looked at yet.", Heads: []cell{words("Path"), words("State"),
		{Text: "Confidence", Num: true}, {Text: "Flags", Num: true}, words("Opened"), words("Summary")}}
	paths := slices.Sorted(maps.Keys(k.Dirs))
	from := min(q.number("top", 0), int64(len(paths)))
	to := min(from+pageLines, int64(len(paths)))
	opened, files := 0, 0
	for _, d := range k.Dirs {
		if d.Coverage != nil {
			opened, files = opened+d.Coverage.Opened, files+d.Coverage.Files
		}
	}
	for _, name := range paths[from:to] {
		d := k.Dirs[name]
		state, read := stateOf(d.By, d.Partial, d.PartialReason), ""
		if d.Coverage != nil {
			read = d.Coverage.Text()
		}
		t.Rows = append(t.Rows, []cell{q.pathCell(id, name), state, share(d.Confidence), number(seen[name]), words(read),
			words(q.clip([]byte(d.Summary), 200))})
	}
	t.Pager = q.rowPager(from, to, int64(len(paths)))
	about := facts{{"Target", code(k.Target)}, {"Goal", words(k.Goal)}, {"By", words(k.By)}, {"Begun", when(k.StartedAt)},
		{"Opened when noted", words(fmt.Sprintf("%d of %d files of the directories that somebody described", opened, files))}}
	if k.Scan != "" {
		about = append(about, fact{"First scan", code(k.Scan).to(q.url("obs/" + strings.TrimPrefix(k.Scan, observations.Prefix)))})
	}
	p.Blocks = []any{about, links{{Text: "report", To: q.url(at, "report", "1")}, {Text: "all entries as JSON", To: q.url("file", "name", "inv:"+id)}},
		flagged, t}
	return p, nil
}

func (q *request) pathCell(id, name string) cell {
	return code(content.Clip(name, 100)).to(q.url("inv/"+id, "path", name))
}

func severityClass(s string) string {
	return map[string]string{"critical": "bad", "high": "bad", "concern": "warn", "medium": "warn"}[strings.ToLower(s)]
}

func stateOf(by string, partial bool, reason string) cell {
	switch {
	case by == "mechanical":
		return cell{Text: "described by its files alone", Class: "dim"}
	case partial:
		return cell{Text: "in part: " + reason, Class: "warn"}
	}
	return words("noted by " + by)
}

// share returns a cell of a share from 0 to 1; empty for nil.
func share(f *float64) cell {
	if f == nil {
		return cell{Num: true}
	}
	return cell{Text: strconv.FormatFloat(*f, 'f', 2, 64), Num: true, Share: *f}
}

// entry shows what an investigation says of a path, with its citations.
func (q *request) entry(k investigate.Kept, name string) (blocks []any, err error) {
	add := func(title string, quality facts, before []investigate.Citation, texts ...string) {
		more, failed := q.noted(k, name, before, texts...)
		err = errors.Join(err, failed)
		blocks = append(blocks, section{Title: title, Blocks: append([]any{quality}, more...)})
	}
	for _, f := range k.Flags {
		if f.Path == name {
			add("Flag: "+f.Severity, facts{{"Made", when(f.At)}}, f.Evidence, f.Finding)
		}
	}
	if d, ok := k.Dirs[name]; ok {
		add("Directory", facts{{"State", stateOf(d.By, d.Partial, d.PartialReason)}, {"Confidence", share(d.Confidence)},
			{"Made", when(d.CachedAt)}}, d.Evidence, d.Summary, d.StillUnknown, d.ConfidenceReason)
	}
	if f, ok := k.Files[name]; ok {
		add("File", facts{{"State", stateOf(f.By, f.Partial, f.PartialReason)}, {"Confidence", share(f.Confidence)},
			{"Made", when(f.CachedAt)}, {"File", code(f.Path).to(q.url("file", "name", f.Path))}},
			f.Evidence, f.Summary, f.NotableReason, f.ConfidenceReason)
	}
	if blocks == nil {
		return nil, problemf(http.StatusNotFound, "The investigation has no entry of this path.")
	}
	below := links{}
	for _, f := range slices.Sorted(maps.Keys(k.Files)) {
		if path.Dir(f) == name && len(below) < pageLines {
			below = append(below, link{Text: content.Clip(path.Base(f), 60), To: q.url("inv/"+k.ID, "path", f)})
		}
	}
	if len(below) > 0 {
		blocks = append(blocks, section{Title: "Files in it", Blocks: []any{below}})
	}
	return blocks, err
}

// noted shows texts of an investigation about a path, and whether what they cite holds now.
func (q *request) noted(k investigate.Kept, of string, before []investigate.Citation, texts ...string) (blocks []any, err error) {
	for _, text := range texts {
		if text != "" {
			blocks = append(blocks, pre(q.cut([]byte(text), pageBytes/2)))
		}
	}
	set, done := q.sources()
	defer done()
	all, err := q.o.Investigator.Cited(q.ctx, investigate.Caller{Sources: set, Owner: q.who.Owner}, k, of, before, texts...)
	if err != nil {
		return append(blocks, note{"Its citations cannot be looked up: " + err.Error(), "bad"}), nil
	}
	t := &table{Heads: []cell{words("Cited"), words("Quote"), words("Now")}}
	for _, c := range all[:min(len(all), pageLines)] {
		at, now := code(q.clip([]byte(c.Cited), 200)), words(string(c.Verdict))
		if c.File != "" {
			at.To = q.url("file", "name", k.Target+"/"+c.File, "line", strconv.Itoa(max(c.Line, c.From, 1)))
		}
		if c.Reason != "" {
			now.Text += ": " + c.Reason
		}
		if c.Lost {
			now.Text += "; it held when this was written"
		}
		if c.Lost || c.Verdict == "absent" {
			now.Class = "bad"
		}
		t.Rows = append(t.Rows, []cell{at, code(q.clip([]byte(c.Quote), 200)), now})
	}
	if len(all) > pageLines {
		blocks = append(blocks, note{grouped(int64(len(all)-pageLines)) + " more citations are not shown.", ""})
	}
	if len(all) > 0 {
		blocks = append(blocks, t)
	}
	return blocks, nil
}

// answers is the page of one answer of ask, or of all.
func (q *request) answers() (*page, error) {
	if len(q.path) > 1 {
		a, err := q.o.Asker.Recall(q.who.Owner, q.path[1])
		if all, failed := q.o.Asker.Answers(q.ofAll()); err != nil && failed == nil && q.ofAll() == "" {
			if at := slices.IndexFunc(all, func(a ask.Kept) bool { return a.ID == q.path[1] }); at >= 0 {
				a, err = all[at], nil
			}
		}
		if err != nil {
			return nil, problemf(http.StatusNotFound, "There is no answer ans:%s, or it is too old.", content.ClipBytes(q.path[1], 40))
		}
		return q.answered(a), nil
	}
	all, err := q.o.Asker.Answers(q.ofAll())
	if err != nil {
		return nil, err
	}
	t := &table{Heads: []cell{words("ID"), words("Made"), words("Question"), words("By"), {Text: "Facts", Num: true}},
		Empty: "Nothing was asked yet: the tool ask, or mcp-funnel ask.", Key: "answers"}
	from := min(q.number("top", 0), int64(len(all)))
	to := min(from+pageLines, int64(len(all)))
	for _, a := range all[from:to] {
		t.Rows = append(t.Rows, []cell{code(a.ID).to(q.url("ans/" + a.ID)), when(a.At), words(q.clip([]byte(a.Question), 200)),
			words(a.By), number(int64(len(a.Facts)))})
	}
	t.Pager = q.rowPager(from, to, int64(len(all)))
	return &page{Title: "Answers", Blocks: []any{t}}, nil
}

// answered shows an answer.
func (q *request) answered(a ask.Kept) *page {
	t := &table{Heads: []cell{words("File"), words("Lines"), words("Fact"), {Text: "Score", Num: true}}, Empty: "No file gave a fact."}
	for _, f := range a.Facts {
		line, _, _ := strings.Cut(f.Lines, "-")
		if _, err := strconv.Atoi(line); err != nil {
			line = "" // a place in a document
		}
		t.Rows = append(t.Rows, []cell{code(content.Clip(f.File, 80)).to(q.url("file", "name", f.File, "line", line)), words(f.Lines),
			words(q.clip([]byte(f.Text), 400)), {Text: strconv.FormatFloat(f.Score, 'f', 2, 64), Num: true}})
	}
	steps := &table{Heads: []cell{words("Step"), words("Arguments")}, Empty: "No function was run."}
	for _, s := range a.Steps {
		args, _ := content.PlainJSON(s.Arguments)
		steps.Rows = append(steps.Rows, []cell{code(s.Tool), code(q.clip(args, 400))})
	}
	c := a.Coverage
	covered := facts{{"Searched", words(fmt.Sprintf("%d of %d files; %d gave facts", c.Searched, c.Files, c.WithFacts))}}
	if c.By != "" {
		covered = append(covered, fact{"Named " + c.By, words(fmt.Sprintf("%d files, of which %d gave facts", c.Named, c.NamedWithFacts))})
	}
	if len(c.Absent) > 0 {
		covered = append(covered, fact{"In no file", words(q.clip([]byte(strings.Join(c.Absent, ", ")), 400))})
	}
	return &page{
		Title: content.Clip(a.Question, 100), Crumbs: []link{{Text: "Answers", To: q.url("ans")}},
		Blocks: []any{facts{{"ID", code(ask.Prefix + a.ID)}, {"Read as", words(a.ReadAs)}, {"By", words(a.By)}, {"Made", when(a.At)}},
			pre(a.Answer), section{Title: "Facts", Blocks: []any{t}}, section{Title: "Steps", Blocks: []any{steps}},
			section{Title: "Covered", Blocks: []any{covered, note{"The names of files that were not searched are not kept with an answer.", ""}}}},
	}
}
