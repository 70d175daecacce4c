package intent

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// intentFields are the nine fields of an intent.
var intentFields = []field{
	{"detectedLanguage", `a two-letter code of ISO 639-1 in lower case, such as "en"`, (*checker).language},
	{"normalizedRequest", someText, (*checker).text},
	{"intent", someText, (*checker).paragraph},
	{"contextItems", "a list, empty unless the message is very long", (*checker).list},
	{"primaryGoal", someText, (*checker).text},
	dataType, expectedFormats, quality, successCriteria,
}

// itemFields are the fields of an element of contextItems that is not just a text.
var itemFields = []field{
	{"title", "a text", (*checker).anyText},
	{"source", "obs:ID or a path", (*checker).text},
	{"lines", `lines of the source, such as "10-250"`, (*checker).lines},
	{"content", someText, (*checker).text},
}

// intent checks the document that says what a message asks for.
func (c *checker) intent(o object) {
	c.fields("", o, intentFields)
	request, _ := textOf(o["normalizedRequest"])
	core, _ := textOf(o["intent"])
	items := c.items(o["contextItems"], core)
	c.share(o["contextItems"], items)
	if core != "" {
		c.names(request, core, items)
	}
	if code, ok := textOf(o["detectedLanguage"]); ok {
		c.sameLanguage(code, "normalizedRequest", request)
		c.sameLanguage(code, "intent", core)
	}
	if all, _ := listOf(o["contextItems"]); len(all) == 0 {
		c.complete(request)
	}
}

func (c *checker) language(f field, at string, raw jsontext.Value) {
	if s, ok := textOf(raw); !ok || !isLanguage(s) {
		c.wrong(f, at, raw)
	}
}

// maxIntent is the length in characters from which an intent is no short paragraph.
const maxIntent = 1500

func (c *checker) paragraph(f field, at string, raw jsontext.Value) {
	c.text(f, at, raw)
	s, _ := textOf(raw)
	if n := len(paragraphs().Split(strings.TrimSpace(s), -1)); n > 1 {
		c.fault("%s: %d paragraphs; write one short paragraph", at, n)
	}
	if n := utf8.RuneCountInString(s); n > maxIntent {
		c.note("%s: %d characters; one short paragraph is wanted", at, n)
	}
}

var paragraphs = content.Pattern(`\n[ \t\r]*\n\s*`)

func (c *checker) list(f field, at string, raw jsontext.Value) {
	if raw.Kind() != '[' {
		c.wrong(f, at, raw)
	}
}

// lineRange has the forms that the tool slice takes.
var lineRange = content.Pattern(`^(\d{1,12})(?:-(\d{1,12})?)?$|^-\d{1,12}$`)

func (c *checker) lines(f field, at string, raw jsontext.Value) {
	if first, last, ok := linesOf(raw); !ok || first > last {
		c.wrong(f, at, raw)
	}
}

// linesOf parses a range of lines that are counted from 1; a number is one line, and -9 (the last nine) counts as all.
func linesOf(raw jsontext.Value) (first, last int64, ok bool) {
	s, ok := textOf(raw)
	if !ok {
		s = string(raw)
	}
	m := lineRange().FindStringSubmatch(s)
	if m == nil {
		return 0, 0, false
	}
	const end = 1 << 62
	if m[1] == "" {
		return 1, end, true
	}
	first, _ = strconv.ParseInt(m[1], 10, 64)
	switch {
	case m[2] != "":
		last, _ = strconv.ParseInt(m[2], 10, 64)
	case strings.HasSuffix(s, "-"):
		last = end
	default:
		last = first
	}
	return first, last, first > 0
}

// contextItem is one element of contextItems: data that was copied, or the lines of a source.
type contextItem struct {
	copied      string // "" if it names a source
	first, last int64  // lines of the source; 0: not given
}

// items checks the elements of contextItems. Data no larger than the intent itself must not be kept apart.
func (c *checker) items(raw jsontext.Value, core string) (items []contextItem) {
	all, _ := listOf(raw)
	for i, raw := range all {
		at := item("contextItems", i)
		if s, ok := textOf(raw); ok && len(s) < 2*maxShown && handle().MatchString(s) {
			c.fault(`%s: %s is not {"source": "obs:ID", "lines": "10-250"}; write a name so`, at, shown(raw))
			continue
		} else if ok && strings.TrimSpace(s) != "" {
			items = append(items, contextItem{copied: s})
			c.bulk(at, s, core)
			continue
		}
		o, ok := objectOf(raw)
		if !ok {
			c.fault(`%s: %s is not {"source": "obs:ID", "lines": "10-250"}, {"content": …} or a text`, at, shown(raw))
			continue
		}
		c.optional(at+".", o, itemFields)
		c.unknown(at+".", o, itemFields, true)
		source, _ := textOf(o["source"])
		copied, _ := textOf(o["content"])
		switch {
		case source == "" && copied == "":
			c.fault(`%s: neither source nor content; name the data by {"source": "obs:ID", "lines": "10-250"}`, at)
			continue
		case source == "":
			c.bulk(at, copied, core)
		default:
			c.exists(at+".source", source)
		}
		first, last, _ := linesOf(o["lines"])
		items = append(items, contextItem{copied, first, last})
	}
	return items
}

func (c *checker) bulk(at, copied, core string) {
	if n, most := c.Tokens([]byte(copied)), c.Tokens([]byte(core)); n <= most {
		c.fault("%s: %d tokens, and the intent has %d; only data much larger than the intent stands apart", at, n, most)
	}
}

// share checks that nothing was taken out of a message below a tenth of the window.
func (c *checker) share(raw jsontext.Value, items []contextItem) {
	all, _ := listOf(raw)
	if len(all) == 0 {
		return
	}
	if c.Window <= 0 {
		c.note("contextItems not checked: the window is unknown")
		return
	}
	whole, what := c.Message, "the message has"
	if whole == nil {
		what = "all of it has"
		if len(items) < len(all) { // a fault says why
			return
		}
		for _, it := range items {
			if it.copied == "" {
				c.note("contextItems not checked: the message is unknown")
				return
			}
			whole = append(whole, it.copied...)
		}
	}
	if n := c.Tokens(whole); !Bulky(n, c.Window) {
		c.fault("contextItems: %s, but %s %d tokens, under 10 %% of the window of %d; leave the list empty",
			content.Plural(int64(len(all)), "item", "items"), what, n, c.Window)
	}
}

// Bulky reports whether a message of this many tokens is so long that its data is kept apart from its intent: from a
// tenth of the window on.
func Bulky(tokens, window int64) bool { return window > 0 && tokens > (window-1)/10 }

// maxSearched is how many bytes of a message are searched for names: some seconds for a message of any length.
const maxSearched = 4 << 20

// names checks that the intent has every URL and file name of the request and of the message. Names that the message
// has only in data of contextItems are exempt.
func (c *checker) names(request, core string, items []contextItem) {
	has, requested := nameSet{}, namesOf(request)
	has.add(namesOf(core))
	c.lacks(has.missing(requested), "normalizedRequest", "name them in the intent")
	message := c.Message
	if len(message) > maxSearched {
		c.note("intent: only the first %d MiB of the message were searched for URLs and file names", maxSearched>>20)
		message = message[:maxSearched]
	}
	for _, it := range items {
		has.add(namesOf(it.copied))
	}
	has.add(requested) // reported above
	c.lacks(has.missing(namesOf(string(without(message, items)))), "the message",
		"name them in the intent, or their lines in contextItems if the message is very long")
}

// lacks reports names that are missing from the intent.
func (c *checker) lacks(names []string, of, advice string) {
	const most = 3
	if len(names) == 1 {
		c.fault("intent: %s of %s is missing; name it in the intent", shownName(names[0]), of)
	} else if len(names) > 1 {
		all := make([]string, min(len(names), most))
		for i := range all {
			all[i] = shownName(names[i])
		}
		list := strings.Join(all, ", ")
		if len(names) > most {
			list += fmt.Sprintf(" and %d more", len(names)-most)
		}
		c.fault("intent: %d URLs and file names of %s are missing: %s; %s", len(names), of, list, advice)
	}
}

func shownName(name string) string { return content.VisibleLine(content.ClipEnd(name, 200)) }

// without returns a message without the lines that context items name.
func without(message []byte, items []contextItem) (kept []byte) {
	ranges := slices.SortedFunc(slices.Values(items), func(a, b contextItem) int { return cmp.Compare(a.first, b.first) })
	n, apart := int64(0), int64(0) // apart: the last line of the ranges that begin at or before line n
	for line := range bytes.Lines(message) {
		for n++; len(ranges) > 0 && ranges[0].first <= n; ranges = ranges[1:] {
			apart = max(apart, ranges[0].last)
		}
		if n > apart {
			kept = append(kept, line...)
		}
	}
	return kept
}

// complete notes a request that is much shorter than the message it restates, of which nothing was taken out.
func (c *checker) complete(request string) {
	whole, got := utf8.RuneCount(bytes.TrimSpace(c.Message)), utf8.RuneCountInString(request)
	if whole >= 400 && got*5 < whole*2 {
		c.note("normalizedRequest: %d characters for a message of %d; it must leave nothing out", got, whole)
	}
}

func (c *checker) exists(at, name string) {
	switch {
	case c.Known == nil:
		c.note("%s not checked: the sources are unknown", at)
	case !c.Known(name):
		c.fault("%s: %q was not found: no such observation, and no such file below a root", at, content.ClipEnd(name, maxShown))
	}
}
