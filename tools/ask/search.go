package ask

import (
	"bytes"
	"cmp"
	"errors"
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
	"github.com/mcp-funnel/mcp-funnel/tools/ask/router"
)

const (
	candidates = 200  // passages whose text is read to rank them
	forAll     = 5000 // the same for a question for all of something
	keepFrom   = 0.8  // passages with a lower share of the best score are dropped
	fitsFrom   = 0.6  // a file whose passage has this share of the question's words, by weight, belongs to it
	hasAll     = 0.999

	plainWeight = 0.5 // of a word such as "came"; others weigh 1 and more
	perFile     = 20  // passages of one file that are read
	maxSecond   = 500 // files that a second search looks into
	maxTerms    = 24  // terms that are searched, the rarest
)

// found is a passage that was ranked.
type found struct {
	index.Hit
	file    *file
	text    string
	covered float64 // share of the question's words, by weight

	byMeaning bool         // it is near the question
	near      []facts.Fact // its sentences that are nearest, where few of its words are those of the question
}

// search answers a question on what files say.
func (q *question) search(r *Result) error {
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
	shown := best(all)
	if every {
		shown, all = byFit(shown), byFit(all)
	} else {
		shown = fitting(query, append(bestOfFit(all, len(shown)), shown...))
	}
	if q.meaning != nil && len(terms) > 0 {
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
	case every && q.args.Top == 0: // as many as there is room for
		r.shown = len(r.Facts)
	case r.shown == 0: // the best passages gave no fact, others did
		r.shown = min(len(r.Facts), q.top)
	}
	return err
}

// fitting drops passages that have far fewer of the question's words than the best one, or none of its numbers where
// the best has some: those of another invoice. Those that belong to the question come first.
func fitting(query facts.Query, all []found) []found {
	const share = 0.75
	numbers := facts.Query{Terms: map[string]float64{}}
	for t, w := range query.Terms {
		if t[0] >= '0' && t[0] <= '9' {
			numbers.Terms[t] = w
		}
	}
	var most, mostNumbers float64
	for _, p := range all {
		most, mostNumbers = max(most, p.covered), max(mostNumbers, numbers.Covered(p.whole()))
	}
	all = slices.DeleteFunc(byFit(all), func(p found) bool { // Covered is 0 if there are no numbers
		return p.covered < share*most || mostNumbers > 0 && numbers.Covered(p.whole()) == 0
	})
	return all
}

// bestOfFit returns the best of the passages from one on that belong to the question: BM25 takes any rare word for an
// important one.
func bestOfFit(all []found, from int) []found {
	fit := slices.DeleteFunc(slices.Clone(all), func(p found) bool { return p.covered < fitsFrom })
	had := slices.ContainsFunc(all[:from], func(p found) bool { return p.covered >= fitsFrom })
	if had || len(fit) == 0 {
		return nil
	}
	return best(fit)
}

// byFit puts passages first that have all of the question's words, then those that have enough of them.
func byFit(all []found) []found {
	rank := func(p found) int {
		switch {
		case p.covered >= hasAll:
			return 0
		case p.covered >= fitsFrom:
			return 1
		}
		return 2
	}
	all = slices.Clone(all)
	slices.SortStableFunc(all, func(a, b found) int { return cmp.Compare(rank(a), rank(b)) })
	return all
}

// complete adds passages of the same file behind each one that lacks words of the question, if the file has all of
// them: the number of an invoice may be far above its total.
func (q *question) complete(query facts.Query, shown []found) (all []found, err error) {
	for _, p := range shown {
		if all = append(all, p); p.covered >= hasAll || p.byMeaning {
			continue
		}
		text := p.whole()
		have := words.Terms(text)
		lacks := slices.DeleteFunc(slices.Sorted(maps.Keys(query.Terms)), func(t string) bool {
			return slices.Contains(have, t)
		})
		hits, err := p.file.at.index.SearchFiles(q.ctx, lacks, []string{p.Path}, 2)
		if err != nil {
			return nil, err
		}
		var more []found
		for _, h := range hits[p.Path] {
			other := found{Hit: h, file: p.file}
			if h.Start != p.Start && q.readPassage(p.file.at, query, &other) && query.Covered(text) < hasAll {
				text += "\n" + other.text
				more = append(more, other)
			}
		}
		if query.Covered(text) >= hasAll {
			all = append(all, more...)
		}
	}
	return all, nil
}

// best returns the passages of a ranking that have at least 0.8 of the best score.
func best(all []found) []found {
	for i, p := range all {
		if p.Score < keepFrom*all[0].Score {
			return all[:i]
		}
	}
	return all
}

// query returns what passages are compared with: the terms that the files have.
func (q *question) query(terms []string) (facts.Query, error) {
	query := facts.Query{Terms: map[string]float64{}, Asked: facts.Wants(q.readAs)}
	for _, c := range q.places {
		rare, err := c.index.Rarity(q.ctx, terms, c.at.Path, c.has)
		if err != nil {
			return query, err
		}
		for t, w := range rare {
			query.Terms[t] = max(query.Terms[t], w)
		}
	}
	if q.known = 0; len(terms) > 0 {
		q.known = float64(len(query.Terms)) / float64(len(terms))
	}
	words.Each(strings.Join(router.PlainWords(q.readAs), " "), func(t string, _, _ int) {
		if query.Terms[t] > 0 {
			query.Terms[t] = plainWeight
		}
	})
	q.absent = absent(contentOf(q.readAs), query.Terms)
	rarest := content.MostFrequent(query.Terms) // by rarity
	for _, t := range rarest[min(len(rarest), maxTerms):] {
		delete(query.Terms, t)
	}
	return query, nil
}

// absent returns the words of a text that have none of the terms, if others have some. Of a word with several terms,
// such as "450 000", one is enough.
func absent(text string, terms map[string]float64) (list []string) {
	has := map[string]bool{}
	words.Each(text, func(t string, from, to int) {
		word := text[from:to]
		if _, known := has[word]; !known {
			list = append(list, word)
		}
		has[word] = has[word] || terms[t] > 0
	})
	if len(terms) == 0 {
		return nil
	}
	return slices.DeleteFunc(list, func(w string) bool { return has[w] })
}

func contentOf(question string) string { return strings.Join(router.ContentWords(question), " ") }

// termsOf returns the terms of a question's content words, each once.
func termsOf(question string) []string {
	var all []string
	words.Each(contentOf(question), func(t string, _, _ int) {
		if !slices.Contains(all, t) {
			all = append(all, t)
		}
	})
	return all
}

// passages returns the passages that have words of a question, the best first.
func (q *question) passages(query facts.Query, limit int) ([]found, error) {
	var all []found
	for _, c := range q.places {
		hits, err := c.index.SearchMany(
			q.ctx, slices.Sorted(maps.Keys(query.Terms)), c.at.Path, limit, perFile, c.has,
		)
		if err != nil {
			return nil, err
		}
		for _, h := range hits {
			if p := (found{Hit: h, file: c.byPath[h.Path]}); q.readPassage(c, query, &p) {
				p.Score *= q.adjust(query, &p)
				all = append(all, p)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b found) int { return cmp.Compare(b.Score, a.Score) })
	return diverse(all), nil
}

// readPassage reads the text of a passage. It returns false if the file is none of those that are asked, or changed.
func (q *question) readPassage(c *corpus, query facts.Query, p *found) (ok bool) {
	if p.text, ok = c.passage(q.ctx, p.Hit); ok {
		p.covered = query.Covered(p.whole())
	} else if p.file != nil {
		q.changed++
	}
	return ok
}

// whole is the text of a passage with what is said above it.
func (p *found) whole() string { return p.Heading + " " + p.Path + " " + p.text }

// adjust returns the factor by which the score of a passage is multiplied. It grows with words of the question that are
// close to each other, in the heading or in the name of a declaration, and in the path. Its constants are the best of a
// few that TestRetrieval was tried with.
func (q *question) adjust(query facts.Query, p *found) float64 {
	by := 0.6 + 0.3*nearness(query, p.text) + 2*query.Covered(p.Heading) + 0.6*query.Covered(p.Path)
	if p.Code { // a package clause says little
		by *= min(1, 0.4+float64(len(p.text))/150)
	}
	return by
}

// nearness returns the largest share of the question's words, by weight, that are in one window of 12 terms.
func nearness(query facts.Query, text string) float64 {
	const window = 12
	var terms []string
	words.Each(text, func(t string, _, _ int) { terms = append(terms, t) })
	var best, now float64
	count := map[string]int{}
	for i, t := range terms {
		if w, ok := query.Terms[t]; ok {
			if count[t]++; count[t] == 1 {
				now += w
			}
		}
		if i >= window {
			old := terms[i-window]
			if w, ok := query.Terms[old]; ok {
				if count[old]--; count[old] == 0 {
					now -= w
				}
			}
		}
		best = max(best, now)
	}
	if all := query.Total(); all > 0 {
		return best / all
	}
	return 0
}

// diverse lowers further passages of one file: the next file may say something else.
func diverse(all []found) []found {
	seen := map[*file]int{}
	for i := range all {
		all[i].Score *= 1 - 0.05*float64(min(seen[all[i].file], 4))
		seen[all[i].file]++
	}
	slices.SortStableFunc(all, func(a, b found) int { return cmp.Compare(b.Score, a.Score) })
	return all
}

// takeFacts adds the facts of passages to an answer: those of shown are shown, and those of the other passages that
// belong to the question are only kept.
func (q *question) takeFacts(r *Result, query facts.Query, all, shown []found) {
	one := listsAll(q.readAs)
	have := map[string]bool{} // file and lines
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
		for _, f := range list {
			f.Lines = p.file.lines(f.From, f.To)
			if key := f.File + ":" + f.Lines; !have[key] {
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

// passage returns a passage as facts are taken from it.
func (q *question) passage(p *found) facts.Passage {
	return facts.Passage{
		File: p.file.Name(), Line: p.Line, Text: p.text, Heading: p.Heading, Table: p.isTable(),
		Code:  p.Code || slices.Contains([]string{"json", "jsonl", "ndjson", "log"}, p.file.ext()),
		Alone: p.file.at.docs[p.Path] != nil, Mask: q.caller.Mask,
	}
}

// isTable reports whether a passage is rows of a table: its heading is the header.
func (p *found) isTable() bool {
	return !p.Code && p.Heading != "" && slices.Contains([]string{"csv", "tsv"}, p.file.ext())
}

// lines names lines of a file: by their numbers, or by their places in a document.
func (f *file) lines(from, to int) string {
	if d := f.at.docs[f.Path]; d != nil {
		if place := d.PlaceOf(from); place != "" {
			return place
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
		hits, err := c.index.SearchFiles(q.ctx, terms, without[c], 3)
		if err != nil {
			return err
		}
		for _, p := range without[c] {
			var again []found
			for _, h := range hits[p] {
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
func wordOf(question, term string) string {
	for _, w := range strings.FieldsFunc(question, func(r rune) bool { return strings.ContainsRune(" ?!.,;:()\"'", r) }) {
		if slices.Contains(words.Terms(w), term) {
			return w
		}
	}
	return term
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
