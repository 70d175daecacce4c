package answerer

import (
	"fmt"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/mcp-funnel/mcp-funnel/text/content"
)

const (
	maxUngrounded = 20
	maxClaim      = 256       // bytes of a quoted name, an identifier or a number
	maxSearched   = 256 << 20 // bytes that are searched for names; later names are not checked

	// monthNames and numerals are in English, German, French and Spanish, in the order of their numbers.
	monthNames = " jan january januar janvier jänner ene enero | feb february februar fév février febrero | mar march " +
		"mars märz marzo | apr april avr avril abr abril | may mai mayo | jun june juni juin junio | jul july juli juil " +
		"juillet julio | aug august août ago agosto | sep sept september septembre " +
		"septiembre | oct okt october oktober octobre " +
		"octubre | nov november novembre noviembre | dec dez déc dic december dezember décembre diciembre "
	numerals = " one ein eine un une uno una | two zwei deux dos | three drei trois tres | four vier quatre cuatro | " +
		"five fünf cinq cinco | six sechs seis | seven sieben sept siete | eight acht huit ocho | nine neun neuf nueve | " +
		"ten zehn dix diez | eleven elf onze | twelve zwölf douze doce "

	quotes = "\"“„«`'"
	file   = `[\pL\pN_./\\-]*[\pL\pN_-]\.([A-Z][A-Z0-9]{1,4}|[a-z][a-z0-9]{0,4})\b`
	money  = `[$€£¥]|(?i:usd|eur|gbp|chf)\b`
)

var (
	yearFirst = content.Pattern(`^(1[5-9]\d\d|20\d\d)(?:[-/.](\d\d?)[-/.](\d\d?)|-(\d\d)\b)`)
	yearLast  = content.Pattern(`^(\d\d?)([-/.])(\d\d?)[-/.](\d{4}|\d\d)\b`)
	monthDay  = content.Pattern(`^(\pL{3,10})\.? (\d\d?)(?:st|nd|rd|th)?\b(?:,? (\d{4}))?`)
	dayMonth  = content.Pattern(`^(?:(\d\d?)(?:st|nd|rd|th|er|\.)?[ -](?:of |de )?)?(\pL{3,10})\b\.?` +
		`(?:,?[ -](?:del? )?(\d{4}))?`)
	amount = content.Pattern(`^(?:(` + money + `) ?)?(\d\d?(?::\d\d)+|` +
		`\d{1,3}(?:[ \x{a0}\x{202f}'’]\d{3})+(?:[.,]\d\d?)?\b|\d+(?:[.,]\d+)*)(?:([kK])\b|(M)\b|` +
		` ?(Mio\b\.?|(?i:million|mill[oó]n)(?:en|es|s)?\b))?` +
		`(?:(?:st|nd|rd|th)\b|[ \x{a0}]?(%|(?i:percent|prozent|bytes|kb|mb|gb|kg|km|hours|days|pages|euro)\b|` +
		money + `))?`)
	thousands = content.Pattern(`^[1-9]\d{0,2}(?:(?:\.\d{3})+|(?:,\d{3})+)$`)
	decimal   = content.Pattern(`^(?:\d+|\d{1,3}(?:,\d{3})+)\.(\d+)$|^(?:\d+|\d{1,3}(?:\.\d{3})+),(\d+)$`)
	named     = content.Pattern(`^(?:https?://[^\s<>"')\]]+|[\w.%+-]+@[\w-]+(?:\.[\w-]+)+|(` +
		file + `)(?::(\d+)(?:-(\d+))?)?)`)
	files  = content.Pattern(file)
	word   = content.Pattern(`^[\pL\pN_]+(?:-[\pL\pN_]+)*`)
	code   = content.Pattern(`[\pL\pN]_+[\pL\pN]|\pL-?\d|\d\pL|\p{Ll}\p{Lu}`) // in an identifier
	listed = content.Pattern(`^[ \t>*#-]*\d\d?[.)]\**(?:[ \t]|$)`)
	quote  = content.Pattern("^(?:\"([^\"\n]+)\"|“([^”\n]+)”|„([^“”\n]+)[“”]|«([^»\n]+)»|`([^`\n]+)`|" +
		`'([^'\n]+)'\B)`)
	stamp     = content.Pattern(`(\d)T(\d\d:)`)
	countable = []func() *regexp.Regexp{ // lines, list items and sources
		content.Pattern(`(?m)^.*\S`),
		content.Pattern(`(?m)^(?:[ \t]+|[-*•] |\d+[.)] ).*\S`), content.Pattern(`(?m)^From .*:`),
	}
	units  = strings.NewReplacer("usd", "$", "euro", "€", "eur", "€", "gbp", "£", "percent", "%", "prozent", "%")
	points = strings.NewReplacer(".", "", ",", "")
	blanks = strings.NewReplacer(" ", "", "\u00a0", "", "\u202f", "", "'", "", "’", "")
)

// evidence is what tool results and the question say.
type evidence struct {
	values   map[string]bool // numbers, dates such as 2026-03-01, 2026-03 and 03-01, and times
	counts   map[string]bool // of lines, list items, sources and files of results
	sums     map[string]bool // of all amounts of a unit in a result: the sum and the unit, and the sum alone
	words    string          // all words, in lower case
	searched int
}

// ungrounded returns the numbers, dates, quoted names, identifiers, addresses and file names of an answer that are not
// in the results or the question, as written. It stops after one more than maxUngrounded, which tells the caller that
// there are more. Numbers may also be counts of lines or files of a result, or the sum of all amounts of one currency or
// unit in it. The sign of a number is ignored.
func ungrounded(answer, question string, results []string) (claims []string) {
	all := strings.Join(results, "\n")
	e := evidence{map[string]bool{}, map[string]bool{}, map[string]bool{}, normal(all + "\n" + question), 0}
	e.read(question)
	e.count(all)
	for _, r := range results {
		e.count(r)
		for unit, sum := range e.read(r) {
			for _, u := range []string{"", ".", unit} {
				e.sums[sum.RatString()+u] = true
			}
		}
	}
	answer = stamp().ReplaceAllString(answer, "$1 $2")
	for i, size := 0, 0; i < len(answer) && len(claims) <= maxUngrounded; i += size {
		text := answer[i:min(len(answer), i+maxClaim)]
		size = 1
		if i == 0 || answer[i-1] == '\n' {
			if _, n := date(text); n == 0 {
				size = max(1, len(listed().FindString(text)))
			}
		}
		if size == 1 && starts(answer, i) {
			n, ok := e.check(text)
			size = n
			if c := strings.TrimSpace(text[:size]); !ok && !slices.Contains(claims, c) {
				claims = append(claims, c)
			}
		}
	}
	return claims
}

// check returns the length of the claim or word at the start of a text, and whether it is grounded.
func (e *evidence) check(text string) (size int, ok bool) {
	if c, _ := utf8.DecodeRuneInString(text); strings.ContainsRune(quotes, c) {
		m := quote().FindStringSubmatch(text)
		if m == nil {
			return 1, true
		}
		inner := strings.Join(m[1:], "")
		if _, n, _ := quantity(inner); n == len(inner) {
			return 1, true // a number in quotes is compared by value
		}
		return len(m[0]), e.has(inner)
	}
	if m := named().FindStringSubmatch(text); m != nil && (m[1] == "" || len(m[1]) > 3) {
		uncited := slices.ContainsFunc(strings.Fields(m[3]+" "+m[4]), func(n string) bool { return !e.values[n] })
		return len(m[0]), e.has(m[0]) || m[1] != "" && !uncited && e.has(m[1])
	}
	w := word().FindString(text)
	keys, n, unit := quantity(text)
	switch first, _, more := strings.Cut(w, "-"); {
	case n > 0 && (n >= len(w) || !code().MatchString(w) || w[n] == '-'):
		article := keys[0] == "1" && text[0] > '9' // one, un, ein
		return n, article || slices.ContainsFunc(keys, func(k string) bool {
			return e.values[k] || unit == "" && e.counts[k] || e.sums[k+unit]
		})
	case more && !code().MatchString(first) && strings.ToLower(first) == first: // top-5
		w = first
	}
	return max(1, len(w)), !code().MatchString(w) || e.has(w)
}

// has returns whether the words of a name follow each other in the evidence.
func (e *evidence) has(name string) bool {
	e.searched += len(e.words)
	return e.searched > maxSearched || strings.Contains(e.words, normal(name))
}

// normal returns the words of a text in lower case, with a blank around each.
func normal(text string) string {
	split := func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_' }
	return " " + strings.Join(strings.FieldsFunc(strings.ToLower(text), split), " ") + " "
}

// starts returns whether a claim or word may start at a position.
func starts(text string, i int) bool {
	before, _ := utf8.DecodeLastRuneInString(text[:i])
	c, _ := utf8.DecodeRuneInString(text[i:])
	inside := unicode.IsLetter(before) || unicode.IsDigit(before)
	return !inside && (unicode.IsLetter(c) || unicode.IsDigit(c) || strings.ContainsRune("$€£¥"+quotes, c))
}

// read adds the values of a text, and returns the sum of each unit that has at least two amounts.
func (e *evidence) read(text string) map[string]*big.Rat {
	first, sums := map[string]*big.Rat{}, map[string]*big.Rat{}
	text = stamp().ReplaceAllString(text, "$1 $2")
	for i, size := 0, 0; i < len(text); i += size {
		_, size = utf8.DecodeRuneInString(text[i:])
		part := text[i:min(len(text), i+maxClaim)]
		inCode := i > 0 && text[i-1] > '9' && len(part) > 2 && strings.Trim(part[:3], "0123456789") == "" // INV2026
		if !inCode && !starts(text, i) {
			continue
		}
		keys, n, unit := quantity(part)
		for _, k := range keys {
			e.values[k] = true
			if len(k) >= 7 && k[4] == '-' { // a date
				e.values[k[:4]], e.values[k[:7]], e.values[k[5:]] = true, true, true
			}
			e.values[k[:max(0, strings.LastIndex(k, ":"))]] = true // a time without seconds
		}
		if a, ok := new(big.Rat).SetString(append(keys, "")[0]); ok && unit != "" && unit != "." {
			if f := first[unit]; f != nil {
				sums[unit] = a.Add(a, f)
			}
			first[unit] = a
		} else if blank := strings.IndexAny(part[:n], " \u00a0\u202f"); blank > 0 {
			n = blank // 3 450 may be two numbers
		}
		size = max(size, n)
	}
	return sums
}

// count adds the numbers of lines, list items, sources, and files of each type.
func (e *evidence) count(text string) {
	for _, kind := range countable {
		e.counts[strconv.Itoa(len(kind().FindAllStringIndex(text, -1)))] = true
	}
	seen, types := map[string]bool{}, map[string]int{}
	for _, m := range files().FindAllStringSubmatch(text, -1) {
		if !seen[m[0]] {
			seen[m[0]] = true
			types[m[1]]++
		}
	}
	e.counts[strconv.Itoa(len(seen))] = true
	for _, n := range types {
		e.counts[strconv.Itoa(n)] = true
	}
}

// quantity reads the number, date or time at the start of a text: its possible values as keys, the likely one first,
// and its length, which is 0 if there is none. unit is "" of an integer without a unit, and "." of another number.
func quantity(s string) (keys []string, size int, unit string) {
	w := s[:len(s)-len(strings.TrimLeftFunc(s, unicode.IsLetter))] // the letters at its start
	if n := ordinal(numerals, w); n > 0 && ordinal(monthNames, w) == 0 {
		return []string{strconv.Itoa(n)}, len(w), ""
	}
	if w != "" && ordinal(monthNames, w) == 0 && !strings.Contains("usd eur gbp chf", strings.ToLower(w)) {
		return nil, 0, ""
	}
	s = s[:min(len(s), 48)]
	if keys, size = date(s); size > 0 {
		return keys, size, "."
	}
	m := amount().FindStringSubmatch(s)
	if m == nil {
		return nil, 0, ""
	}
	text := blanks.Replace(m[2])
	d, group := decimal().FindStringSubmatch(text), thousands().MatchString(text)
	if d == nil && !group && strings.Contains(text, ",") { // 1,2,3
		text, _, _ = strings.Cut(text, ",")
		return []string{text}, strings.Index(s, ","), ""
	}
	if group {
		keys = append(keys, points.Replace(text))
	}
	if d != nil && !(group && (d[2] != "" || d[1] == "000")) {
		part := d[1] + d[2]
		keys = append(keys, points.Replace(text[:len(text)-len(part)])+"."+part)
	} else if !group {
		keys = append(keys, text)
	}
	unit = units.Replace(strings.ToLower(m[1] + m[6]))
	if unit == "" && (m[3]+m[4]+m[5] != "" || keys[0] != points.Replace(text)) {
		unit = "."
	}
	for i, k := range keys {
		n, ok := new(big.Rat).SetString(k)
		if !ok || len(k) > 40 || strings.Contains(k, ":") { // a version, a time or a long code
			continue
		}
		if m[3] != "" {
			n.Mul(n, big.NewRat(1000, 1))
		} else if m[4]+m[5] != "" {
			n.Mul(n, big.NewRat(1e6, 1))
		}
		if keys[i] = n.RatString(); unit == "%" {
			keys = append(keys, n.Mul(n, big.NewRat(1, 100)).RatString())
		}
	}
	if m[3]+m[4]+m[5] == "" {
		keys = append(keys, text) // 007
	}
	return keys, len(m[0]), unit
}

// date reads the date at the start of a text; an ambiguous one has two keys.
func date(s string) (keys []string, size int) {
	add := func(match []string, year, month, day string) {
		m, err := strconv.Atoi(month)
		if err != nil {
			m = ordinal(monthNames, month)
		}
		d, _ := strconv.Atoi(day)
		if len(year) == 2 {
			year = "20" + year
		}
		if key := strings.Trim(fmt.Sprintf("%s-%02d-%02d", year, m, d), "-"); m >= 1 && m <= 12 && d <= 31 {
			keys, size = append(keys, strings.TrimSuffix(key, "-00")), len(match[0])
		}
	}
	if m := yearFirst().FindStringSubmatch(s); m != nil {
		add(m, m[1], m[2]+m[4], m[3])
	} else if m := yearLast().FindStringSubmatch(s); m != nil {
		add(m, m[4], m[3], m[1])
		if m[2] == "/" {
			add(m, m[4], m[1], m[3])
		}
	} else if m := monthDay().FindStringSubmatch(s); m != nil && ordinal(monthNames, m[1]) > 0 {
		add(m, m[3], m[1], m[2])
	} else if m := dayMonth().FindStringSubmatch(s); m != nil && m[1]+m[3] != "" {
		add(m, m[3], m[2], m[1])
	}
	return keys, size
}

// ordinal returns the position of a word in a table, from 1, or 0. The word may have a capital.
func ordinal(table, word string) int {
	lower := strings.ToLower(word)
	i := strings.Index(table, " "+lower+" ")
	if i < 0 || word == "" || word[1:] != lower[1:] {
		return 0
	}
	return 1 + strings.Count(table[:i], "|")
}
