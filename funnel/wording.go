package funnel

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/internal/content"
	"github.com/mcp-funnel/mcp-funnel/internal/summary"
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/tools"
)

// draft is all that could be said of the output, as things stand.
func (v *view) draft(verdict Verdict) *draft {
	v.summarise()
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
