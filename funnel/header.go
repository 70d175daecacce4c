package funnel

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/mcp-funnel/mcp-funnel/tools"
)

// callWidths are how many bytes the arguments of a call in a header may take, from what is wanted to what
// always has room (bare: nothing but where to go on); noteWidths go with them, in chars.
var (
	callWidths = []int{600, 300, 150, 80, 40, 0, bare}
	noteWidths = []int{600, 300, 160, 100, 60, minWidth, minWidth}
)

const bare = -1

// header is the block before the rows of a page that is not all, "" where it is, and the notes, clipped so that
// both have room. made is the call that is being answered.
func (p *page) header(made tools.Call, notes string, tokens, chars int) (header, clipped string) {
	for i, width := range callWidths {
		header, clipped = p.headerAt(made, width), ""
		if notes != "" {
			clipped = text(notes).shown(noteWidths[i], false)
		}
		whole := header + "\n" + clipped + "\n"
		if utf8.RuneCountInString(whole) <= chars && p.count(whole) <= tokens {
			break
		}
	}
	return header, clipped
}

func (p *page) headerAt(made tools.Call, width int) string {
	if p.complete() {
		return ""
	}
	var b strings.Builder
	switch r := p.reach; {
	case r != nil:
		fmt.Fprintf(&b, "showing %s %d-%d of %s", r.unit, r.from, r.to, known(r.total))
	case p.n == 0:
		fmt.Fprintf(&b, "showing none of %s from %d on", known(p.total), p.first)
	default:
		fmt.Fprintf(&b, "showing %d-%d of %s", p.first, p.first+p.n-1, known(p.total))
	}
	if p.clipped != nil {
		fmt.Fprintf(&b, "; row %d is cut in its middle", p.first)
		if words := wordCall(*p.clipped, made, width, p.mask.Holds); words != "" && width > bare {
			b.WriteString(", whole: " + words)
		}
	}
	if p.next != nil {
		b.WriteString("; " + nextWord + wordCall(*p.next, made, width, p.mask.Holds))
	}
	return b.String()
}

// known is a total, or "?" where it was not counted.
func known(total int64) string {
	if total < 0 {
		return "?"
	}
	return strconv.FormatInt(total, 10)
}

// wordCall words a call: the tool and its arguments as compact JSON where they take at most width bytes as shown.
// Of longer ones it names those that differ from the call made, and where even these are too long the short ones
// among them, with a word on what is not repeated. One that holds a secret is not: masked, it would be another call.
func wordCall(c, made tools.Call, width int, secret func(string) bool) string {
	if c.Tool == "" || c.Args == nil {
		return c.Tool
	}
	b, err := compact(c.Args)
	if err != nil {
		return c.Tool
	}
	if shown := visibleLine(string(b), true); len(shown) <= width && !secret(shown) {
		return c.Tool + " " + shown
	}
	var next, old map[string]json.RawMessage
	if json.Unmarshal(b, &next) != nil {
		return c.Tool
	}
	raw, err := compact(made.Args)
	if err != nil || json.Unmarshal(raw, &old) != nil {
		old = nil
	}
	same := c.Tool == made.Tool
	changed, without := changes(old, next)
	if !same {
		without = nil // another tool has other arguments
	}
	told, some := shortest(changed, width, secret)
	words := c.Tool
	if same {
		words = "the same " + c.Tool
	}
	var parts []string
	if told != "{}" {
		parts = append(parts, "with "+visibleLine(told, true))
	}
	if len(without) > 0 {
		if left := visibleLine(strings.Join(without, ", "), true); len(left) <= width {
			parts = append(parts, "without "+left)
		} else {
			some = true
		}
	}
	if !same && len(changed) < len(next) && width > bare {
		parts = append(parts, "the rest as in this call")
	}
	if some && width > bare {
		parts = append(parts, "what is too long to repeat left out")
	}
	if len(parts) > 0 {
		words += " " + strings.Join(parts, ", ")
	}
	return words
}

// changes are the members of next that old has not, or has otherwise, and the names of those next has not.
// Values are compared by what they mean: not by their spacing, the order of their members or how a char is escaped.
func changes(old, next map[string]json.RawMessage) (changed map[string]json.RawMessage, without []string) {
	changed = map[string]json.RawMessage{}
	for k, v := range next {
		if was, ok := old[k]; !ok || !bytes.Equal(canonical(was), canonical(v)) {
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

// canonical is a JSON value in one spelling, its numbers as written.
func canonical(v json.RawMessage) []byte {
	d := json.NewDecoder(bytes.NewReader(v))
	d.UseNumber()
	var value any
	if d.Decode(&value) != nil {
		return v
	}
	b, err := compact(value)
	if err != nil {
		return v
	}
	return b
}

// maxNumber is how long a member is that is told whatever the width: an offset, a count, a range.
const maxNumber = 40

// shortest are as many members as take at most width bytes, as a JSON object, shortest first taken; some are
// missing. One number is there at least: without its offset a call would begin anew.
func shortest(members map[string]json.RawMessage, width int, secret func(string) bool) (object string, some bool) {
	names := make([]string, 0, len(members))
	for k := range members {
		names = append(names, k)
	}
	slices.SortFunc(names, func(a, b string) int {
		// Numbers first: they say where to go on.
		if na, nb := isNumber(members[a]), isNumber(members[b]); na != nb {
			if na {
				return -1
			}
			return 1
		}
		if d := len(members[a]) - len(members[b]); d != 0 {
			return d
		}
		return strings.Compare(a, b)
	})
	taken := map[string]json.RawMessage{}
	object = "{}"
	for _, k := range names {
		taken[k] = members[k]
		b, err := compact(taken) // of a map: keys sorted
		first := len(taken) == 1 && len(b) <= maxNumber
		if shown := visibleLine(string(b), true); err != nil || len(shown) > width && !first || secret(shown) {
			delete(taken, k)
			some = true
			continue
		}
		object = string(b)
	}
	return object, some
}

func isNumber(v json.RawMessage) bool {
	return len(v) > 0 && (v[0] == '-' || v[0] >= '0' && v[0] <= '9')
}

// compact is json.Marshal without escaping <, > and &, which no model needs.
func compact(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
