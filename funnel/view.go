package funnel

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/mcp-funnel/mcp-funnel/internal/content"
	"github.com/mcp-funnel/mcp-funnel/internal/runes"
	"github.com/mcp-funnel/mcp-funnel/internal/summary"
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/tools"
)

// view decides what of an output is shown.
type view struct {
	*call
	seen
	outcome
	spent int

	decision Decision
	complete bool
	keepErr  error // why it was not kept though it should have been
	lost     bool  // a receipt stands for what was not kept
	size     Size  // of the output, or of the page
}

// show answers with what was written: whole, or by a receipt.
func (v *view) show() {
	v.size = Size{Lines: v.lines, Chars: v.chars, Bytes: v.bytes, Tokens: v.total.N}
	v.decision = v.f.o.Policy.Decide(v.size, v.spent)
	verdict := v.decision.Verdict
	if v.f.o.Policy.DryRun {
		verdict = OK
	}
	var blocks []string
	whole, tokens, can := v.whole()
	passes := (v.r.Tool.Uncut || v.f.o.Policy.Disabled) && !v.out.kept
	switch {
	case can && !v.out.kept && (passes || verdict == OK && !v.large(whole, tokens)):
		blocks = v.asWhole(whole)
	case passes:
		blocks = v.asBeginning()
	case can && v.out.kept && v.r.Keep == Auto && v.Kind != content.Binary:
		blocks = v.asKeptWhole(verdict, whole, tokens)
	default:
		blocks = v.asReceipt(verdict, whole, tokens, can && !v.out.kept)
	}
	if v.err != nil {
		v.say(v.failureText(v.outcome, v.rest()))
		if v.bytes == 0 {
			blocks = nil
			if n := v.notes(); n != "" {
				blocks = []string{n}
			}
		}
	}
	for _, b := range blocks {
		v.say(b)
	}
	if v.out.page.n > 0 { // rows shown before the tool asked for its output to be kept
		v.say(v.out.page.rows.String())
	}
}

// rest says, behind an error, what became of what was written before it.
func (v *view) rest() string {
	switch {
	case v.bytes == 0 && v.status == timeout:
		return "nothing was written until then: ask for less"
	case v.bytes == 0:
		return ""
	case v.obs != nil:
		return fmt.Sprintf("what was written until then is kept as %s%s", observations.Prefix, v.obs.ID)
	case v.complete:
		return "what was written until then follows"
	default:
		return "the receipt of what was written until then follows"
	}
}

// abandon keeps what a cancelled call wrote.
func (v *view) abandon() {
	v.size = Size{Lines: v.lines, Chars: v.chars, Bytes: v.bytes, Tokens: v.total.N}
	v.decision = v.f.o.Policy.Decide(v.size, v.spent)
	v.out.pass.keep()
	d := v.draft(OK)
	text, _ := d.fit(v.f.o.Counter.Count, v.limits.ReceiptTokens)
	v.commit(text)
}

// notes are the tool's notes in one line, "" where there are none.
func (v *view) notes() string {
	all := v.remarks()
	if all == "" {
		return ""
	}
	return noteWord + text(all).shown(600, false)
}

// remarks are what must be said in one line: that something was masked, and the tool's notes.
func (v *view) remarks() string {
	notes := v.out.notes
	if n := v.secrets(); n > 0 {
		notes = append([]string{maskedNote(n)}, notes...)
	}
	return strings.Join(notes, "; ")
}

// whole is the output as it would be shown in full; ok where that is worth considering, and possible.
func (v *view) whole() (text string, tokens int, ok bool) {
	passes := v.r.Tool.Uncut || v.f.o.Policy.Disabled
	// No layout makes a twelfth of a text, and a page is less than this too.
	if v.out.pass.over || !passes && v.total.N > 12*MaxReceipt {
		return "", 0, false
	}
	raw := v.out.pass.hold
	text = foreign(string(raw), v.json(), alone)
	if passes && len(text) > maxAnswer {
		return "", 0, false
	}
	if len(raw) == 0 && len(v.parts()) == 0 && v.remarks() == "" {
		text = "no output"
	}
	if v.out.pass.bare == nil && v.total.Margin == 0 && text == string(raw) { // the tally was of this very text
		v.weighed, v.weight = text, int(v.total.N)
	}
	tokens = v.count(text)
	if rows, found := v.compactly(raw); found && !passes {
		t := fence(visible(strings.Join(rows, "\n"), false), alone)
		if n := v.f.o.Counter.Count(t); n < tokens {
			text, tokens = t, n
		}
	}
	if n := v.notes(); n != "" {
		if text != "" && !strings.HasSuffix(text, "\n") {
			text += "\n"
		}
		text += n
		tokens = v.f.o.Counter.Count(text)
	}
	return text, tokens, true
}

func (v *view) json() bool { return v.Kind == content.JSON || v.Kind == content.NDJSON }

// compactly lays out what our own tools wrote as records; what upstream tools wrote is passed on as it is.
func (v *view) compactly(raw []byte) ([]string, bool) {
	if !v.ours() || v.Kind != content.NDJSON {
		return nil, false
	}
	return layout(bytes.Split(bytes.TrimSuffix(raw, []byte("\n")), []byte("\n")))
}

func (v *view) ours() bool {
	return !v.r.Tool.Paged && !v.stands() && (v.r.Tool.Toolset == tools.Core || v.r.Tool.Toolset == "")
}

// large says whether an output is too large to be shown as a matter of course. What stands in a source
// was asked for by name: it may take a page.
func (v *view) large(shown string, tokens int) bool {
	if v.out.paged || v.stands() {
		return v.chars > maxPageChars || utf8.RuneCountInString(shown) > maxPageChars || tokens > v.limits.PageTokens
	}
	return v.lines > int64(v.limits.LargeLines) || v.chars > int64(v.limits.LargeChars) ||
		// Bytes that are no text are shown as \xNN; that is what there would be to read.
		v.Kind == content.Binary && utf8.RuneCountInString(shown) > v.limits.LargeChars
}

func (v *view) asWhole(text string) []string {
	v.complete = true
	if v.r.Keep == Always {
		v.out.pass.keep()
		d := v.draft(OK)
		receipt, _ := d.fit(v.f.o.Counter.Count, v.limits.ReceiptTokens)
		v.commit(receipt)
	}
	if text == "" { // an image stands for itself
		return nil
	}
	return []string{text}
}

// asBeginning shows as much as one answer takes, under a receipt that says so.
func (v *view) asBeginning() []string {
	raw, shown := v.beginning()
	v.out.pass.keep()
	receipt := func() string {
		d := v.draft(OK)
		d.says, d.cuts, d.shapes, d.body, d.head, d.tail, d.saved = nil, 0, nil, nil, nil, nil, ""
		d.below = int64(len(raw))
		text, _ := d.fit(v.f.o.Counter.Count, v.limits.ReceiptTokens)
		return text
	}
	text := receipt()
	if v.commit(text); v.keepErr != nil {
		text = receipt()
	}
	return []string{text, shown}
}

// beginning is what of the output one answer takes: as it was written, and as it is shown, which may be longer.
func (v *view) beginning() (raw []byte, shown string) {
	raw = v.out.pass.hold
	for limit := len(raw); ; limit = min(limit*maxAnswer/len(shown), limit*15/16) {
		raw = raw[:limit]
		if at := bytes.LastIndexByte(raw, '\n'); at > len(raw)/2 {
			raw = raw[:at]
		} else {
			raw = raw[:len(raw)-partial(raw)]
		}
		if shown = foreign(string(raw), v.json(), alone); len(shown) <= maxAnswer {
			return raw, shown
		}
		limit = len(raw)
	}
}

// asReceipt keeps the output and shows its receipt, unless the whole costs no more than that.
func (v *view) asReceipt(verdict Verdict, whole string, tokens int, can bool) []string {
	ceiling := v.limits.ReceiptTokens
	if verdict != OK {
		ceiling = min(ceiling, v.decision.Left)
	}
	v.out.pass.keep()
	d := v.draft(verdict)
	text, n := d.fit(v.f.o.Counter.Count, ceiling)
	if can && n >= tokens {
		return v.asWhole(whole)
	}
	v.commit(text)
	if v.keepErr != nil { // the text promised what did not come true
		d = v.draft(verdict)
		if text, n = d.fit(v.f.o.Counter.Count, ceiling); can && n >= tokens {
			return v.asWhole(whole)
		}
		return []string{text}
	}
	if v.f.o.SavedTo && v.obs != nil {
		// Only now is the file's name known. It is not in the receipt that is kept, which others may read from afar.
		d.saved = v.f.o.Store.SavedTo(*v.obs)
		if can {
			ceiling = min(ceiling, tokens-1)
		}
		text, _ = d.fit(v.f.o.Counter.Count, ceiling)
	}
	return []string{text}
}

// asKeptWhole keeps the output because the tool asked for that, and shows all of it under one line that names it
// where this costs no more than its receipt.
func (v *view) asKeptWhole(verdict Verdict, whole string, tokens int) []string {
	ceiling := v.limits.ReceiptTokens
	if verdict != OK {
		ceiling = min(ceiling, v.decision.Left)
	}
	v.out.pass.keep()
	receipt, n := v.draft(verdict).fit(v.f.o.Counter.Count, ceiling)
	line := func() string {
		subject, _ := v.subject()
		below := "all of them below"
		if v.lines == 1 {
			below = "all of it below"
		}
		return text(subject).shown(300, false) + ": " + plural(v.lines, "line") + ", " + below
	}
	notes := v.notes()
	whole = strings.TrimSuffix(whole, notes)
	if verdict == Reject || tokens+v.f.o.Counter.Count(line()) > n || runes.Count([]byte(whole)) > maxPageChars {
		return v.asReceipt(verdict, "", 0, false)
	}
	v.commit(receipt)
	v.complete = true
	first := line() // what the keeping came to is known only now
	if notes != "" {
		first += "\n" + notes
	}
	return []string{first, whole}
}

// stands says that the output need not be kept: it stands in its source.
func (v *view) stands() bool { return v.out.source != "" }

// commit keeps the output with the receipt that was made of it.
func (v *view) commit(receipt string) {
	p := v.out.pass
	if p.rec == nil || v.obs != nil || v.keepErr != nil {
		return
	}
	if p.rec.Size() == 0 && p.rec.Dropped() > 0 {
		v.keepErr = p.rec.Err()
		return
	}
	receipt = v.masked(receipt)
	counts := v.out.counts
	if n := p.mask.Found(); p.redact && n > 0 {
		if counts = maps.Clone(counts); counts == nil {
			counts = map[string]float64{}
		}
		counts["redacted"] = float64(n)
		v.out.counts = counts
	}
	obs, err := p.rec.Commit(observations.Seen{
		Kind: string(v.Kind), Ext: v.Kind.Ext(),
		Lines: v.lines, Chars: v.chars, LongestLine: v.longest,
		Tokens: v.total.N, TokensMargin: v.total.Margin,
		Status:  v.status,
		Receipt: receipt, Counts: counts,
	})
	if err != nil {
		v.keepErr = err
		v.log("keep: the output could not be kept", "tool", v.r.Tool.Name, "error", err)
		return
	}
	v.obs = &obs
}

// draft is all that could be said of the output, as things stand.
func (v *view) draft(verdict Verdict) *draft {
	d := &draft{
		sizes:  fmt.Sprintf("%s, %s, %s", plural(v.lines, "line"), plural(v.chars, "char"), about(v.total)),
		total:  append([]string{string(v.Kind)}, v.totals()...),
		reject: verdict == Reject,
		left:   v.decision.Left,
		shapes: v.Shapes, body: v.Body,
		lines: v.lines, head: v.head, tail: v.last(),
		kind: v.Kind,
	}
	if v.Kind == content.Binary { // it has neither lines nor chars nor tokens
		d.sizes = plural(v.bytes, "byte")
		d.total = slices.DeleteFunc(d.total, func(s string) bool { return s == d.sizes })
	}
	d.says, d.cuts = cutFirst(v.Says)
	d.quotes = make(map[string]summary.Quote, len(v.Quotes))
	for _, q := range v.Quotes {
		d.quotes[q.Whole] = q
	}
	d.notes = v.remarks()
	name := ""
	d.subject, name = v.subject()
	v.lost = v.notKept() != ""
	d.next = v.nextWords(name)
	if v.Kind == content.Binary {
		d.head, d.tail = nil, nil // nothing to read in them
	}
	if v.Kind == content.NDJSON && len(d.head) > 0 {
		// The head's first line is this record already.
		d.body = slices.DeleteFunc(slices.Clone(d.body), func(s string) bool { return strings.HasPrefix(s, "record 0: ") })
	}
	d.rows = v.rows(d)
	return d
}

// rows is the layout of the lines of head and tail where they are records and it costs less than they do.
func (v *view) rows(d *draft) func([]line) (rows []string, header bool) {
	if !v.ours() || v.Kind != content.NDJSON {
		return nil
	}
	raw := func(lines []line) (out [][]byte, whole bool) {
		for _, l := range lines {
			if len(l.right) > 0 {
				return nil, false
			}
			out = append(out, l.left)
		}
		return out, true
	}
	for _, lines := range [][]line{d.head, d.tail} {
		records, ok := raw(lines)
		if !ok {
			return nil
		}
		rows, ok := layout(records)
		if !ok || v.f.o.Counter.Count(strings.Join(rows, "\n")) >= v.f.o.Counter.Count(string(bytes.Join(records, []byte("\n")))) {
			return nil
		}
	}
	return func(lines []line) (rows []string, header bool) {
		records, _ := raw(lines)
		rows, header, ok := arrange(records)
		if ok {
			return rows, header
		}
		out := make([]string, len(records))
		for i, r := range records {
			out[i] = string(r)
		}
		return out, false
	}
}

// counted are the parts of a total line that tell matches.
var counted = content.Pattern(`^\d+ match(es)?( in \d+ files?)?$`)

// totals are the further parts of the total line. What a tool counted goes before what the digest found.
func (v *view) totals() []string {
	out := v.Total
	matches, files := v.matches(), v.files()
	if _, ok := v.out.counts["total_matches"]; ok && matches != nil {
		out = slices.DeleteFunc(slices.Clone(out), counted().MatchString)
		word := plural(*matches, "match")
		if files != nil {
			word += " in " + plural(*files, "file")
		}
		out = append([]string{word}, out...)
	}
	if code, ok := v.out.counts["exit_code"]; ok && code != 0 {
		out = append([]string{fmt.Sprintf("exit code %g", code)}, out...)
	}
	return out
}

func (v *view) matches() *int64 { return v.counted("total_matches", v.Matches) }
func (v *view) files() *int64   { return v.counted("files_with_matches", v.Files) }

func (v *view) counted(name string, found int64) *int64 {
	if n, ok := v.out.counts[name]; ok {
		found = int64(n)
		return &found
	}
	if found < 0 || v.size.Bytes == 0 {
		return nil
	}
	return &found
}

// subject words the first line, and names what the next call can name ("" for nothing).
func (v *view) subject() (words, name string) {
	if v.stands() {
		return "read from " + v.out.source, v.out.source
	}
	if why := v.notKept(); why != "" {
		return "not kept (" + why + ")", ""
	}
	rec := v.out.pass.rec
	name = observations.Prefix + string(rec.ID())
	if rec.Dropped() > 0 || v.stopped {
		return fmt.Sprintf("kept in part as %s (first %d bytes)", name, rec.Size()), name
	}
	return "kept whole as " + name, name
}

// nextWords word the next step, longest first.
func (v *view) nextWords(name string) []string {
	if name == "" {
		if v.r.Tool.Effect != tools.ReadOnly { // to repeat it might do harm
			return []string{"only what is shown here is left of it"}
		}
		return []string{"repeat the call so that it gives less: this output is gone"}
	}
	ways := []string{"jq", "grep", "slice"}
	if v.Kind == content.Binary {
		ways = []string{"slice"}
	}
	if v.f.o.Offered != nil {
		offered := v.f.o.Offered()
		ways = slices.DeleteFunc(ways, func(w string) bool { return !slices.Contains(offered, w) })
	}
	if len(ways) == 0 {
		return []string{"do not read it whole"}
	}
	list := ways[len(ways)-1]
	if len(ways) > 1 {
		list = strings.Join(ways[:len(ways)-1], ", ") + " or " + list
	}
	return []string{
		fmt.Sprintf("direct %s at source %s; do not read it whole", list, name),
		fmt.Sprintf("direct %s at that source; do not read it whole", list),
	}
}

// receipt is what is told beside the answer.
// notKept is why there is no observation of the output, or "".
func (v *view) notKept() string {
	rec := v.out.pass.rec
	switch {
	case v.stands():
		return ""
	case v.keepErr != nil:
		return cause(v.keepErr)
	case rec == nil && v.out.paged:
		return "it stands in its source"
	case rec == nil:
		return cause(v.out.pass.recErr)
	case rec.Size() == 0 && rec.Dropped() > 0:
		return cause(rec.Err())
	}
	return ""
}

func (v *view) receipt() Receipt {
	r := Receipt{
		Complete: v.complete && v.err == nil,
		Kind:     string(v.Kind),
		Lines:    v.size.Lines, Chars: v.size.Chars, Bytes: v.size.Bytes,
		Tokens: v.size.Tokens, TokensMargin: v.total.Margin, TokensExact: v.total.Margin == 0,
		Matches: v.matches(), Files: v.files(),
		Status:    v.status,
		Truncated: v.stopped && v.bytes > 0,
		Decision:  v.decision,
		Metadata:  v.out.counts,
	}
	if r.Kind == "" {
		r.Kind = string(content.Text)
	}
	if cost, ok := v.out.counts["cost"]; ok {
		r.Cost = &cost
	}
	if rec := v.out.pass.rec; rec != nil && v.obs == nil && rec.Dropped() > 0 {
		r.Truncated = true
	}
	if v.lost {
		r.NotKept = visibleLine(v.masked(v.notKept()), false)
	}
	if v.obs != nil {
		r.Kept = true
		r.Truncated = r.Truncated || v.obs.Dropped > 0
		r.ObservationID = string(v.obs.ID)
		r.URI = observations.URIPrefix + string(v.obs.ID)
		r.SHA256 = v.obs.SHA256
		r.Redacted = v.out.pass.redact && v.out.pass.mask.Found() > 0
		if v.f.o.SavedTo {
			r.SavedTo = v.f.o.Store.SavedTo(*v.obs)
		}
	}
	return r
}
