//go:build linux

package main

import (
	"cmp"
	"fmt"
	"math"
	"strings"
	"time"
)

// markdown formats a table: head holds the two header lines, rows the cells.
func markdown(head string, rows [][]string) string {
	b := strings.Builder{}
	b.WriteString(head)
	for _, cells := range rows {
		fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | "))
	}
	return b.String()
}

// oneLine returns an error's text for a table cell.
func oneLine(err error) string { return strings.ReplaceAll(fmt.Sprintf("%.200s", err), "\n", " ") }

// timesPeer returns the median of times divided by the peer's median time; 0 if either was not measured.
func (r result) timesPeer(times []time.Duration) float64 {
	if len(times) == 0 || len(r.peer) == 0 {
		return 0
	}
	return float64(median(times)) / float64(median(r.peer))
}

// ratio returns our figure divided by the peer's; 0 if there is no peer.
func (r result) ratio() float64 {
	if len(r.ours) == 0 && r.other > 0 {
		return r.value / r.other
	}
	return r.timesPeer(r.ours)
}

// servedRatio is ratio for a server that was already running.
func (r result) servedRatio() float64 { return r.timesPeer(r.served) }

// figure returns the value compared with the bar. For ratios it prefers that of a running server, which is how models
// call tools.
func (r result) figure() float64 {
	switch {
	case r.beyond > 0:
		return r.ratio()
	case r.unit == "":
		return cmp.Or(r.servedRatio(), r.ratio())
	case r.unit == "ms":
		return float64(median(r.ours)) / float64(time.Millisecond)
	case r.unit == "µs":
		return float64(median(r.ours)) / float64(time.Microsecond)
	}
	return r.value
}

// verdict reports whether the row meets its bar.
func (r result) verdict() string {
	switch {
	case r.err != nil:
		return "**failed**"
	case r.skipped != "":
		return "not measured"
	case r.free():
		return "–"
	case r.figure() > r.maxFigure():
		return "**no**"
	case r.unit == "" && r.ratio() > r.bar:
		return "yes (with its start: no)"
	}
	return "yes"
}

func (r result) barText() string {
	if r.free() {
		return "–"
	}
	if r.beyond > 0 {
		return fmt.Sprintf("≤ %s (%g of %g %s)", number(r.maxFigure()), r.bar, r.beyond, r.unit)
	}
	return "≤ " + strings.TrimSpace(fmt.Sprintf("%g %s", r.bar, r.unit))
}

// number formats n with three significant digits, or as "–" if there is no value.
func number(n float64) string {
	switch {
	case n == 0:
		return "–"
	case n >= 100:
		return fmt.Sprintf("%.0f", n)
	case n >= 10:
		return fmt.Sprintf("%.1f", n)
	case n >= 0.1:
		return fmt.Sprintf("%.2f", n)
	}
	return fmt.Sprintf("%.4f", n)
}

// span formats a duration, or "–" if there is none.
func span(d time.Duration) string {
	switch {
	case d == 0:
		return "–"
	case d >= 10*time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d >= time.Second:
		return fmt.Sprintf("%.2f s", d.Seconds())
	case d >= time.Millisecond:
		return number(float64(d)/float64(time.Millisecond)) + " ms"
	}
	return fmt.Sprintf("%d µs", d.Microseconds())
}

func megabytes(n int64) string {
	if n == 0 {
		return "–"
	}
	return fmt.Sprintf("%.0f", math.Max(1, float64(n)/(1<<20)))
}

// table returns the text for docs/SPEED.md.
func table(results []result, growths []growth, rounds int, machine string) string {
	var cells [][]string
	met, bars := 0, 0
	for _, r := range results {
		if r.skipped == "" && r.err == nil && !r.free() {
			bars++
			if r.figure() <= r.maxFigure() {
				met++
			}
		}
		cells = append(cells, r.cells())
	}
	text := fmt.Sprintf("%s. Medians of %d interleaved rounds, or of as many as the last column says. %d of %d rows stand "+
		"at or below their bar.\n\n", machine, rounds, met, bars) +
		markdown("| what | beside | ours | peer | ratio | served | bar | at or below | MB at most, ours / peer | rounds |\n"+
			"|---|---|---:|---:|---:|---:|---:|---|---:|---:|\n", cells)
	if len(growths) > 0 {
		text += growthTable(growths)
	}
	return text
}

func (r result) cells() []string {
	escape := func(s string) string { return strings.ReplaceAll(s, "|", `\|`) }
	what := escape(r.family + ": " + r.name)
	if r.skipped != "" || r.err != nil {
		why := r.skipped
		if r.err != nil {
			why = oneLine(r.err)
		}
		return []string{what, escape(why), "–", "–", "–", "–", r.barText(), r.verdict(), "–", "–"}
	}
	rounds, ours, peer := fmt.Sprint(max(len(r.ours), 1)), number(r.value)+" "+r.unit, span(median(r.peer))
	if r.figures != nil {
		rounds = "–"
	}
	if len(r.ours) > 0 {
		ours = span(median(r.ours))
	} else if r.other > 0 {
		peer = number(r.other) + " " + r.unit
	}
	return []string{
		what, cmp.Or(r.note, r.version, "–"), ours, peer, number(r.ratio()), number(r.servedRatio()),
		r.barText(), r.verdict(), megabytes(r.oursPeak) + " / " + megabytes(r.peerPeak), rounds,
	}
}
