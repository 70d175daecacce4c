// Package facts takes from a passage the lines that answer a question: sentences, key–value lines and rows of tables,
// with the words of the question or with what it asks for. No model takes part.
package facts

import (
	"cmp"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/text/words"
)

const (
	maxFacts = 5   // of one passage
	maxText  = 300 // bytes of a fact
)

// Fact is a part of a file that bears on a question.
type Fact struct {
	File  string  `json:"file"`
	From  int     `json:"-"` // lines, from 1
	To    int     `json:"-"`
	Lines string  `json:"lines"` // "14", "21-23", or a place in a document: "page 3"
	Score float64 `json:"score"`
	Text  string  `json:"text"`
	By    string  `json:"by,omitempty"` // "rules" where a model was to choose the facts and did not

	Around *Around `json:"around,omitempty"` // nil for most facts; see [Passage.AroundFact]
}

// Around is a fact with the lines around it, as they are in the file.
type Around struct {
	Lines    string `json:"lines"`
	Text     string `json:"text"`
	From, To int    `json:"-"` // lines, from 1
}

// Passage is what facts are taken from: whole lines of a file.
type Passage struct {
	File    string
	Line    int // the number of its first line
	Text    string
	Heading string // above it; of a table, its header
	Table   bool
	Code    bool                // each line is a unit: code, logs, JSON
	Alone   bool                // each line is a paragraph
	Mask    func(string) string // of secrets in facts; nil: none
}

// Asked is the kind of thing that a question asks for.
type Asked int

// The kinds.
const (
	Anything Asked = iota
	Amount
	Date
	Name
	Count
)

// Query is a question as facts are compared with it.
type Query struct {
	Terms map[string]float64 // the terms of its content words that files have, and how rare each is: 1 and more
	Asked Asked
}

// set is a set of a question's terms, by their place in the alphabet.
type set uint64

func (q Query) keys() []string {
	keys := slices.Sorted(maps.Keys(q.Terms))
	return keys[:min(len(keys), 64)]
}

// setOf returns which of the keys a text has.
func setOf(keys []string, text string) (has set) {
	words.Each(text, func(term string, _, _ int) {
		if i, ok := slices.BinarySearch(keys, term); ok {
			has |= 1 << i
		}
	})
	return has
}

// Total returns the weight of all terms. They are added in one order: in that of a map the last digits differ from call
// to call, and passages that are equal would change places.
func (q Query) Total() float64 { return q.weight(q.keys(), math.MaxUint64) }

func (q Query) weight(keys []string, has set) (sum float64) {
	for i, k := range keys {
		if has>>i&1 == 1 {
			sum += q.Terms[k]
		}
	}
	return sum
}

// share returns the share of a question's terms, by weight, that a set has.
func (q Query) share(keys []string, has set) float64 {
	if has == 0 {
		return 0
	}
	return q.weight(keys, has) / q.weight(keys, math.MaxUint64)
}

// Covered returns the share of a question's terms, by weight, that a text has.
func (q Query) Covered(text string) float64 {
	keys := q.keys()
	return q.share(keys, setOf(keys, text))
}

// asking are the words by which a folded question shows what it asks for, in English, German, French and Spanish.
var asking = []struct {
	asked Asked
	is    func() *regexp.Regexp
}{
	{Date, content.Pattern(`\b(when|(what|which) (date|day|year)|wann|welche[ms] (datum|tag|jahr)|quand|quelle date` +
		`|cuando|que fecha)\b`)},
	{Count, content.Pattern(`\b(how many|number of|wie ?viele|anzahl|combien de|nombre de|cuantos|cuantas|numero de)\b`)},
	{Amount, content.Pattern(`\b(how (much|large|big|high|expensive)|price|costs?|amount|total|budget|revenue|salary|fees?` +
		`|sum|paid|wie (viel|hoch|teuer)|preis|kosten|betrag|summe|gehalt|umsatz|combien|prix|cout|montant|salaire|cuanto` +
		`|cuanta|precio|coste|costo|importe|monto|salario)\b`)},
	{Date, content.Pattern(`\b(deadline|due|until|frist|fallig|echeance|vencimiento)\b`)}, // but not of "total due"
	{Name, content.Pattern(`\b(who|whom|whose|wer|wem|wen|wessen|qui|quien|quienes)\b`)},
}

// Wants returns what a question asks for.
func Wants(question string) Asked {
	question = words.Fold(question)
	for _, a := range asking {
		if a.is().MatchString(question) {
			return a.asked
		}
	}
	return Anything
}

var (
	amount = content.Pattern(`[$€£¥]\s?\d|\d\s?[$€£¥%]|\d[\d.,' ]*\s?(EUR|USD|GBP|CHF|JPY|dollars?|euros?)\b` +
		`|\b(EUR|USD|GBP|CHF|JPY)\s?\d`)
	date = content.Pattern(`(?i)\b\d{4}-\d\d?-\d\d?\b|\b\d\d?[./]\d\d?[./]\d{2,4}\b|\b\d{1,2}(st|nd|rd|th|\.)? ` +
		`(jan|feb|mar|mär|apr|may|mai|jun|jul|aug|sep|oct|okt|nov|dec|dez|janv|févr|avr|juin|juil|août|déc|ene|abr|ago|dic)` +
		`|\b(january|february|march|april|june|july|august|september|october|november|december) \d`)
	person = content.Pattern(`\p{Lu}\p{Ll}+([ -]\p{Lu}\p{Ll}+)+|@\w`)
)

// Answered reports whether a text has what is asked for; false for Anything. A number of the question is no answer.
func (q Query) Answered(text string) (ok bool) {
	switch q.Asked {
	case Date:
		return date().MatchString(text)
	case Name:
		return person().MatchString(text)
	case Amount, Count:
		words.Each(text, func(term string, _, _ int) { ok = ok || isNumber(term) && q.Terms[term] == 0 })
		ok = ok || q.Asked == Amount && amount().MatchString(text)
	}
	return ok
}

func isNumber(term string) bool { return term[0] >= '0' && term[0] <= '9' }

// candidate is a unit that has words of the question.
type candidate struct {
	unit
	has      set
	answered bool // it has what is asked for
	score    float64
}

// Extract returns the facts of a passage, at most five: the best one first, then those that add words of the question,
// then those that are nearly as good as the best.
func Extract(q Query, p Passage) (list []Fact) {
	const (
		least   = 0.05 // share of the question's words that a fact adds
		equal   = 0.75 // share of the best score
		answers = 2    // facts without a word of the question, but with what is asked for
	)
	keys := q.keys()
	about := setOf(keys, p.File+" "+p.Heading) // the words that every line is about
	all := q.candidates(p, keys, about)
	slices.SortStableFunc(all, func(a, b candidate) int { return cmp.Compare(b.score, a.score) })
	answered := 0
	for have := about; len(all) > 0 && len(list) < maxFacts; {
		next, adds := 0, 0.0
		for i, c := range all {
			share := q.share(keys, c.has&^have)
			if c.answered && answered < answers {
				share += least
			}
			if share > adds && len(list) > 0 {
				next, adds = i, share
			}
		}
		c := all[next]
		all = slices.Delete(all, next, next+1)
		fact := p.fact(q, c.unit, c.score)
		inside := slices.ContainsFunc(list, func(f Fact) bool { return strings.Contains(f.Text, fact.Text) })
		at := slices.IndexFunc(list, func(f Fact) bool { return strings.Contains(fact.Text, f.Text) })
		if len(list) > 0 && adds < least && (c.score < equal*list[0].Score || inside || at >= 0) {
			continue
		}
		if at < 0 {
			list = append(list, fact)
		} else { // the list of an item that is shown
			fact.Score = max(fact.Score, list[at].Score)
			list[at] = fact
		}
		if have |= c.has; c.answered && c.has == 0 {
			answered++
		} else if c.answered {
			answered = answers
		}
	}
	return list
}

// candidates returns the units of a passage that may be facts. Words of the heading and the path, and numbers of the
// question, say what a line is about: a line that has others as well, and what is asked for, is worth more. A line with
// the number of an invoice is worth less where others have words that it lacks.
func (q Query) candidates(p Passage, keys []string, about set) (all []candidate) {
	whole, numbers := about|setOf(keys, p.Text), set(0)
	relevant := q.share(keys, whole) >= 0.5
	for i, k := range keys {
		if isNumber(k) {
			numbers |= 1 << i
		}
	}
	subject := about | numbers
	for _, u := range units(p) {
		has, answered := setOf(keys, u.text), q.Answered(u.text)
		if has == 0 && (p.Table || !answered || !relevant) { // the header is above every row: a row needs a word of its own
			continue
		}
		score := q.share(keys, has&^subject) + q.share(keys, has&subject)/2
		if answered {
			score += 0.3
		}
		if answered && has&^subject != 0 {
			score += 0.3
		}
		if has != 0 { // of two lines with the same words the shorter one is to the point
			score += 0.1 / math.Sqrt(float64(1+len(u.text)/80))
		}
		if has&numbers != 0 && whole&^about&^has != 0 {
			score /= 4
		}
		all = append(all, candidate{u, has, answered, score})
	}
	return all
}

// Chosen returns the facts at lines of a passage, from 1, that somebody chose: at most five.
func Chosen(q Query, p Passage, lines []int) (list []Fact) {
	for _, u := range units(p) {
		if slices.ContainsFunc(lines, func(n int) bool { return n-1 >= u.from && n-1 <= u.to }) && len(list) < maxFacts {
			list = append(list, p.fact(q, u, 1))
		}
	}
	return list
}

// All returns every part of a passage that can be a fact, in order and without a score: for a passage that was found by
// its meaning, the caller compares them with the question.
func All(q Query, p Passage) (list []Fact) {
	for _, u := range units(p) {
		list = append(list, p.fact(q, u, 0))
	}
	return list
}

// AroundFact returns a fact of one line with the line above it and those below, four in all; nil for what says all by
// itself (a row, a key, an item of a list, a title), for a long line, and where that adds nothing. Lines around it end at
// a blank or a long one.
func (p Passage) AroundFact(f Fact) *Around {
	const most, width = 4, 110
	all := strings.Split(strings.TrimRight(p.Text, "\n"), "\n")
	from, to := f.From-p.Line, f.To-p.Line
	if p.Table || from != to || to >= len(all) {
		return nil
	}
	if l := read(all[from])[0]; !p.Code && (l.key || l.item || l.title) {
		return nil
	}
	long := func(line string) bool { return len(line) > width }
	apart := func(n int) bool { return strings.TrimSpace(all[n]) == "" || long(all[n]) }
	first, last := from, to
	if first > 0 && !apart(first-1) {
		first--
	}
	for last+1 < len(all) && last-first+1 < most && !apart(last+1) {
		last++
	}
	if first == from && last == to || slices.ContainsFunc(all[from:to+1], long) { // a fact has more of a long line
		return nil
	}
	if p.Mask != nil { // the whole passage: a part of a secret is not known as one
		count := len(all)
		if all = strings.Split(p.Mask(strings.Join(all, "\n")), "\n"); len(all) != count { // the lines have moved
			return nil
		}
	}
	lines := all[first : last+1]
	for i, l := range lines {
		lines[i] = strings.TrimRight(l, " \t\r")
	}
	return &Around{Text: strings.Join(lines, "\n"), From: p.Line + first, To: p.Line + last}
}

// fact returns a unit of a passage as a fact.
func (p Passage) fact(q Query, u unit, score float64) Fact {
	text, head := u.text, ""
	if p.Mask != nil { // before it is cut: a half of a secret is not known as one
		text = p.Mask(text)
	}
	if p.Table && p.Heading != "" {
		head = content.ClipEnd(p.Heading, maxText/2) + " » "
	}
	return Fact{
		File: p.File, From: p.Line + u.from, To: p.Line + u.to, Score: score, Text: head + q.around(text, maxText-len(head)),
	}
}

// around returns at most some bytes of a text, around most of the question's words.
func (q Query) around(text string, most int) string {
	const mark = "…"
	if len(text) <= most {
		return text
	}
	room, keys := most-2*len(mark), q.keys()
	type place struct {
		from, to int
		has      set
	}
	var places []place
	words.Each(text, func(term string, from, to int) {
		if i, ok := slices.BinarySearch(keys, term); ok {
			places = append(places, place{from, to, 1 << i})
		}
	})
	from, to, best := 0, 0, 0.0
	for i, first := range places {
		var has set
		end := i
		for ; end < len(places) && places[end].to-first.from <= room; end++ {
			has |= places[end].has
		}
		if w := q.weight(keys, has); w > best {
			best, from, to = w, first.from, places[end-1].to
		}
	}
	from = min(max(0, from-max(0, room-(to-from))/3), len(text)-room) // what is said of the words mostly follows them
	to = from + room
	before, after := "", ""
	if from > 0 {
		before = mark
		if blank := strings.IndexByte(text[from:to], ' '); blank >= 0 && blank < room/6 {
			from += blank + 1
		}
	}
	if to < len(text) {
		after = mark
		if blank := strings.LastIndexByte(text[from:to], ' '); blank > (to-from)*5/6 {
			to = from + blank
		}
	}
	return before + strings.ToValidUTF8(text[from:to], "") + after // without halves of characters
}
