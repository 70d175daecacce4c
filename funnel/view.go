package funnel

import (
	"bytes"
	"maps"
	"strings"
	"unicode/utf8"

	"github.com/mcp-funnel/mcp-funnel/internal/content"
	"github.com/mcp-funnel/mcp-funnel/internal/runes"
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

// abandon keeps what a cancelled call wrote.
func (v *view) abandon() {
	v.size = Size{Lines: v.lines, Chars: v.chars, Bytes: v.bytes, Tokens: v.total.N}
	v.decision = v.f.o.Policy.Decide(v.size, v.spent)
	v.out.pass.keep()
	d := v.draft(OK)
	text, _ := d.fit(v.f.o.Counter.Count, v.limits.ReceiptTokens)
	v.commit(text)
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
	for limit := len(raw); ; limit = min(int(int64(limit)*maxAnswer/int64(len(shown))), limit*15/16) {
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
	model := v.f.o.Counter.Model()
	obs, err := p.rec.Commit(observations.Seen{
		Kind: string(v.Kind), Ext: v.Kind.Ext(),
		Lines: v.lines, Chars: v.chars, LongestLine: v.longest,
		Tokens: v.total.N, TokensMargin: v.total.Margin,
		Vocabulary: string(model.Encoding), Factor: model.Factor, FactorError: model.Error,
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

// receipt is what is told beside the answer.
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
