package viewer

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/observations/backend"
	"github.com/mcp-funnel/mcp-funnel/session/stats"
	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/tools/upstream"
)

// choices are the numbers of days that the overview sums up, today (UTC) included.
var choices = []int64{1, 7, maxDays}

const largest = 8 // rows of a table of the largest

// overview is the page of what the calls of the last days cost and saved, and of what the store holds.
func (q *request) overview() (*page, error) {
	days, others := q.number("days", 7), links{}
	if !slices.Contains(choices, days) {
		days = 7
	}
	for _, n := range choices {
		text := "last " + content.Plural(n, "day", "days")
		others = append(others, link{Text: text, To: q.with("days", itoa(n)), On: n == days})
	}
	d := q.digest()
	r := d.last[days].Report(d.skipped)
	p := &page{Title: "Overview", Notes: d.notes(), Live: true}
	total := sumCells(r.Total)
	total[0].To = q.url("search", "days", itoa(days))
	p.Blocks = []any{
		others, append(named(heads(sums...), total), fact{"Sessions", number(int64(r.Sessions)).to(q.url("sessions"))},
			fact{"Tool lists", number(r.List)}),
		note{"All but calls, failed and sessions are tokens. Shown has what was read later; " +
			"saved is without the tool lists.", "dim"},
	}
	if r.Total.Calls == 0 && d.whole {
		said := "No client called a tool in these days. Connect one with mcp-funnel install CLIENT, or choose more days."
		p.Blocks = append(p.Blocks, note{said, ""})
	}
	active := &table{Heads: q.sessionHeads(), Caption: "Whole sessions that went on in these days", Empty: "None."}
	seen := map[*group]int64{}
	for _, g := range d.groups {
		if !g.last().Before(d.today.Add(day * time.Duration(1-days))) {
			seen[g] = g.sum.Report(0).Total.Seen
		}
	}
	for _, g := range most(seen) {
		active.Rows = append(active.Rows, q.sessionRow(g))
	}
	add := func(title, key string, blocks ...any) {
		p.Blocks = append(p.Blocks, section{Title: title, Key: key, Blocks: blocks})
	}
	add("By day", "days", q.byDay(d, days)...)
	d.mu.Unlock()
	add("By tool", "tools", q.byTool(r, days))
	servers, err := q.byServer(r)
	if servers != nil {
		add("By wrapped server", "servers", servers)
	}
	add("By session", "sessions", active)
	store, wrong := q.storeBlocks()
	add("Store", "store", store...)
	return p, cmp.Or(err, wrong)
}

// most returns the keys with the largest values.
func most[K comparable](values map[K]int64) []K {
	keys := slices.SortedFunc(maps.Keys(values), func(a, b K) int { return cmp.Compare(values[b], values[a]) })
	return keys[:min(len(keys), largest)]
}

// byDay shows the tokens of each of the last days, with the numbers for those who cannot see the chart.
func (q *request) byDay(d *digest, days int64) []any {
	t := &table{Heads: heads(append([]string{"Day (UTC)"}, sums...)...)}
	var shown, kept []int64
	for i := days - 1; i >= 0; i-- {
		of, at := d.byDay[i].Report(0).Total, d.today.Add(-day*time.Duration(i)).Format(time.DateOnly)
		t.Rows = append(t.Rows, append([]cell{words(at).to(q.url("search", "day", at))}, sumCells(of)...))
		shown, kept = append(shown, of.Shown+of.Fetched), append(kept, of.Kept)
	}
	said := "Solid: tokens shown; dashed: kept; at most " + grouped(max(slices.Max(shown), slices.Max(kept))) +
		" a day, from " + t.Rows[0][0].Text + " to today (UTC)."
	return []any{chart("Tokens shown and kept by day; the numbers are below", shown, kept), note{said, ""},
		section{Title: "Numbers", Closed: true, Blocks: []any{t}}}
}

// byTool has a row for each tool: what it cost and saved, and how often what was kept was read again.
func (q *request) byTool(r stats.Report, days int64) *table {
	names := slices.Concat([]string{"Tool"}, sums, []string{"#Receipts", "#Read later", "#Read over half", "Advice"})
	t := &table{Heads: heads(names...), Empty: "No tool was called."}
	for _, of := range slices.Concat(r.Tools, r.Observed) {
		name := q.name(of.Name, 60).to(q.url("search", "tool", of.Name, "days", itoa(days)))
		row := append([]cell{name}, sumCells(of)...)
		row = append(row, number(int64(of.Receipts)), number(int64(of.Refetch)), number(int64(of.Ignored)), cell{})
		if of.Seen > 0 {
			row[5].Share = float64(of.Net) / float64(of.Seen)
		}
		if of.TooHard {
			said := "receipts show too little: raise --tool-limit " + q.short(of.Name, 60) + ".receipt-tokens"
			row[len(row)-1] = cell{Text: said, Class: "warn"}
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// byServer says what each wrapped server costs and saves; nil for those who may not see servers.
func (q *request) byServer(r stats.Report) (*table, error) {
	if !q.who.Operator && q.who.Owner != observations.Local {
		return nil, nil
	}
	t := &table{Heads: heads(append([]string{"Server", "Cost"}, sums...)...), Key: "wrapped",
		Empty: "No server is wrapped: see mcp-funnel wrap."}
	costs, err := upstream.RecordsIn(q.o.Records).Costs(r, q.o.Counter.Count)
	for _, of := range costs {
		name := words(q.short(of.Server, 60)).to(q.url("servers") + href("#"+of.Key))
		if of.Error != "" {
			t.Rows = append(t.Rows, []cell{name, {Text: of.Error, Class: "bad"}})
			continue
		}
		n := of.Calls.Calls
		times := cmp.Or(map[int]string{0: "never", 1: "once", 2: "twice"}[n], grouped(int64(n))+" times")
		cost := words(grouped(of.Schemas) + " tokens a session; called " + times)
		if of.Drop {
			cost.Text, cost.Class = cost.Text+"; drop this", "warn"
		}
		t.Rows = append(t.Rows, append([]cell{name, cost}, sumCells(of.Calls)...))
	}
	return t, err
}

// storeBlocks say what fills the store, and what leaves it next.
func (q *request) storeBlocks() ([]any, error) {
	all, err := q.o.Store.List(q.ofAll(), false)
	if err != nil {
		return nil, err
	}
	known := facts{{"Observations", number(int64(len(all))).to(q.url("obs"))}}
	if q.who.Operator {
		usage, err := q.o.Store.Usage()
		if err != nil {
			return nil, err
		}
		held := bytesCell(usage.Bytes)
		if usage.Quota < backend.Unlimited {
			held.Text, held.Share = held.Text+" of "+size(usage.Quota), float64(usage.Bytes)/float64(usage.Quota)
		}
		known = append(known, fact{"Whole store, of all owners", held}, fact{"Free on the disk", bytesCell(usage.Free)})
	}
	sizes := map[string]int64{}
	fills := &table{Heads: heads("Tool", "#Size"), Caption: "By tool",
		Empty: "Nothing is stored yet. Large outputs of tools appear here."}
	var pinned, aging []observations.Observation
	for _, o := range all {
		if sizes[o.Tool] += o.Bytes; o.Pinned {
			pinned = append(pinned, o)
		} else {
			aging = append(aging, o)
		}
	}
	for _, tool := range most(sizes) {
		at := q.url("search", "in", "observations", "tool", tool)
		fills.Rows = append(fills.Rows, []cell{q.name(tool, 60).to(at), bytesCell(sizes[tool])})
	}
	blocks := []any{known, fills}
	if len(all) == 0 {
		return blocks, nil
	}
	first := func(caption string, all []observations.Observation, less func(a, b observations.Observation) int) {
		t := &table{Heads: append(heads("Expires"), observationHeads...), Caption: caption, Empty: caption + ": none."}
		slices.SortStableFunc(all, less)
		for _, o := range all[:min(len(all), largest)] {
			expires := when(o.Used.Add(q.o.Store.MaxAge()))
			if o.Pinned || q.o.Store.MaxAge() > 100*365*day {
				expires = words("never")
			}
			t.Rows = append(t.Rows, append([]cell{expires}, q.observationRow(&o)...))
		}
		blocks = append(blocks, t)
	}
	newest := func(a, b observations.Observation) int { return observations.Newest(&a, &b) }
	unused := func(a, b observations.Observation) int { return a.Used.Compare(b.Used) }
	first("Pinned", pinned, newest)
	first("What expires next if it is not used, and makes room first", aging, unused)
	first("Largest", all, func(a, b observations.Observation) int { return cmp.Compare(b.Bytes, a.Bytes) })
	return blocks, nil
}
