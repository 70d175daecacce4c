package viewer

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/session/stats"
	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/tools"
	"github.com/mcp-funnel/mcp-funnel/tools/upstream"
)

// choices are the numbers of days that the overview sums up, today (UTC) included.
var choices = []int64{1, 7, maxDays}

const largest = 8 // rows of a table of the largest

// days returns the chosen number of days, and links to the others.
func (q *request) days() (n int64, others links) {
	if n = q.number("days", 7); !slices.Contains(choices, n) {
		n = 7
	}
	for _, one := range choices {
		others = append(others, link{Text: "last " + content.Plural(one, "day", "days"), To: q.with("days", itoa(one)), On: one == n})
	}
	return n, others
}

// overview is the page of what the calls of the last days cost and saved, and of what the store holds.
func (q *request) overview() (*page, error) {
	days, others := q.days()
	d := q.digest()
	report, byDay := d.since[days].Report(0), make([]stats.Tool, days)
	for i := range byDay {
		byDay[i] = d.byDay[i].Report(0).Total
	}
	var sessions [][]cell
	since := d.today.Add(day * time.Duration(1-days))
	total := map[*group]stats.Tool{}
	for _, g := range d.groups {
		if !g.last().Before(since) {
			total[g] = g.sum.Report(0).Total
		}
	}
	seen := func(a, b *group) int {
		return cmp.Or(cmp.Compare(total[b].Seen, total[a].Seen), b.last().Compare(a.last()))
	}
	for _, g := range slices.SortedFunc(maps.Keys(total), seen)[:min(len(total), largest)] {
		sessions = append(sessions, q.sessionRow(g))
	}
	p := &page{Title: "Overview", Notes: d.notes(), Live: true}
	today := d.today
	d.mu.Unlock()
	of := report.Total
	p.Blocks = []any{others, facts{
		{"Calls", number(int64(of.Calls)).to(q.url("search", "days", itoa(days)))}, {"Sessions", number(int64(report.Sessions)).to(q.url("sessions"))},
		{"Tokens seen", number(of.Seen)}, {"Tokens shown", number(of.Shown + of.Fetched)}, {"Tokens of the tool lists", number(report.List)},
		{"Tokens saved", number(of.Net)}, {"Failed", bad(int64(of.Failed))},
	}}
	if of.Calls == 0 && !q.wait {
		p.Blocks = append(p.Blocks, note{"No client has called a tool in these days. Connect one with mcp-funnel install CLIENT, or choose more days.", ""})
	}
	p.Blocks = append(p.Blocks, section{Title: "Tokens shown and kept by day", Key: "days", Blocks: q.dayChart(today, byDay)},
		section{Title: "By tool", Key: "tools", Blocks: []any{q.toolTable(report.Tools, days)}})
	p.Blocks = append(p.Blocks, q.rereads(report, days)...)
	servers, err := q.serverTable(report, days)
	if err != nil {
		p.Notes = append(p.Notes, err.Error())
	}
	p.Blocks = append(p.Blocks, section{Title: "By wrapped server", Key: "servers", Blocks: servers}, section{Title: "Largest sessions", Key: "sessions", Blocks: []any{
		&table{Heads: q.sessionHeads(), Rows: sessions, Empty: "No session in these days.", Caption: "Whole sessions that went on in these days"}}})
	store, err := q.storeBlocks()
	p.Blocks = append(p.Blocks, section{Title: "Store", Key: "store", Blocks: store})
	return p, err
}

// toolTable has a row for each tool.
func (q *request) toolTable(all []stats.Tool, days int64) *table {
	t := &table{Heads: []cell{words("Tool"), num("Calls"), num("Seen"), num("Shown"), num("Kept"), num("Read later"), num("Saved"), words("Share saved"), num("Failed")},
		Caption: "Seen, shown, kept, read later and saved are tokens", Empty: "No tool was called."}
	for _, of := range all {
		name := words(content.Clip(of.Name, 60)).to(q.toolAt(of.Name, days))
		share := cell{Text: "–"}
		if of.Seen > 0 {
			part := float64(of.Net) / float64(of.Seen)
			share = cell{Text: itoa(int64(100*part)) + " %", Share: max(part, 0)}
		}
		t.Rows = append(t.Rows, []cell{name, number(int64(of.Calls)), number(of.Seen), number(of.Shown), number(of.Kept), number(of.Fetched), number(of.Net), share, bad(int64(of.Failed))})
	}
	return t
}

// toolAt returns the address of the calls of a tool, or of a row for reads of resources and the like.
func (q *request) toolAt(name string, days int64) href {
	return q.url("search", "tool", name, "days", itoa(days))
}

// rereads says how often what was kept was read again.
func (q *request) rereads(r stats.Report, days int64) []any {
	t := &table{Heads: []cell{words("Tool"), num("Receipts"), num("Outputs read later"), num("Reads of over half"), words("")}, Empty: "No output was shown as a receipt."}
	for _, of := range r.Tools {
		if of.Receipts > 0 {
			hint := cell{}
			if of.TooHard {
				hint = cell{Text: "receipts show too little: raise --tool-limit " + of.Name + ".receipt-tokens", Class: "warn"}
			}
			t.Rows = append(t.Rows, []cell{words(content.Clip(of.Name, 60)).to(q.toolAt(of.Name, days)), number(int64(of.Receipts)), number(int64(of.Refetch)), number(int64(of.Ignored)), hint})
		}
	}
	return []any{section{Title: "Read again", Key: "rereads", Blocks: []any{t}}}
}

// serverTable says what each wrapped server costs and saves.
func (q *request) serverTable(r stats.Report, days int64) ([]any, error) {
	t := &table{Heads: []cell{words("Server"), words("Cost"), num("Seen"), num("Shown"), num("Saved")}, Key: "wrapped",
		Caption: "Seen, shown and saved are tokens of all answers; tools of one name count for each server that has it",
		Empty:   "No server is wrapped: see mcp-funnel wrap."}
	called := map[string]stats.Tool{}
	for _, of := range slices.Concat(r.Observed, r.Tools) {
		called[of.Name] = of
	}
	known := upstream.RecordsIn(q.o.Records)
	keys, err := known.Keys()
	for _, key := range keys {
		one, wrong := known.Load(key)
		if wrong != nil || one == nil {
			err = cmp.Or(err, wrong)
			continue
		}
		name, schemas, sum := cmp.Or(one.Server, strings.Join(one.Command, " ")), 0, stats.Tool{}
		for _, raw := range one.Approved {
			schemas += q.o.Counter.Count(string(raw))
			var d struct{ Name string }
			_ = json.Unmarshal(raw, &d) // it was listed, so it has a name
			of, ok := called[one.Server+"_"+d.Name]
			if !ok && !slices.ContainsFunc(q.o.Tools, func(t tools.Tool) bool { return t.Name == d.Name }) {
				of = called[d.Name]
			}
			sum.Calls, sum.Seen, sum.Shown, sum.Net = sum.Calls+of.Calls, sum.Seen+of.Seen, sum.Shown+of.Shown+of.Fetched, sum.Net+of.Net
		}
		times := map[int]string{0: "never", 1: "once", 2: "twice"}[sum.Calls]
		cost := grouped(int64(schemas)) + " tokens a session; called " + cmp.Or(times, grouped(int64(sum.Calls))+" times")
		t.Rows = append(t.Rows, []cell{words(content.Clip(name, 60)).to(q.url("servers")), words(cost), number(sum.Seen), number(sum.Shown), number(sum.Net)})
	}
	return []any{t}, err
}

// storeBlocks say what fills the store, and what leaves it next.
func (q *request) storeBlocks() ([]any, error) {
	owner := q.who.Owner
	if q.everyone() {
		owner = ""
	}
	all, err := q.o.Store.List(owner, false)
	if err != nil {
		return nil, err
	}
	known, pinned, sizes, counts := facts{{"Observations", number(int64(len(all))).to(q.url("obs"))}}, 0, map[string]int64{}, map[string]int64{}
	var aging []observations.Observation
	for _, o := range all {
		sizes[o.Tool] += o.Bytes
		counts[o.Tool]++
		if pinned++; !o.Pinned {
			pinned, aging = pinned-1, append(aging, o)
		}
	}
	known = append(known, fact{"Pinned", number(int64(pinned)).to(q.url("search", "in", "observations", "pinned", "1"))})
	if q.who.Operator {
		usage, err := q.o.Store.Usage()
		if err != nil {
			return nil, err
		}
		held := bytesCell(usage.Bytes)
		held.Text += " of " + size(usage.Quota)
		held.Share = float64(usage.Bytes) / float64(usage.Quota)
		known = append(known, fact{"Whole store, of all owners", held}, fact{"Free on the disk", bytesCell(usage.Free)})
	}
	tools := &table{Heads: []cell{words("Tool"), num("Observations"), num("Size")}, Caption: "By tool", Empty: "Nothing is stored yet."}
	for _, name := range slices.SortedFunc(maps.Keys(sizes), func(a, b string) int { return cmp.Compare(sizes[b], sizes[a]) })[:min(len(sizes), largest)] {
		tools.Rows = append(tools.Rows, []cell{words(content.Clip(name, 60)).to(q.url("search", "in", "observations", "tool", name)), number(counts[name]), bytesCell(sizes[name])})
	}
	slices.SortFunc(all, func(a, b observations.Observation) int { return cmp.Compare(b.Bytes, a.Bytes) })
	slices.SortFunc(aging, func(a, b observations.Observation) int { return a.Used.Compare(b.Used) })
	big, next := &table{Heads: observationHeads, Caption: "Largest"}, &table{Heads: append([]cell{words("Expires")}, observationHeads...), Caption: "What expires next, unless it is used; what was used longest ago also makes room first"}
	for _, o := range all[:min(len(all), largest)] {
		big.Rows = append(big.Rows, q.observationRow(&o))
	}
	for _, o := range aging[:min(len(aging), largest)] {
		expires := words("not by age")
		if age := q.o.Store.MaxAge(); age < 100*365*day {
			expires = when(o.Used.Add(age))
		}
		next.Rows = append(next.Rows, append([]cell{expires}, q.observationRow(&o)...))
	}
	return []any{known, tools, big, next}, nil
}
