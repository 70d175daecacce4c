package continuation

import (
	"bytes"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/mcp-funnel/mcp-funnel/text/content"
)

const (
	// overlapMin is the least number of characters of an overlap that is no restart of an element.
	overlapMin = 12
	// restartWithin is the number of characters at the beginning of a part in which the restart text may begin.
	restartWithin = 200
	// maxCompared is the size in bytes up to which a text is searched for overlaps.
	maxCompared = 2 << 20
)

// reading is one way to join a part: the part replaces what follows offset at.
type reading struct {
	at     int64
	how    string
	part   []byte
	inside bool // the part begins inside of a string
	joined []byte
	parser *parser

	matched int  // units that the part repeats
	weak    bool // they are few, and occur in other places too
}

// join joins the body of a part, or says why it is refused.
func (d *Document) join(part []byte) Result {
	if len(bytes.TrimSpace(part)) == 0 {
		return d.refuse("the part is empty")
	}
	if len(bytes.TrimSpace(d.text)) == 0 {
		if reason := d.seam(part); reason != "" {
			return d.refuse(reason)
		}
		d.plain = d.options.isPlain(part)
		return d.replaceText(part, "first part")
	}
	if d.plain {
		return d.joinPlain(part)
	}
	switch s := d.State(); {
	case s.faulty():
		return Result{Verdict: Stop, State: s, Reason: d.parser.fault()}
	case s == Whole && d.noSections():
		return d.joinFresh(part)
	case s == Whole && (!d.lines() || d.parser.outline.Found):
		return d.refuse("the document is whole already")
	}
	part, before := d.withoutPreface(part)
	r := d.joinRest(part)
	if r.Join != "" && r.Dropped == "" {
		r.Dropped = before
	}
	return r
}

// withoutPreface returns a part from the restart text on, if that begins within the first restartWithin characters, or
// without a line of words before the rest of the document. before is what is left out.
func (d *joined) withoutPreface(part []byte) (body []byte, before string) {
	from, far := bytes.TrimLeft(part, " \t\r\n"), nonBlank(d.text[d.anchor.at:d.anchor.end]) >= restartMin
	for i := range string(part[:searched(part)]) {
		if !d.repeats(d.anchor.at, d.anchor.inside, part[i:]) {
			continue
		}
		if before = strings.TrimSpace(string(part[:i])); before == "" || far && isWords(before) {
			return bytes.TrimLeft(part[i:], " \t\r\n"), before
		}
		break
	}
	if line, rest, _ := bytes.Cut(from, []byte{'\n'}); len(bytes.TrimSpace(rest)) > 0 && announces(line) {
		return bytes.TrimLeft(rest, "\r\n"), string(bytes.TrimSpace(line))
	}
	return part, ""
}

var (
	literals   = content.Pattern(`\b(?:true|false|null)\b`)
	inBrackets = content.Pattern(`\[\s*\pL[^\[\]]*\]`)
	hasWords   = content.Pattern(`^[^"{}\[\]]*\pL[^"{}\[\]]*$`)
	colonAtEnd = content.Pattern(`^[^"{}\[\]\n]{0,200}:\s*(?:\n|$)`)
	remark     = content.Pattern(`^\s*(?:[\[(][^\])"\n]{1,100}[\])]|[^"{}\[\]\n]{0,200}:)(?:\s|$)`)
)

// isWords reports whether a text is words to the reader rather than a part of JSON: letters, without quotes and braces,
// and with brackets only around words.
func isWords(text string) bool {
	text = literals().ReplaceAllString(text, "")
	return hasWords().MatchString(inBrackets().ReplaceAllString(text, "w"))
}

// announces reports whether a text begins with a line such as "Sure, here is the rest:".
func announces(text []byte) bool { return opener().Match(text) && colonAtEnd().Match(text) }

// joinRest joins a part without words before it.
func (d *Document) joinRest(part []byte) Result {
	if quoted, ok := bytes.CutPrefix(bytes.TrimLeft(part, " \t\r\n"), []byte{'"'}); ok && d.anchor.inside &&
		d.repeats(d.anchor.at, true, quoted) {
		part = quoted // the writer opens the string again
	}
	if at := d.anchor.at; d.repeats(at, d.anchor.inside, part) {
		return d.applyWhole(d.reading(at, "restart text", part, d.anchor.inside))
	}
	readings, unclear := d.readings(part)
	switch {
	case d.beginsInEscape(part):
		return d.refuse("it begins inside of an escape such as \\n: begin before the escape")
	case unclear:
		return d.refuse("it may or may not repeat the last characters, which are too few, or occur too often, to tell")
	case len(readings) == 1:
		r := readings[0]
		if reason := d.doubts().doubt(r); reason != "" && r.at > 0 {
			return d.refuse(reason)
		}
		return d.apply(r)
	case len(readings) > 1:
		return d.refuse(fmt.Sprintf("the part fits in %d ways (%s, %s)",
			len(readings), readings[0].place(), readings[1].place()))
	}
	if merged, dropped, reason, ok := d.merge(part); ok && reason != "" {
		return d.refuse(reason)
	} else if ok {
		r := d.replaceText(merged, "sections merged by id")
		r.Dropped = dropped
		return r
	}
	plain := d.reading(int64(len(d.text)), "plain continuation", part, false)
	if reason := d.doubts().notPlain(part, plain); reason != "" {
		return d.refuse(reason)
	}
	return d.apply(plain)
}

// after returns the rest of a part, behind what it repeats of the text.
func (r *reading) after() []byte {
	c := cursor{text: r.part, within: r.inside}
	for range r.matched {
		c.next()
	}
	return r.part[c.at:]
}

// replaceText replaces the whole text by another one, which is parsed from its beginning.
func (d *Document) replaceText(text []byte, how string) Result {
	if d.plain {
		d.text = text
		d.history.grew(int64(len(text)))
		return Result{Verdict: Unknown, State: NotJSON, Join: how}
	}
	d.near = newParser()
	d.accept(text)
	d.history.grew(int64(len(text)))
	return d.result(how)
}

// apply replaces the text by the joined text of a reading.
func (d *Document) apply(r *reading) Result {
	d.near = d.parserAt(r.at)
	d.accept(r.joined)
	d.history.grew(int64(len(r.joined)))
	return d.result(r.how)
}

// applyWhole is apply for a reading that was not parsed: if it is broken, the document stays as it was.
func (d *Document) applyWhole(r *reading) Result {
	before := *d
	result := d.apply(r)
	if !result.State.faulty() {
		return result
	}
	*d = before
	return d.refuse("the part goes on from the restart text, but is broken: " + result.Reason)
}

// beginsInEscape reports whether a part repeats the end of the text from inside of an escape on.
func (d *joined) beginsInEscape(part []byte) bool {
	const least = 4 // bytes that are repeated
	part = bytes.TrimLeft(part, " \t\r\n")
	from := max(0, len(d.text)-min(2*len(part), maxCompared))
	for at := from + backslashes(d.text[:from])%2; at < len(d.text); {
		i := bytes.IndexByte(d.text[at:], '\\')
		if i < 0 {
			return false
		}
		at += i
		_, size := character(d.text[at:])
		for next := at + max(size, 2); at+1 < min(next, len(d.text)); {
			at++
			if end := d.text[at:]; len(end) >= least {
				if _, ok := beginsWith(part, end, true); ok {
					return true
				}
			}
		}
		at++
	}
	return false
}

func (d *joined) refuse(reason string) Result {
	return Result{Verdict: Refused, State: d.State(), Reason: reason}
}

// noSections reports whether the document is whole but its list of sections is empty.
func (d *joined) noSections() bool {
	return d.parser.outline.Found && d.parser.outline.Sections == 0
}

// lines reports whether the text is NDJSON: a value may follow on the next line.
func (d *joined) lines() bool {
	f := &d.parser.containers[0]
	return f.Count > 1 || bytes.HasSuffix(d.text, []byte("}\n"))
}

// repeats reports whether the part begins with the text from an offset on. inside says that the offset is inside of a
// string.
func (d *joined) repeats(at int64, inside bool, part []byte) bool {
	_, ok := d.repeated(at, inside, part)
	return ok
}

// repeated is repeats, and returns how many units are repeated.
func (d *joined) repeated(at int64, inside bool, part []byte) (matched int, ok bool) {
	if inside {
		part = bytes.TrimLeft(part, " \t\r\n")
	}
	matched, ok = beginsWith(part, d.text[at:max(at, d.anchor.end)], inside)
	return matched, ok && matched > 0
}

// reading joins a part at an offset and reads the result.
func (d *joined) reading(at int64, how string, part []byte, inside bool) *reading {
	if inside {
		part = bytes.TrimLeft(part, " \t\r\n")
	}
	r := &reading{at: at, how: how, part: part, inside: inside}
	r.joined = append(append(make([]byte, 0, int(at)+len(part)), d.text[:at]...), part...)
	if how == "restart text" {
		return r // apply reads it
	}
	r.parser = d.parserAt(at)
	r.parser.read(r.joined, int64(len(r.joined)))
	r.joined = r.parser.dropLineEnd(r.joined)
	return r
}

// fault returns where and why the joined text is broken; "" if it is not.
func (r *reading) fault() string {
	if r.parser == nil || !r.parser.state().faulty() {
		return ""
	}
	return r.parser.fault()
}

// place names where a reading goes on.
func (r *reading) place() string {
	return fmt.Sprintf("%s at byte %d", r.how, r.at)
}

// opener matches what begins an explanation, a comment or an omission rather than the rest of a text.
var opener = content.Pattern(`^\s*(?:…|\.\.\.|//|/\*|<!--|#|\*\*|[\[(]?(?i:continu|here|sure|certainly|okay|ok\b|` +
	`of course|i |i'|let me|as requested|below|the rest|rest of|note|sorry|understood|got it))`)

// notPlain returns why a part cannot simply be appended; "" if it can.
func (d doubts) notPlain(part []byte, r *reading) string {
	if reason := d.seam(part); reason != "" {
		return reason
	}
	const hint = "it does not begin with text that is there already"
	if fault := r.fault(); fault != "" {
		return hint + ", and simply appended it is broken: " + fault
	}
	if r.doubles(d.parser) {
		return "simply appended it would repeat a name or an id"
	}
	r.inside = d.insideString()
	if reason := d.doubt(r); reason != "" {
		return reason
	}
	if d.headAgain(part, r.inside, headMin) || d.beginsLike(part, r.at) {
		return "it begins with text that is there already, and does not go on to its end"
	}
	if d.wordChanged(part) {
		return "it begins with the last words of the text, but for one"
	}
	switch inside := d.parser.scan.Inside(); inside {
	case "number", "literal":
		return "the text ends inside of " + content.Article(inside) + ", which may or may not be complete"
	case "key":
		if r.parser.scan.Inside() == "key" && len(r.parser.containers) == len(d.parser.containers) {
			return "it does not complete the name at the end"
		}
		return d.notPlainString(part)
	case "string":
		return d.notPlainString(part)
	}
	return d.notPlainBetween(part)
}

// notPlainString is notPlain for a text that ends inside of a string.
func (d doubts) notPlainString(part []byte) string {
	if opener().Match(part) {
		return "it begins like an explanation, not like the rest of the string"
	}
	if isBlank(part[:min(1, len(part))]) && isBlank(d.text[len(d.text)-1:]) {
		return "it may or may not repeat the last blank"
	}
	if complete(d.text, true) < len(d.text) && lastByte(d.text) == '\\' && (part[0] == '\\' ||
		part[0] == '"' && bytes.Contains(d.text[max(0, len(d.text)-4096):], part[:min(6, len(part))])) {
		return "the text ends inside of an escape, which may begin again"
	}
	first, _ := utf8.DecodeRune(part)
	last, _ := utf8.DecodeLastRune(d.text[:d.anchor.end])
	if unicode.IsUpper(first) && (unicode.IsLower(last) || unicode.IsDigit(last)) &&
		d.anchor.end == int64(len(d.text)) {
		return "it begins like a sentence, in the middle of a word"
	}
	if unicode.IsUpper(first) && bytes.IndexByte(part, '"') < 0 &&
		bytes.IndexByte([]byte(".!?"), lastByte(part)) >= 0 {
		return "it is a sentence, which may or may not belong to the string"
	}
	got, _ := units(part[:min(len(part), 4096)], true)
	kept := d.lastUnits()
	for _, n := range borders(kept, got) {
		begin := len(kept) - n
		if n >= 4 || begin == 0 || !isWordRune(kept[begin-1]) || !isWordRune(kept[begin]) {
			return fmt.Sprintf("it may or may not repeat the last %s", plural(int64(n), "character"))
		}
	}
	return ""
}

func isBlank(b []byte) bool { return len(b) > 0 && len(bytes.TrimSpace(b)) == 0 }

func lastByte(b []byte) byte {
	if b = bytes.TrimRight(b, " \t\r\n"); len(b) > 0 {
		return b[len(b)-1]
	}
	return 0
}

// tailStart returns where the last element begins that starts over 4 KiB before the end of the text; if none does,
// where a nearer one begins.
func (d *joined) tailStart() int64 {
	from := int64(0)
	for _, at := range d.parser.lastElements() {
		if int64(len(d.text))-at > 4096 || from == 0 {
			from = max(from, at)
		}
	}
	return from
}

// lastElements returns where the open and the last eight complete children of all open containers begin.
func (p *parser) lastElements() (all []int64) {
	for i := range p.containers {
		f := &p.containers[i]
		all = append(all, f.Last[max(0, len(f.Last)-8):]...)
		if f.Open >= 0 {
			all = append(all, f.Open)
		}
	}
	return all
}

// lastUnits returns the last units of the text, from the beginning of an element on.
func (d *joined) lastUnits() []rune {
	kept, _ := units(d.text[d.tailStart():d.anchor.end], false)
	return kept
}

func isWordRune(r rune) bool {
	r &^= inString
	return unicode.IsLetter(r) || unicode.IsDigit(r)
}

// notPlainBetween is notPlain for a text that ends between values.
func (d doubts) notPlainBetween(part []byte) string {
	f := d.parser.top()
	got, _ := units(part[:min(len(part), 1<<16)], false)
	if len(got) == 0 {
		return "it is empty"
	}
	before := bytes.TrimRight(d.text, " \t\r\n")
	begin := 0
	if last := before[len(before)-1]; last != ',' && last != ':' && last != '[' && last != '{' {
		begin = 1 // the comma that is due
	}
	if len(got) == begin {
		return ""
	}
	if c := got[begin]; f.Count > 0 && !f.Object && strings.ContainsRune("-0123456789tfn", c) {
		return "the text ends between bare values, of which it may or may not repeat some"
	}
	if n := borders(d.lastUnits(), got); len(n) > 0 && n[0] > 1 {
		return "it may or may not repeat the last characters"
	}
	if begin == 1 {
		return ""
	}
	// The first element, or its first two members, must not be one that is there already.
	lead := firstItems(got)
	for _, at := range d.parser.lastElements() {
		window := d.text[at:min(len(d.text), int(at)+8*len(lead)+512)]
		if kept, _ := units(window, false); hasPrefix(kept, lead) {
			return "it begins nearly like an element that is there already"
		}
	}
	return ""
}

// firstItems returns the first scalar, or the beginning of the first container up to the end of its second member.
func firstItems(us []rune) []rune {
	within, commas := false, 0
	for i, r := range us {
		switch {
		case r == '"':
			within = !within
		case within || r >= inString:
		case r == ',' && (commas == 1 || us[0] != '{'), (r == '}' || r == ']') && i > 0:
			return us[:i]
		case r == ',':
			commas++
		}
	}
	return us
}

// joinPlain joins a part of a text that is not JSON, if it repeats the end of the text.
func (d *Document) joinPlain(part []byte) Result {
	text, body := d.text, bytes.TrimLeft(part, "\r\n")
	if begun := []byte(d.lastLine()); len(begun) > 0 && occursOnce(text, begun) {
		if i := bytes.Index(body[:min(len(body), searched(body)+len(begun))], begun); i >= 0 {
			at := bytes.Index(text, begun)
			r := d.replaceText(append(text[:at:at], body[i:]...), "restart text")
			r.Dropped = strings.TrimSpace(string(body[:i]))
			return r
		}
	}
	for n := min(len(text), len(body), 1<<16); n >= overlapMin; n-- {
		if bytes.HasSuffix(text, body[:n]) && occursOnce(text, body[:n]) {
			return d.replaceText(append(text[:len(text)-n:len(text)-n], body...), "restart text")
		}
	}
	return d.refuse("it does not begin with the restart text")
}

// occursOnce reports whether a text has sub in one place; places may overlap.
func occursOnce(text, sub []byte) bool {
	i := bytes.Index(text, sub)
	return i >= 0 && !bytes.Contains(text[i+1:], sub)
}

// searched returns the number of bytes of the first restartWithin characters of a part.
func searched(part []byte) int {
	n := 0
	for i := range string(part[:min(len(part), utf8.UTFMax*restartWithin)]) {
		if n++; n > restartWithin {
			return i
		}
	}
	return min(len(part), utf8.UTFMax*restartWithin)
}

// Prefilled returns a reply that a model began with the restart text: with that text, unless the reply has it again or
// begins with other words.
func (d *Document) Prefilled(reply string) string {
	body, _, err := Normalize([]byte(reply))
	if err != nil || len(d.text) == 0 || d.plain {
		return reply
	}
	rest, before := d.withoutPreface(body)
	if before != "" || d.repeats(d.anchor.at, d.anchor.inside, rest) || d.repeats(0, false, body) ||
		opener().Match(body) && remark().Match(body) {
		return reply
	}
	return d.Restart() + reply
}
