//go:build linux

package main

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// median is the middle one, of an even number the upper of the two; 0 of none.
func median[T cmp.Ordered](of []T) T {
	var none T
	if len(of) == 0 {
		return none
	}
	sorted := slices.Sorted(slices.Values(of))
	return sorted[len(sorted)/2]
}

// ratio is how many times the peer's time ours takes; 0 where there is no peer.
func (r result) ratio() float64 {
	switch {
	case len(r.ours) > 0 && len(r.peer) > 0:
		return float64(median(r.ours)) / float64(median(r.peer))
	case r.other > 0:
		return r.value / r.other
	}
	return 0
}

// servedRatio is that of a server which ran before.
func (r result) servedRatio() float64 {
	if len(r.served) == 0 || len(r.peer) == 0 {
		return 0
	}
	return float64(median(r.served)) / float64(median(r.peer))
}

// figure is what the bar is held against: the way a model asks, where that was measured.
func (r result) figure() float64 {
	switch {
	case r.beyond > 0:
		return r.ratio()
	case r.unit == "":
		if served := r.servedRatio(); served > 0 {
			return served
		}
		return r.ratio()
	case r.unit == "ms":
		return float64(median(r.ours)) / float64(time.Millisecond)
	case r.unit == "µs":
		return float64(median(r.ours)) / float64(time.Microsecond)
	}
	return r.value
}

// most is what the figure is to be at most.
func (r row) most() float64 {
	if r.beyond > 0 {
		return r.bar / r.beyond
	}
	return r.bar
}

// verdict says whether the row stands at or below its bar.
func (r result) verdict() string {
	switch {
	case r.err != nil:
		return "**failed**"
	case r.skipped != "":
		return "not measured"
	case r.free():
		return "–"
	case r.figure() > r.most():
		return "**no**"
	case r.unit == "" && r.ratio() > r.bar:
		return "yes (with its start: no)"
	}
	return "yes"
}

func (r result) brief() string {
	switch {
	case r.err != nil:
		return "failed: " + r.err.Error()
	case r.skipped != "":
		return r.skipped
	}
	return fmt.Sprintf("ours %s, peer %s, ratio %s, served %s, bar %s: %s", r.oursText(), r.peerText(), number(r.ratio()), number(r.servedRatio()), r.barText(), strings.ReplaceAll(r.verdict(), "*", ""))
}

func (r result) oursText() string {
	if len(r.ours) > 0 {
		return span(median(r.ours))
	}
	return number(r.value) + " " + r.unit
}

func (r result) peerText() string {
	switch {
	case len(r.peer) > 0:
		return span(median(r.peer))
	case r.other > 0:
		return number(r.other) + " " + r.unit
	}
	return "–"
}

// free says that a row has no bar: its ratio is only told.
func (r row) free() bool { return r.bar == 0 && r.unit == "" }

func (r result) barText() string {
	if r.free() {
		return "–"
	}
	if r.beyond > 0 {
		return fmt.Sprintf("≤ %s (%g of %g %s)", number(r.most()), r.bar, r.beyond, r.unit)
	}
	return "≤ " + strings.TrimSpace(fmt.Sprintf("%g %s", r.bar, r.unit))
}

// number has three digits that count; "–" is none.
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

func span(d time.Duration) string {
	switch {
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

// table is what goes into the page.
func table(results []result, growths []growth, rounds int, machine string) string {
	var b strings.Builder
	cell := func(text string) string { return strings.ReplaceAll(text, "|", `\|`) }
	met, held := 0, 0
	for _, r := range results {
		if r.err == nil && r.skipped == "" && !r.free() {
			held++
			if r.figure() <= r.most() {
				met++
			}
		}
	}
	fmt.Fprintf(&b, "%s. Medians of %d interleaved rounds, or of as many as the last column says. %d of %d rows stand at or below their bar.\n\n", machine, rounds, met, held)
	b.WriteString("| what | beside | ours | peer | ratio | served | bar | at or below | MB at most, ours / peer | rounds |\n|---|---|---:|---:|---:|---:|---:|---|---:|---:|\n")
	for _, r := range results {
		peer, n := r.peerName(), max(len(r.ours), 1)
		if r.figures != nil {
			n = 0
		}
		cells := []string{cell(r.family + ": " + r.name), peer, r.oursText(), r.peerText(), number(r.ratio()), number(r.servedRatio()), r.barText(), r.verdict(), megabytes(r.oursPeak) + " / " + megabytes(r.otherPeak), fmt.Sprint(n)}
		if r.figures != nil {
			cells[9] = "–"
		}
		if r.skipped != "" || r.err != nil {
			why := r.skipped
			if r.err != nil {
				why = strings.ReplaceAll(fmt.Sprintf("%.200s", r.err), "\n", " ")
			}
			cells = []string{cell(r.family + ": " + r.name), cell(why), "–", "–", "–", "–", r.barText(), r.verdict(), "–", "–"}
		}
		fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | "))
	}
	if len(growths) > 0 {
		b.WriteString(growthTable(growths))
	}
	return b.String()
}

// peerName is the peer with its version.
func (r result) peerName() string {
	if r.note != "" {
		return r.note
	}
	if r.version != "" {
		return r.version
	}
	return "–"
}
