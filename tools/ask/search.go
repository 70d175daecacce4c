package ask

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/kinds"
	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/text/words"
	"github.com/mcp-funnel/mcp-funnel/tools/ask/facts"
	"github.com/mcp-funnel/mcp-funnel/tools/ask/index"
)

const (
	maxSecond   = 500 // files that a second search looks into
	aroundFiles = 3   // files whose best fact is shown with the lines around it
)

// search answers a question on what files say.
func (q *question) search(r *Result) (err error) {
	defer func() { err = q.removeDamaged(err) }()
	if err := q.refresh(); err != nil {
		return err
	}
	terms := termsOf(q.readAs)
	query, err := q.query(terms)
	if err != nil {
		return err
	}
	r.Coverage.Absent = q.absent
	limit, every := candidates, listsAll(q.readAs)
	if every || query.Asked == facts.Count {
		limit = forAll
	}
	all, err := q.passages(query, limit)
	if err != nil {
		return err
	}
	if r.found = len(all); r.found >= limit && all[limit-1].covered >= fitsFrom {
		q.note("more than %d passages have these words: only the best %d were read, other files may have facts too", limit, limit)
	}
	all, fit := having(all, fitsFrom) // BM25 takes any rare word for an important one
	shown := append(slices.Clone(best(all[:fit])), best(all[fit:])...)
	if every {
		all, _ = having(all, hasAll)
		shown, _ = having(shown, hasAll)
	} else {
		shown = fitting(query, shown)
	}
	if q.meaning != nil && len(terms) > 0 && (q.k.options.Embedder != nil || !every) {
		shown, err = q.byMeaning(query, shown)
		if err != nil {
			return err
		}
	}
	if shown = shown[:min(len(shown), q.top)]; !every {
		if shown, err = q.complete(query, shown); err != nil {
			return err
		}
	}
	q.takeFacts(r, query, all, shown)
	err = q.cover(r, query, terms)
	switch {
	case q.args.Top == 0 && (every || len(shown) > 0 && shown[0].Code): // as many as there is room for
		r.shown = len(r.Facts)
	case r.shown == 0: // the best passages gave no fact, others did
		r.shown = min(len(r.Facts), q.top)
	}
	return err
}

// takeFacts adds the facts of passages to an answer: those of shown are shown, and those of the other passages that
// belong to the question are only kept.
func (q *question) takeFacts(r *Result, query facts.Query, all, shown []found) {
	one := listsAll(q.readAs)
	have := map[string]bool{}  // file and lines
	around := map[*file]bool{} // files whose best fact is shown with the lines around it
	add := func(p found, show bool) {
		passage := q.passage(&p)
		key := p.file.Name() + ":" + strconv.Itoa(p.Line)
		if q.rejected[key] {
			return
		}
		list := append(p.near, facts.Extract(query, passage)...)
		if show {
			if list = q.extract(query, passage, list); len(list) == 0 && q.extractor != nil {
				q.rejected[key] = true
			}
		}
		if one && len(list) > 1 {
			list = []facts.Fact{slices.MaxFunc(list, func(a, b facts.Fact) int { return cmp.Compare(a.Score, b.Score) })}
		}
		higher := func(a, b facts.Fact) int { return cmp.Compare(a.Score, b.Score) }
		first := slices.MaxFunc(append(list, facts.Fact{}), higher)
		for _, f := range list {
			isFirst := f == first
			f.Lines = p.file.lines(f.From, f.To)
			record := passage.Code && !p.Code // a line of a log or of JSON says all by itself
			if show && isFirst && !one && !record && len(around) < aroundFiles && !around[p.file] {
				if f.Around = passage.AroundFact(f); f.Around != nil {
					around[p.file] = true
					f.Around.Lines = p.file.lines(f.Around.From, f.Around.To)
				}
			}
			if key := fmt.Sprintf("%s:%d-%d", f.File, f.From, f.To); !have[key] { // Lines may be a whole page
				have[key] = true
				r.Facts = append(r.Facts, f)
				if show {
					r.shown = len(r.Facts)
				}
			}
		}
		if len(list) > 0 {
			q.withFacts[p.file] = true
		}
	}
	for _, p := range shown {
		add(p, true)
	}
	bestFirst(r.Facts[:r.shown])
	for _, p := range all {
		if p.covered >= fitsFrom { // those that are shown are known already
			add(p, false)
		}
	}
}

// bestFirst puts the facts of one file together, the best first. Files stay in their order.
func bestFirst(list []facts.Fact) {
	rank := map[string]int{}
	for i, f := range list {
		if _, known := rank[f.File]; !known {
			rank[f.File] = i
		}
	}
	slices.SortStableFunc(list, func(a, b facts.Fact) int {
		return cmp.Or(cmp.Compare(rank[a.File], rank[b.File]), cmp.Compare(b.Score, a.Score))
	})
}

// passage returns what the package facts needs of a passage.
func (q *question) passage(p *found) facts.Passage {
	return facts.Passage{
		File: p.file.Name(), Line: p.Line, Text: q.withoutKey(p), Heading: p.Heading, Table: p.isTable(),
		Code:  p.Code || slices.Contains([]string{"json", "jsonl", "ndjson", "log"}, p.file.ext()),
		Alone: p.file.at.docs[p.Path] != nil, Mask: q.in.Mask,
	}
}

// inKey matches what a part of a private key has: characters of base64, or its end.
var inKey = content.Pattern(`[A-Za-z0-9+/]{32}|-----END `)

// withoutKey returns the text of a passage with a private key masked that begins at most 32 KiB above it. The lines of a
// key are not known as a secret by themselves.
func (q *question) withoutKey(p *found) string {
	if q.in.Mask == nil || p.Start == 0 || !inKey().MatchString(p.text) {
		return p.text
	}
	longer := p.Hit
	longer.Start = max(0, p.Start-32<<10)
	text, _ := p.file.at.passage(q.ctx, longer)
	above, ok := strings.CutSuffix(text, p.text)
	n := strings.Count(above, "\n")
	lines := strings.SplitAfterN(q.in.Mask(text), "\n", n+1)
	if !ok || !strings.HasSuffix(above, "\n") || len(lines) <= n { // it changed, or is a part of a line
		return p.text
	}
	return lines[n]
}

// isTable reports whether a passage is rows of a table: its heading is the header.
func (p *found) isTable() bool {
	return !p.Code && p.Heading != "" && slices.Contains([]string{"csv", "tsv"}, p.file.ext())
}

// lines names lines of a file: by their numbers, or by their places in a document.
func (f *file) lines(from, to int) string {
	if d := f.at.docs[f.Path]; d != nil {
		first, last := d.PlaceOf(from), d.PlaceOf(to)
		if first != last {
			first += " to " + last
		}
		if first != "" {
			return first
		}
	}
	if from == to {
		return strconv.Itoa(from)
	}
	return strconv.Itoa(from) + "-" + strconv.Itoa(to)
}

// all matches questions for every one of something.
var all = content.Pattern(`(?i)\b(all|every|each|list|alle|sämtliche|jede[rsn]?|tous|toutes|chaque|todos|todas|cada)\b`)

// listsAll reports whether a question wants one line of each file.
func listsAll(question string) bool { return all().MatchString(question) }

// cover says what was and what was not covered. Files whose name belongs to the question and that gave no fact are
// searched once more, each alone; those that still give none are missing.
func (q *question) cover(r *Result, query facts.Query, terms []string) error {
	r.Coverage.NotSearchable = q.unsearchable()
	for _, c := range q.places {
		r.Coverage.Files += len(c.files)
		r.Coverage.Searched += c.status.Indexed
	}
	r.Coverage.Searched -= len(r.Coverage.NotSearchable)
	named, by := q.named(terms)
	r.Coverage.Named, r.Coverage.By = len(named), wordOf(q.readAs, by)
	if query.Asked == facts.Count {
		q.countBy(r)
	}
	if err := q.searchAgain(r, query, terms, named); err != nil {
		return err
	}
	for _, f := range named {
		if q.withFacts[f] {
			r.Coverage.NamedWithFacts++
		} else {
			r.Coverage.Missing = append(r.Coverage.Missing, f.Name())
		}
	}
	r.Coverage.WithFacts = len(q.withFacts)
	for f := range q.withFacts {
		r.Files = append(r.Files, f.Name())
	}
	slices.Sort(r.Files)
	return nil
}

// searchAgain looks for facts in the files that gave none yet, at most maxSecond of them.
func (q *question) searchAgain(r *Result, query facts.Query, terms []string, files []*file) error {
	without := map[*corpus][]string{}
	n := 0
	for _, f := range files {
		if q.withFacts[f] {
			continue
		}
		if n++; n <= maxSecond {
			without[f.at] = append(without[f.at], f.Path)
		}
	}
	if n > maxSecond {
		q.note("%d files that fit by name gave no fact at first: %d of them were searched again", n, maxSecond)
	}
	for _, c := range q.places {
		if len(without[c]) == 0 {
			continue
		}
		hits, err := c.index.Search(q.ctx, terms, index.Scope{Paths: without[c]}, 3*len(without[c]), 3)
		if err != nil {
			return err
		}
		byPath := map[string][]index.Hit{}
		for _, h := range hits {
			byPath[h.Path] = append(byPath[h.Path], h)
		}
		for _, p := range without[c] {
			var again []found
			for _, h := range byPath[p] {
				text, ok := c.passage(q.ctx, h)
				if covered := query.Covered(h.Heading + " " + p + " " + text); ok && covered >= fitsFrom {
					again = append(again, found{Hit: h, file: c.byPath[p], text: text, covered: covered})
				}
			}
			q.takeFacts(r, query, again, nil)
		}
	}
	return nil
}

// named returns the files whose name has a word of the question that tells files apart, and that word.
func (q *question) named(terms []string) (best []*file, by string) {
	total := 0
	for _, c := range q.places {
		total += len(c.files)
	}
	byTerm := map[string][]*file{}
	for _, c := range q.places {
		for _, f := range c.files {
			words.Each(f.Path, func(t string, _, _ int) {
				if slices.Contains(terms, t) {
					if all := byTerm[t]; len(all) == 0 || all[len(all)-1] != f { // once a file
						byTerm[t] = append(all, f)
					}
				}
			})
		}
	}
	for _, t := range terms {
		n := len(byTerm[t])
		if n > 0 && (n < total || total == 1) && (by == "" || n > len(best)) {
			best, by = byTerm[t], t
		}
	}
	return best, by
}

// wordOf returns the word of a question that a term was made from.
func wordOf(question, term string) (word string) {
	words.Each(question, func(t string, from, to int) {
		if t == term && word == "" {
			word = question[from:to]
		}
	})
	return word
}

// countBy answers how many records the files have that the question names. The facts show the rest.
func (q *question) countBy(r *Result) {
	var counts []string
	var total int64
	for _, f := range q.every() {
		if !strings.Contains(words.Fold(q.readAs), words.Fold(path.Base(f.Path))) {
			continue
		}
		body, kind, why := f.at.text(q.ctx, f.File)
		if why != "" || kind != content.Table && kind != content.NDJSON && kind != content.JSON {
			continue
		}
		var n int64
		err := kinds.Records(q.ctx, bytes.NewReader(body), kind, func(int64, content.Span) bool { n++; return true })
		if d, ok := errors.AsType[*content.Remarks](err); ok {
			q.note("%s is damaged: %s", f.Name(), strings.Join(d.Notes, "; "))
		} else if err != nil {
			q.note("%s is damaged, its records are counted up to there: %v", f.Name(), err)
		}
		total += n
		counts = append(counts, f.Name()+" has "+content.Plural(n, "record", "records"))
	}
	if len(counts) > 0 {
		r.Count, r.Answer = &total, strings.Join(counts, "; ")
	}
}

// unsearchable returns the files that could not be searched, and why.
func (q *question) unsearchable() []Unsearchable {
	list := []Unsearchable{}
	for _, c := range q.places {
		for _, p := range slices.Sorted(maps.Keys(c.status.Unsearchable)) {
			if f := c.byPath[p]; f != nil {
				list = append(list, Unsearchable{f.Name(), c.status.Unsearchable[p]})
			}
		}
	}
	return list
}
