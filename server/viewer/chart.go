package viewer

import (
	"fmt"
	"html/template"
	"slices"
	"strconv"
	"time"

	"github.com/mcp-funnel/mcp-funnel/session/stats"
)

// bar returns a bar that is filled by a share from 0 to 1.
func bar(share float64) template.HTML {
	return template.HTML(fmt.Sprintf(`<svg class="bar" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">`+ //nolint:gosec // numbers only
		`<rect width="100" height="8" class="rest"/><rect width="%.1f" height="8"/></svg>`, 100*min(max(share, 0), 1)))
}

// dayChart shows the tokens of each day, today first, as bars and as a table.
func (q *request) dayChart(today time.Time, days []stats.Tool) []any {
	most, n := int64(1), len(days)
	for _, of := range days {
		most = max(most, of.Shown+of.Fetched, of.Kept)
	}
	t := &table{Heads: []cell{words("Day (UTC)"), num("Calls"), num("Seen"), num("Shown"), num("Kept")}}
	svg := `<svg class="chart" viewBox="0 0 ` + strconv.Itoa(10*n) + ` 100" preserveAspectRatio="none" role="img" aria-label="Tokens by day; the numbers are in the table below">`
	for i, of := range days {
		at, x, shown := today.Add(-day*time.Duration(i)).Format(time.DateOnly), 10*(n-1-i), of.Shown+of.Fetched
		for k, v := range []int64{of.Kept, shown} {
			h := 100 * float64(v) / float64(most)
			svg += fmt.Sprintf(`<rect x="%d" y="%.2f" width="4" height="%.2f" class="%s"><title>%s: %s tokens %s</title></rect>`,
				x+1+4*k, 100-h, h, []string{"rest", ""}[k], at, grouped(v), []string{"kept", "shown"}[k])
		}
		t.Rows = append(t.Rows, []cell{words(at).to(q.url("search", "day", at)), number(int64(of.Calls)), number(of.Seen), number(shown), number(of.Kept)})
	}
	svg += `</svg><p class="dim">` + today.Add(-day*time.Duration(n-1)).Format(time.DateOnly) + " to " + today.Format(time.DateOnly) +
		" (UTC); the highest bar has " + grouped(most) + ` tokens. <svg class="swatch" viewBox="0 0 8 8" aria-hidden="true"><rect width="8" height="8"/></svg> shown ` +
		`<svg class="swatch" viewBox="0 0 8 8" aria-hidden="true"><rect width="8" height="8" class="rest"/></svg> kept</p>`
	return []any{markup(svg), section{Title: "The numbers", Closed: true, Blocks: []any{t}}}
}

// contextChart shows how full the context of a session was before each call that knew it; nothing if none did.
func contextChart(calls []*callAt) []any {
	calls = slices.DeleteFunc(slices.Clone(calls), func(c *callAt) bool { return c.spent+c.left == 0 })
	if len(calls) < 2 {
		return nil
	}
	most, spent, limit := 1, "", ""
	for _, c := range calls {
		most = max(most, c.spent+c.left, c.spent)
	}
	step := len(calls)/500 + 1
	for i := 0; i < len(calls); i += step {
		x, c := 1000*float64(i)/float64(len(calls)-1), calls[i]
		spent += fmt.Sprintf("%.1f,%.1f ", x, 100-100*float64(c.spent)/float64(most))
		limit += fmt.Sprintf("%.1f,%.1f ", x, 100-100*float64(c.spent+c.left)/float64(most))
	}
	last := calls[len(calls)-1]
	return []any{section{Title: "Context", Key: "context", Blocks: []any{
		markup(`<svg class="chart line" viewBox="0 0 1000 100" preserveAspectRatio="none" role="img" aria-label="Tokens in the context before each call">` +
			`<polyline class="rest" points="` + limit + `"/><polyline points="` + spent + `"/></svg>`),
		note{"Before its last call " + grouped(int64(last.spent)) + " tokens were used and " + grouped(int64(last.left)) + " left. The line shows " + grouped(int64(len(calls))) + " calls; the other one is their limit.", ""},
	}}}
}
