package jq

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/tools"
	"github.com/mcp-funnel/mcp-funnel/tools/jq/engine"
	"github.com/mcp-funnel/mcp-funnel/tools/jq/plan"
	"github.com/mcp-funnel/mcp-funnel/tools/source"
)

// Limits of the explanation of a selection without results.
const (
	maxExplained = 64 << 20        // bytes of all sources: they are read again
	explainFor   = 2 * time.Second // then there is no explanation
	maxDistinct  = 4000            // different rows of a tally
	maxFields    = 8               // fields whose types are counted
	maxNear      = 3               // similar names that are shown
	maxNames     = 8               // names that are shown if none is similar
)

// tally counts the rows of a run.
type tally struct {
	rows map[string]int64
	open []byte
	over bool // there are more different rows than are counted
}

func (t *tally) Wanted() bool   { return true }
func (t *tally) Progress(int64) {}

func (t *tally) Part(b []byte, last bool) error {
	if t.open = append(t.open, b...); !last {
		return nil
	}
	if _, known := t.rows[string(t.open)]; known || len(t.rows) < maxDistinct {
		t.rows[string(t.open)]++
	} else {
		t.over = true
	}
	t.open = t.open[:0]
	return nil
}

// explanation finds out why a selection gives nothing.
type explanation struct {
	runner
	ctx   context.Context
	in    tools.Input
	args  args
	names []string // of the sources
	plan.Selection

	fields [][]string
}

// explain notes why the selection of a filter without results gives nothing: what each predicate leaves, and what is
// known of the fields of the one that leaves nothing.
func (r runner) explain(ctx context.Context, names []string, g *page, in tools.Input) {
	selection, ok := plan.SelectionOf(g.args.Filter.Text())
	if !ok || g.args.Text || g.size > maxExplained || strings.Contains(g.args.Filter.Text(), lineNumber) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, explainFor)
	defer cancel()
	a := g.args
	a.Offset, a.Limit, a.Raw, a.Save = 0, 0, false, false
	e := explanation{runner: r, ctx: ctx, in: in, args: a, names: names, Selection: selection}
	for _, p := range e.Predicates {
		for _, f := range p.Fields {
			if len(e.fields) < maxFields && e.indexOf(f) < 0 {
				e.fields = append(e.fields, f)
			}
		}
	}
	if note := e.note(); note != "" && ctx.Err() == nil {
		g.out.Note(note)
	}
}

// indexOf returns the index of a field among those whose types are counted; -1: they are not.
func (e *explanation) indexOf(field []string) int {
	return slices.IndexFunc(e.fields, func(o []string) bool { return slices.Equal(o, field) })
}

// count runs a filter on all sources and counts its different rows; nil if it fails.
func (e *explanation) count(filter string) map[string]int64 {
	t := &tally{rows: map[string]int64{}}
	a := e.args
	a.Filter = tools.OneQuery(filter)
	size := int64(0)
	for _, name := range e.names {
		src, err := openRecords(e.ctx, e.in, name)
		if err != nil {
			return nil
		}
		if size += src.Extent(); size <= maxExplained {
			err = e.countIn(src, a, t)
		}
		if _ = src.Close(); err != nil || size > maxExplained || t.over {
			return nil
		}
	}
	return t.rows
}

func (e *explanation) countIn(src *source.Source, a args, to *tally) error {
	ctx, stop := context.WithCancel(e.ctx)
	defer stop()
	t, err := textOf(ctx, src, a)
	if err != nil {
		return err
	}
	_, err = e.runJob(ctx, t, a.job(t.name, 0), sink{to, make(chan struct{}), engine.PageOutput(e.Memory)})
	return err
}

// census returns the filter that gives for each value how many predicates it fulfils, and the types of the fields.
func (e *explanation) census() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s | [", e.Before)
	for i, p := range e.Predicates {
		fmt.Fprintf(&b, "%s any((try (%s) catch empty); .) | not then %d ", []string{"if", "elif"}[min(i, 1)], p.Text, i)
	}
	fmt.Fprintf(&b, "else %d end", len(e.Predicates))
	for _, f := range e.fields {
		name := quoted(f[len(f)-1])
		fmt.Fprintf(&b, `, (try (getpath(%s) | if type == "object" and has(%s) then .[%s] | type else "" end) catch "")`,
			quoted(f[:len(f)-1]), name, name)
	}
	return b.String() + "]"
}

func quoted(v any) string {
	b, _ := json.Marshal(v) // strings only
	return string(b)
}

// note returns the explanation; "" if there is none.
func (e *explanation) note() string {
	var all int64
	fulfil := make([]int64, len(e.Predicates)+1) // values that fulfil exactly so many predicates
	types := make([]map[string]int64, len(e.fields))
	for row, n := range e.count(e.census()) {
		var values []any
		if json.Unmarshal([]byte(row), &values) != nil || len(values) != 1+len(e.fields) {
			return ""
		}
		k, ok := values[0].(float64)
		if !ok || int(k) >= len(fulfil) {
			return ""
		}
		all += n
		fulfil[int(k)] += n
		for i := range types {
			if types[i] == nil {
				types[i] = map[string]int64{}
			}
			name, _ := values[1+i].(string)
			types[i][name] += n
		}
	}
	if all == 0 {
		return ""
	}
	left, steps := all, []string(nil)
	for i, p := range e.Predicates {
		left -= fulfil[i]
		step := fmt.Sprintf("%s: %d", content.ClipBytes(content.VisibleLine(p.Text), 120), left)
		if i == 0 {
			step += fmt.Sprintf(" of %d", all)
		}
		if steps = append(steps, step); left == 0 {
			return strings.Join(steps, " → ") + e.describeFields(p.Fields, types, all)
		}
	}
	if e.Last {
		return ""
	}
	return strings.Join(steps, " → ") + "; what follows in the filter gives nothing for these"
}

// describeFields says which fields no value has, with names near them, and of which types the others are.
func (e *explanation) describeFields(fields [][]string, types []map[string]int64, all int64) string {
	var b strings.Builder
	for _, f := range fields {
		i := e.indexOf(f)
		if i < 0 {
			continue
		}
		name := content.ClipBytes(content.VisibleLine(strings.Join(f, ".")), 60)
		if types[i][""] == all {
			fmt.Fprintf(&b, "; no record has %s%s", name, e.near(f))
			continue
		}
		var found []string
		for _, t := range slices.Sorted(maps.Keys(types[i])) {
			found = append(found, fmt.Sprintf("%s in %d", cmp.Or(t, "absent"), types[i][t]))
		}
		fmt.Fprintf(&b, "; %s is %s", name, strings.Join(found, ", "))
	}
	return b.String()
}

// near returns the names that values have where a field is missing: those like its name, else some of them.
func (e *explanation) near(field []string) string {
	parent, name := quoted(field[:len(field)-1]), field[len(field)-1]
	rows := e.count(fmt.Sprintf(`%s | (try getpath(%s) catch null) | if type == "object" then keys[] else empty end`,
		e.Before, parent))
	names := map[string]int64{}
	for row, n := range rows {
		var s string
		if json.Unmarshal([]byte(row), &s) == nil {
			names[s] = n
		}
	}
	distance := func(s string) int {
		a, b := strings.ToLower(s), strings.ToLower(name)
		if strings.Contains(a, b) || strings.Contains(b, a) {
			return 1
		}
		return content.EditDistance(a, b)
	}
	by := func(a, b string) int { return cmp.Or(cmp.Compare(names[b], names[a]), strings.Compare(a, b)) }
	all := slices.SortedFunc(maps.Keys(names), by)
	like := slices.DeleteFunc(slices.Clone(all), func(s string) bool { return distance(s) > max(len(name)/3, 1) })
	slices.SortStableFunc(like, func(a, b string) int { return distance(a) - distance(b) })
	show := func(list []string) string {
		return content.ClipBytes(content.VisibleLine(strings.Join(list, ", ")), 200)
	}
	switch {
	case len(like) > 0:
		return "; near: " + show(like[:min(len(like), maxNear)])
	case len(all) > maxNames:
		return fmt.Sprintf("; they have %s and %d more", show(all[:maxNames]), len(all)-maxNames)
	case len(all) > 0:
		return "; they have " + show(all)
	}
	return ""
}
