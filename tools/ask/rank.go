package ask

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/kinds/outline"
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

	plainWeight = 0.5 // of a word such as "came"; of others 1 and more
	perFile     = 20  // passages of one file that are read
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

// fitting drops passages that have far fewer of the question's words than the best one, or none of its numbers where
// the best has some: those of another invoice.
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
	return slices.DeleteFunc(slices.Clone(all), func(p found) bool { // Covered is 0 if there are no numbers
		return p.covered < share*most || mostNumbers > 0 && numbers.Covered(p.whole()) == 0
	})
}

// having puts the passages first that have a share of the question's words, and counts them.
func having(all []found, share float64) (sorted []found, count int) {
	var rest []found
	for _, p := range all {
		if p.covered >= share {
			sorted = append(sorted, p)
		} else {
			rest = append(rest, p)
		}
	}
	return append(sorted, rest...), len(sorted)
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
		hits, err := p.file.at.index.Search(q.ctx, lacks, index.Scope{Paths: []string{p.Path}}, 2, 2)
		if err != nil {
			return nil, err
		}
		var more []found
		for _, h := range hits {
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
		rare, err := c.index.Rarity(q.ctx, terms, c.scope())
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
		terms := slices.Sorted(maps.Keys(query.Terms))
		hits, err := c.index.Search(q.ctx, terms, c.scope(), limit, perFile)
		if err != nil {
			return nil, err
		}
		for _, h := range hits {
			if p := (found{Hit: h, file: c.byPath[h.Path]}); q.readPassage(c, query, &p) {
				p.Score *= adjust(query, &p)
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
// close to each other, in the heading or in the name of a declaration, and in the path. In code, a declaration with a
// long comment goes before others, and the shorter the comment, the more its heading counts. The constants are the best
// of a few that were tried with TestRetrieval, over code without comments, and TestQuestions; those for code were chosen
// on one half of the questions over Go's source and confirmed on the other.
func adjust(query facts.Query, p *found) float64 {
	heading, path, by := 2.0, 0.6, 1.0
	if p.Code {
		explained := min(1, float64(p.commentTerms())/longComment)
		heading, path = heading-1.7*explained, 1
		by = (1 + explained) * min(1, 0.4+float64(len(p.text))/150) // one line says little
		if strings.HasPrefix(p.Heading, "package ") {
			by *= packageBonus
		}
	}
	if p.file != nil && p.file.aside != "" && query.Terms[p.file.aside] == 0 {
		by *= asideWeight
	}
	return by * (0.6 + 0.3*nearness(query, p.text) + heading*query.Covered(p.Heading) + path*query.Covered(p.Path))
}

const (
	longComment  = 60   // terms of a comment that explains a declaration
	packageBonus = 1.25 // for what a package or a file says of itself
	asideWeight  = 0.7  // of passages that seldom define what they mention; see asideOf
)

// commentTerms returns how many terms stand above the first line of a declaration: its comment. Of a part of a long
// declaration, only a part of its comment counts.
func (p *found) commentTerms() (n int) {
	end := strings.Index(p.text, p.Heading)
	switch begin := strings.TrimSpace(p.text); {
	case p.Heading == "", end < 0 && strings.HasPrefix(begin, "//"), end < 0 && strings.HasPrefix(begin, "#"):
		end = len(p.text)
	case end < 0:
		end = 0
	}
	words.Each(p.text[:end], func(string, int, int) { n++ })
	return n
}

// aside are names of files that mention a thing and seldom define it, and the term by which a question asks for them.
var aside = []struct {
	term string
	is   func() *regexp.Regexp
}{
	{"vendor", content.Pattern(`(?:^|/)(?:vendor|third_party|node_modules)/`)},
	{"changelog", content.Pattern(`(?i)(?:^|/)(?:change(?:s|log)|history|news|release[-_]?notes)` +
		`(?:[-_.]v?\d[^/]*?)?(?:\.(?:md|txt|rst|adoc|html))?$`)},
	{"licens", content.Pattern(`(?i)(?:^|/)(?:licen[cs]e|copying|notices?)(?:[-_][^/.]*)?(?:\.(?:md|txt|rst))?$`)},
}

// asideOf returns the term by which a question asks for a file that seldom defines what it mentions: a test, generated
// or foreign code, a changelog, a licence. It returns "" for others. Head is the beginning of its text.
func asideOf(path string, head []byte) string {
	for _, a := range aside {
		if a.is().MatchString(path) {
			return a.term
		}
	}
	switch {
	case outline.IsTest(path):
		return "test"
	case outline.IsGenerated(head):
		return "generat"
	}
	return ""
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
