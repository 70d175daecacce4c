package viewer

import (
	"fmt"
	"maps"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/tools/ask"
	"github.com/mcp-funnel/mcp-funnel/tools/investigate"
)

const maxFlags = 20 // of a path, shown with what they cite

// investigations is the page of one investigation, of a path in it, or of all.
func (q *request) investigations() (*page, error) {
	all, err := q.o.Investigator.List(q.ofAll())
	if err != nil {
		return nil, err
	}
	if len(q.path) > 1 {
		return pick(q, all, func(m investigate.Meta) string { return m.ID }, q.investigation)
	}
	p := listing(q, "Investigations", "Nothing was investigated yet: mcp-funnel investigate DIR begins.",
		heads("ID", "Begun", "Used", "Target", "Goal", "#Directories"), all, func(m investigate.Meta) []cell {
			return []cell{code(m.ID).to(q.url("inv/" + m.ID)), when(m.StartedAt), when(m.LastUsed),
				code(q.short(m.Target, 80)), q.text(m.Goal, 200), number(int64(m.DirCount))}
		})
	p.Blocks = append([]any{links{{Text: "answers of ask", To: q.url("ans")}}}, p.Blocks...)
	return p, nil
}

// investigation shows what an investigation is about, its flags and its directories; or its report, or one path.
func (q *request) investigation(of investigate.Meta) (*page, error) {
	q.who.Owner = of.Identity
	set, done := q.sources()
	defer done()
	k, err := q.o.Investigator.Kept(q.ctx, investigate.Caller{Sources: set, Owner: q.who.Owner}, of.ID)
	if err != nil {
		return nil, err
	}
	p := &page{Title: "inv:" + k.ID, Crumbs: []link{{Text: "Investigations", To: q.url("inv")}}}
	if k.Damaged > 0 {
		p.Notes = []string{content.Plural(int64(k.Damaged), "entry is", "entries are") + " damaged and not shown"}
	}
	if q.query.Has("path") || q.query.Has("report") {
		p.Crumbs = append(p.Crumbs, link{Text: "inv:" + k.ID, To: q.url("inv/" + k.ID)})
		p.Title = q.short(q.query.Get("path"), 100)
		if q.query.Has("report") {
			p.Title = "Report"
		}
		if p.Blocks = q.entry(k, q.query.Get("path")); p.Blocks == nil {
			return nil, problemf(http.StatusNotFound, "The investigation has nothing of this name.")
		}
		return p, nil
	}
	at := func(name string) cell { return code(q.short(name, 100)).to(q.url("inv/"+k.ID, "path", name)) }
	count, opened, files := map[string]int64{}, 0, 0
	flags := &table{Caption: "Flags, the worst first", Heads: heads("Severity", "Path", "Finding"), Empty: "No flags."}
	for i, f := range k.Flags {
		if count[f.Path]++; i < pageLines {
			class := map[string]string{"critical": "bad", "concern": "warn"}[f.Severity]
			row := []cell{{Text: f.Severity, Class: class}, at(f.Path), q.text(f.Finding, 300)}
			flags.Rows = append(flags.Rows, row)
		}
	}
	if more := len(k.Flags) - pageLines; more > 0 {
		p.Notes = append(p.Notes, grouped(int64(more))+" more flags are on the pages of their paths")
	}
	for _, d := range k.Dirs {
		if d.Coverage != nil {
			opened, files = opened+d.Coverage.Opened, files+d.Coverage.Files
		}
	}
	t := &table{Caption: "Directories", Empty: "None yet.",
		Heads: heads("Path", "State", "#Confidence", "#Flags", "Opened", "Summary")}
	listed(q, t, slices.Sorted(maps.Keys(k.Dirs)), func(name string) []cell {
		d, read := k.Dirs[name], ""
		if d.Coverage != nil {
			read = d.Coverage.Text()
		}
		about := qualityOf(d.Quality)
		return []cell{at(name), about[0].Cell, about[1].Cell, number(count[name]), words(read), q.text(d.Summary, 200)}
	})
	covered := fmt.Sprintf("%d of %d files were opened when their directories were noted", opened, files)
	p.Blocks = []any{
		named(heads("Target", "Goal", "By", "Begun", "Coverage"),
			[]cell{code(k.Target), words(k.Goal), words(k.By), when(k.StartedAt), words(covered)}), links{
			{Text: "report", To: q.url("inv/"+k.ID, "report", "1")},
			{Text: "all entries", To: q.url("file", "name", "inv:"+k.ID)},
		}, flags, t,
	}
	return p, nil
}

// qualityOf says who wrote an entry, and how sure it is.
func qualityOf(e investigate.Quality) facts {
	state, sure := words(e.By), cell{Num: true}
	if e.Partial {
		state = cell{Text: e.By + ", in part: " + e.PartialReason, Class: "warn"}
	}
	if e.Confidence != nil {
		sure = cell{Text: strconv.FormatFloat(*e.Confidence, 'f', 2, 64), Num: true, Share: *e.Confidence}
	}
	return facts{{"By", state}, {"Confidence", sure}}
}

// entry shows what an investigation says of a path, or its report for "", with citations; nil if it says nothing.
func (q *request) entry(k investigate.Kept, name string) (blocks []any) {
	add := func(title string, e investigate.Quality, texts ...*string) {
		blocks = append(blocks, section{Title: title, Blocks: append([]any{qualityOf(e)}, q.noted(k, name, e, texts...)...)})
	}
	flags := int64(0)
	for _, f := range k.Flags {
		if f.Path != name {
			continue
		}
		if flags++; flags <= maxFlags {
			add("Flag: "+f.Severity, investigate.Quality{Evidence: f.Evidence}, &f.Finding)
		}
	}
	if flags > maxFlags {
		said := grouped(flags-maxFlags) + " more flags: all entries of the investigation have them."
		blocks = append(blocks, note{said, "warn"})
	}
	if d, ok := k.Dirs[name]; ok {
		add("Directory", d.Quality, d.Texts()...)
	}
	if f, ok := k.Files[name]; ok {
		add("File", f.Quality, f.Texts()...)
		blocks = append(blocks, links{{Text: "the file", To: q.url("file", "name", f.Path)}})
	}
	if text := k.Report.Text(); name == "" && k.Report.ID != "" {
		shown := []any{facts{{"By", words(k.Report.By)}}, pre(q.cut([]byte(text), oneLine))}
		blocks = append(blocks, section{Title: "As it was shown last", Blocks: shown})
	} else if name == "" {
		blocks = append(blocks, note{"No report was shown yet: mcp-funnel investigations report makes it.", ""})
	}
	below := &table{Heads: heads("Files in it")}
	listed(q, below, slices.DeleteFunc(slices.Sorted(maps.Keys(k.Files)), func(f string) bool {
		return path.Dir(f) != name
	}), func(f string) []cell {
		return []cell{code(q.short(path.Base(f), 60)).to(q.url("inv/"+k.ID, "path", f))}
	})
	if below.Rows != nil {
		blocks = append(blocks, below)
	}
	return blocks
}

// noted shows texts of an entry on a path, and whether what they cite holds now.
func (q *request) noted(k investigate.Kept, of string, e investigate.Quality, texts ...*string) (blocks []any) {
	for _, text := range texts {
		if *text != "" {
			blocks = append(blocks, pre(q.cut([]byte(*text), oneLine)))
		}
	}
	all, err := k.Cited(of, e, texts...)
	if err != nil {
		return append(blocks, note{"Its citations cannot be looked up: " + err.Error(), "bad"})
	}
	t := &table{Heads: heads("Cited", "Quote", "Now"), Empty: "It cites nothing."}
	for i, c := range all {
		if i == pageLines/2 {
			blocks = append(blocks, note{grouped(int64(len(all)-i)) + " more citations are not shown.", ""})
			break
		}
		at, now := code(q.clip([]byte(c.Cited), 200)), words(strings.TrimSuffix(string(c.Verdict)+": "+c.Reason, ": "))
		if c.File != "" {
			at.To = q.url("file", "name", k.Target+"/"+c.File, "line", strconv.Itoa(max(c.Line, c.From)))
		}
		if c.Lost {
			now.Text += "; it held when this was written"
		}
		if c.Lost || c.Verdict == "absent" {
			now.Class = "bad"
		}
		t.Rows = append(t.Rows, []cell{at, code(q.clip([]byte(c.Quote), 200)), now})
	}
	return append(blocks, t)
}

// answers is the page of one answer of ask, or of all.
func (q *request) answers() (*page, error) {
	all, err := q.o.Asker.Answers(q.ofAll())
	if err != nil {
		return nil, err
	}
	if len(q.path) > 1 {
		return pick(q, all, func(a ask.Kept) string { return a.ID }, q.answered)
	}
	return listing(q, "Answers", "Nothing was asked yet: mcp-funnel ask does.",
		heads("ID", "Made", "Question", "By", "#Facts"), all, func(a ask.Kept) []cell {
			return []cell{code(a.ID).to(q.url("ans/" + a.ID)), when(a.At), q.text(a.Question, 200), words(a.By),
				number(int64(len(a.Facts)))}
		}), nil
}

// answered shows an answer.
func (q *request) answered(a ask.Kept) (*page, error) {
	t := &table{Heads: heads("File", "Lines", "Fact", "#Score"), Empty: "No file gave a fact."}
	listed(q, t, a.Facts, func(f ask.Fact) []cell {
		line, _, _ := strings.Cut(f.Lines, "-")
		if _, err := strconv.Atoi(line); err != nil {
			line = "" // a place in a document
		}
		return []cell{code(q.short(f.File, 80)).to(q.url("file", "name", f.File, "line", line)), words(f.Lines),
			q.text(f.Text, 400), {Text: strconv.FormatFloat(f.Score, 'f', 2, 64), Num: true}}
	})
	steps := &table{Heads: heads("Step", "Arguments"), Empty: "No function was run."}
	for _, s := range a.Steps {
		args, _ := content.PlainJSON(s.Arguments)
		steps.Rows = append(steps.Rows, []cell{code(s.Tool), code(q.clip(args, 400))})
	}
	c := a.Coverage
	searched := fmt.Sprintf("%d of %d files", c.Searched, c.Files)
	if c.Searched < c.Files {
		searched += "; the names of the others are not kept"
	}
	covered := facts{{"Searched", words(searched)}, {"With facts", number(int64(c.WithFacts))}}
	if c.By != "" {
		named := fmt.Sprintf("%d, of which %d gave facts", c.Named, c.NamedWithFacts)
		covered = append(covered, fact{"Files named " + c.By, words(named)})
	}
	if len(c.Absent) > 0 {
		covered = append(covered, fact{"In no file", words(strings.Join(c.Absent, ", "))})
	}
	answer := any(pre(a.Answer))
	if a.Answer == "" {
		answer = note{"No model answered: the facts do.", ""}
	}
	return &page{Title: q.short(a.Question, 100), Crumbs: []link{{Text: "Answers", To: q.url("ans")}}, Blocks: []any{
		facts{{"ID", code(ask.Prefix + a.ID)}, {"Read as", words(a.ReadAs)}, {"By", words(a.By)}, {"Made", when(a.At)}},
		answer, section{Title: "Facts", Blocks: []any{t}}, section{Title: "Steps", Blocks: []any{steps}},
		section{Title: "Coverage", Blocks: []any{covered}},
	}}, nil
}
