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
	"unicode"
	"unicode/utf8"

	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/text/words"
)

const (
	maxFacts = 5   // of one passage
	maxText  = 300 // bytes of a fact
	maxList  = 8   // items of a list that are joined to its heading
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
}

// Passage is what facts are taken from: whole lines of a file.
type Passage struct {
	File    string
	Line    int // the number of its first line
	Text    string
	Heading string // above it; of a table, its header
	Table   bool
	Code    bool
	Alone   bool // each line is a paragraph
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
	Terms map[string]float64 // the terms of its content words, and how rare each is: 1 and more
	Asked Asked
}

// Total returns the weight of all terms. They are added in the order of their weights: in that of a map the last digits
// differ from call to call, and passages that are equal would change places.
func (q Query) Total() (sum float64) {
	for _, w := range slices.Sorted(maps.Values(q.Terms)) {
		sum += w
	}
	return sum
}

// Covered returns the share of a question's terms, by weight, that a text has.
func (q Query) Covered(text string) float64 {
	found := map[string]float64{}
	words.Each(text, func(term string) {
		if w, ok := q.Terms[term]; ok {
			found[term] = w
		}
	})
	sum := Query{Terms: found}.Total()
	if all := q.Total(); all > 0 {
		return sum / all
	}
	return 0
}

// asking are the words by which a folded question shows what it asks for, in English, German, French and Spanish.
var asking = []struct {
	asked Asked
	is    func() *regexp.Regexp
}{
	{Date, content.Pattern(`\b(when|(what|which) (date|day|year)|deadline|due|until|wann|welche[ms] (datum|tag|jahr)|frist` +
		`|fallig|quand|quelle date|echeance|cuando|que fecha|vencimiento)\b`)},
	{Count, content.Pattern(`\b(how many|number of|wie ?viele|anzahl|combien de|nombre de|cuantos|cuantas|numero de)\b`)},
	{Amount, content.Pattern(`\b(how (much|large|big|high|expensive)|price|costs?|amount|total|budget|revenue|salary|fees?` +
		`|sum|paid|wie (viel|hoch|teuer)|preis|kosten|betrag|summe|gehalt|umsatz|combien|prix|cout|montant|salaire|cuanto` +
		`|cuanta|precio|coste|costo|importe|monto|salario)\b`)},
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
	number = content.Pattern(`\d`)
	person = content.Pattern(`\p{Lu}\p{Ll}+([ -]\p{Lu}\p{Ll}+)+|@\w`)
)

// Has reports whether a text has what is asked for; false for Anything.
func (a Asked) Has(text string) bool {
	switch a {
	case Amount:
		return amount().MatchString(text) || number().MatchString(text)
	case Date:
		return date().MatchString(text)
	case Count:
		return number().MatchString(text)
	case Name:
		return person().MatchString(text)
	}
	return false
}

// unit is a part of a passage that can be a fact.
type unit struct {
	from, to int // lines of the passage, from 0
	text     string
}

// Extract returns the facts of a passage, in the order of its lines: at most five, the best ones.
func Extract(q Query, p Passage) []Fact {
	var list []Fact
	about := q.Covered(p.Heading) // the heading is about every line
	for _, u := range units(p) {
		covered := q.Covered(u.text)
		if p.Table && covered == 0 { // the header is above every row: a row needs a word of its own
			continue
		}
		asked := q.Asked.Has(u.text)
		if covered == 0 && (!asked || q.Covered(p.Text)+about < 0.5) {
			continue
		}
		score := covered + about/4
		if asked {
			score += 0.3
		}
		if covered > 0 { // of two lines with the same words the shorter one is to the point
			score += 0.1 / math.Sqrt(float64(1+len(u.text)/80))
		}
		list = append(list, p.fact(u, score))
	}
	best := slices.Clone(list)
	slices.SortStableFunc(best, func(a, b Fact) int { return cmp.Compare(b.Score, a.Score) })
	best = best[:min(len(best), maxFacts)]
	if len(best) > 0 { // a fact with far fewer of the words does not answer the question
		best = slices.DeleteFunc(best, func(f Fact) bool { return f.Score < best[0].Score/2 })
	}
	slices.SortStableFunc(best, func(a, b Fact) int { return cmp.Compare(a.From, b.From) })
	return best
}

// Chosen returns the facts at lines of a passage, from 1, that somebody chose: at most five.
func Chosen(p Passage, lines []int) (list []Fact) {
	for _, u := range units(p) {
		if slices.ContainsFunc(lines, func(n int) bool { return n-1 >= u.from && n-1 <= u.to }) && len(list) < maxFacts {
			list = append(list, p.fact(u, 1))
		}
	}
	return list
}

// All returns every part of a passage that can be a fact, in order and without a score: for a passage that was found by
// its meaning, the caller compares them with the question.
func All(p Passage) (list []Fact) {
	for _, u := range units(p) {
		list = append(list, p.fact(u, 0))
	}
	return list
}

// fact returns a unit of a passage as a fact.
func (p Passage) fact(u unit, score float64) Fact {
	text := u.text
	if p.Table && p.Heading != "" {
		text = p.Heading + " » " + text
	}
	return Fact{File: p.File, From: p.Line + u.from, To: p.Line + u.to, Score: score, Text: content.ClipEnd(text, maxText)}
}

// units cuts a passage into rows, key–value lines, list items with their heading, and sentences.
func units(p Passage) (all []unit) {
	lines := strings.Split(strings.TrimRight(p.Text, "\n"), "\n")
	for n := 0; n < len(lines); n++ {
		line := plain(lines[n])
		switch {
		case line == "":
		case p.Table, p.Code:
			all = append(all, unit{n, n, line})
		case strings.HasSuffix(line, ":"): // the heading of a list
			to, text := n, line
			for m := n + 1; m < len(lines) && m <= n+maxList && isItem(lines[m]); m++ {
				item := plain(lines[m])
				all = append(all, unit{m, m, item})
				to, text = m, text+separator(text)+item
			}
			all = append(all, unit{n, to, text})
			n = to
		case isAlone(lines[n], line):
			all = append(all, unit{n, n, line})
		default:
			end := len(lines)
			if p.Alone {
				end = n + 1
			}
			n = sentences(lines[:end], n, &all)
		}
	}
	return all
}

func separator(text string) string {
	if strings.HasSuffix(text, ":") {
		return " "
	}
	return ", "
}

// plain returns a line without the marks of Markdown and lists at its begin, and with single blanks.
func plain(line string) string {
	line = strings.Join(strings.Fields(line), " ")
	return strings.TrimSpace(strings.TrimLeft(line, "#>*-•· "))
}

// isItem reports whether a line is an item of a list or an indented line.
func isItem(line string) bool {
	bare := strings.TrimSpace(line)
	if bare == "" {
		return false
	}
	return line[0] == ' ' || line[0] == '\t' || strings.ContainsAny(bare[:1], "-*•·+") ||
		bare[0] >= '0' && bare[0] <= '9' && strings.ContainsAny(bare[:min(len(bare), 4)], ".)")
}

// keyValue matches "Total Budget: $450,000", "name = value" and "| a | b |".
var keyValue = content.Pattern(`^[\p{L}\d][^.!?]{0,60}?(: |:$| = |\t)|^\||  +\S.*  +\S`)

// isAlone reports whether a line is a unit by itself: a key with its value, a heading, an item of a list.
func isAlone(raw, line string) bool {
	return keyValue().MatchString(line) || strings.HasPrefix(strings.TrimSpace(raw), "#") || isItem(raw)
}

// sentences takes the sentences of a paragraph that begins at a line, and returns its last line.
func sentences(lines []string, n int, all *[]unit) int {
	from, text := n, ""
	last := n
	for m := n; m < len(lines); m++ {
		line := plain(lines[m])
		if line == "" || m > n && isAlone(lines[m], line) {
			break
		}
		last = m
		for line != "" {
			end := sentenceEnd(line)
			if text == "" {
				from = m
			}
			text = strings.TrimSpace(text + " " + line[:end])
			if end < len(line) || endsSentence(line) || len(text) > maxText {
				*all = append(*all, unit{from, m, text})
				text = ""
			}
			line = strings.TrimSpace(line[end:])
		}
	}
	if text != "" {
		*all = append(*all, unit{from, last, text})
	}
	return last
}

// sentenceEnd returns where the first sentence of a line ends, which may be the end of the line.
func sentenceEnd(line string) int {
	for i, r := range line {
		if !strings.ContainsRune(".!?。！？", r) {
			continue
		}
		after := line[i+utf8.RuneLen(r):]
		if r >= 0x3000 {
			return i + utf8.RuneLen(r)
		}
		next, _ := utf8.DecodeRuneInString(strings.TrimLeft(after, " "))
		word := line[strings.LastIndexByte(line[:i], ' ')+1 : i]
		// "Dr. Weber" and "e.g. this" are no ends; a number such as "3." at a line's begin is none either
		if strings.HasPrefix(after, " ") && len(word) > 2 && (unicode.IsUpper(next) || unicode.IsDigit(next)) {
			return i + 1
		}
	}
	return len(line)
}

func endsSentence(line string) bool { return strings.ContainsAny(line[len(line)-1:], ".!?") }
