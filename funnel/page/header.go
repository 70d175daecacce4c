package page

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/mcp-funnel/mcp-funnel/funnel/policy"
	"github.com/mcp-funnel/mcp-funnel/funnel/text"
	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/tools"
)

// callWidths are the maximum bytes of a call's arguments in a header, tried in this order; the last always fits.
// noteWidths are the maximum chars of the notes in the same attempt.
var (
	callWidths = []int{600, 300, 150, 80, 40, 0, noArguments}
	noteWidths = []int{600, 300, 160, 100, 60, text.MinWidth, text.MinWidth}
)

// noArguments is the width of a call that names only the argument which continues the page.
const noArguments = -1

// Header returns the block before the rows of a page that is not complete, "" if it is, and the notes. Both are clipped
// so that they fit on a page with rows of that many tokens and chars. call is the call that is being answered.
func (p *Page) Header(call tools.Call, notes string, rowTokens, rowChars int) (header, clipped string) {
	for i, width := range callWidths {
		header, clipped = p.headerOf(call, width), ""
		if notes != "" {
			clipped = text.LineOf(notes).Clip(noteWidths[i], false)
		}
		whole := header + "\n" + clipped + "\n"
		if utf8.RuneCountInString(whole) <= policy.MaxPageChars-rowChars && p.count(whole) <= p.budget-rowTokens {
			break
		}
	}
	return header, clipped
}

// headerOf returns the header with at most width bytes of arguments for each call.
func (p *Page) headerOf(call tools.Call, width int) string {
	if p.Complete() {
		return ""
	}
	var b strings.Builder
	switch r := p.textRange; {
	case r != nil:
		fmt.Fprintf(&b, "showing %s %d-%d of %s", r.unit, r.from, r.to, totalOrUnknown(r.total))
	case p.rowCount == 0:
		fmt.Fprintf(&b, "showing none of %s from %d on", totalOrUnknown(p.total), p.first)
	default:
		fmt.Fprintf(&b, "showing %d-%d of %s", p.first, p.first+p.rowCount-1, totalOrUnknown(p.total))
	}
	if p.truncated != nil {
		fmt.Fprintf(&b, "; row %d is cut in its middle", p.first)
		if words := describeCall(*p.truncated, call, width, p.mask.Holds); words != "" && width > noArguments {
			b.WriteString(", whole: " + words)
		}
	}
	if p.next != nil {
		b.WriteString("; " + text.NextPrefix + describeCall(*p.next, call, width, p.mask.Holds))
	}
	return b.String()
}

// totalOrUnknown formats a total, "?" if it was not counted.
func totalOrUnknown(total int64) string {
	if total < 0 {
		return "?"
	}
	return strconv.FormatInt(total, 10)
}

// describeCall formats a call: the tool, and its arguments as compact JSON if they take at most width bytes as shown.
// Otherwise it names only the arguments that differ from those of current, shortest first, as many as width allows, and
// says if some are left out. It omits arguments with a secret, because masked they would be another call.
func describeCall(c, current tools.Call, width int, secret func(string) bool) string {
	if c.Tool == "" || c.Args == nil {
		return c.Tool
	}
	b, err := content.PlainJSON(c.Args)
	if err != nil {
		return c.Tool
	}
	if shown := text.VisibleLine(string(b), true); len(shown) <= width && !secret(shown) {
		return c.Tool + " " + shown
	}
	var next, old map[string]json.RawMessage
	if json.Unmarshal(b, &next) != nil {
		return c.Tool
	}
	raw, err := content.PlainJSON(current.Args)
	if err != nil || json.Unmarshal(raw, &old) != nil {
		old = nil
	}
	same := c.Tool == current.Tool
	changed, without := diffArguments(old, next)
	if !same {
		without = nil // another tool: nothing to compare
	}
	object, some := shortestMembers(changed, width, secret)
	words := c.Tool
	if same {
		words = "the same " + c.Tool
	}
	var parts []string
	if object != "{}" {
		parts = append(parts, "with "+text.VisibleLine(object, true))
	}
	if len(without) > 0 {
		if left := text.VisibleLine(strings.Join(without, ", "), true); len(left) <= width {
			parts = append(parts, "without "+left)
		} else {
			some = true
		}
	}
	if !same && len(changed) < len(next) && width > noArguments {
		parts = append(parts, "the rest as in this call")
	}
	if some && width > noArguments {
		parts = append(parts, "what is too long to repeat left out")
	}
	if len(parts) > 0 {
		words += " " + strings.Join(parts, ", ")
	}
	return words
}

// diffArguments returns the members of next that old lacks or has with another value, and the names that next lacks.
// Values are compared by meaning: not by spacing, order of members or how a char is escaped.
func diffArguments(old, next map[string]json.RawMessage) (changed map[string]json.RawMessage, without []string) {
	changed = map[string]json.RawMessage{}
	for k, v := range next {
		if before, ok := old[k]; !ok || !bytes.Equal(canonical(before), canonical(v)) {
			changed[k] = v
		}
	}
	for k := range old {
		if _, ok := next[k]; !ok {
			without = append(without, k)
		}
	}
	slices.Sort(without)
	return changed, without
}

// canonical returns a JSON value in one spelling, with its numbers as written.
func canonical(v json.RawMessage) []byte {
	d := json.NewDecoder(bytes.NewReader(v))
	d.UseNumber()
	var value any
	if d.Decode(&value) != nil {
		return v
	}
	b, err := content.PlainJSON(value)
	if err != nil {
		return v
	}
	return b
}

// maxNumber is the length up to which one member is named whatever the width: an offset, a count, a range.
const maxNumber = 40

// shortestMembers returns the members that take at most width bytes, shortest first, as a JSON object, and whether some
// are missing. It always includes one number: without its offset a call would start from the beginning.
func shortestMembers(
	members map[string]json.RawMessage, width int, secret func(string) bool,
) (object string, some bool) {
	rank := func(v json.RawMessage) int { // numbers first: they are offsets
		if len(v) > 0 && (v[0] == '-' || v[0] >= '0' && v[0] <= '9') {
			return 0
		}
		return 1
	}
	names := slices.SortedFunc(maps.Keys(members), func(a, b string) int {
		return cmp.Or(rank(members[a])-rank(members[b]), len(members[a])-len(members[b]), strings.Compare(a, b))
	})
	taken := map[string]json.RawMessage{}
	object = "{}"
	for _, k := range names {
		taken[k] = members[k]
		b, err := content.PlainJSON(taken) // of a map: keys sorted
		first := len(taken) == 1 && len(b) <= maxNumber
		if shown := text.VisibleLine(string(b), true); err != nil || len(shown) > width && !first || secret(shown) {
			delete(taken, k)
			some = true
			continue
		}
		object = string(b)
	}
	return object, some
}
