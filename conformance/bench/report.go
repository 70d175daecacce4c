//go:build linux

package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/perf/benchmath"
	"golang.org/x/perf/benchunit"
)

// summary returns the median of samples and its confidence interval, as benchstat computes them.
func summary(samples []float64) benchmath.Summary {
	if len(samples) == 0 {
		return benchmath.Summary{}
	}
	return benchmath.AssumeNothing.Summary(benchmath.NewSample(samples, &benchmath.DefaultThresholds), 0.95)
}

func median(samples []float64) float64 { return summary(samples).Center }

// over returns the quotient of two medians; 0 if one was not measured.
func over(ours, peer []float64) float64 {
	if len(ours) == 0 || len(peer) == 0 {
		return 0
	}
	return median(ours) / median(peer)
}

// ratio returns our figure divided by the peer's; 0 if there is no peer.
func (r result) ratio() float64 {
	return over(r.ours.samples, r.peer.samples)
}

// servedRatio is ratio for a server that was already running.
func (r result) servedRatio() float64 { return over(r.served.samples, r.peer.samples) }

// unitOf returns the unit of the samples, as benchstat knows it.
func (r row) unitOf() string {
	switch r.Unit {
	case "MB":
		return "B"
	case "%", "files":
		return r.Unit
	}
	return "sec/op"
}

// perUnit is how many of a unit are a second, or in a byte.
var perUnit = map[string]float64{"ms": 1e3, "µs": 1e6, "MB": 1.0 / (1 << 20)}

// figure returns the value compared with the bar. For ratios it prefers that of a running server, which is how models
// call tools.
func (r result) figure() float64 {
	switch {
	case r.Beyond > 0:
		return r.ratio()
	case r.Unit == "":
		return cmp.Or(r.servedRatio(), r.ratio())
	}
	figure := median(r.ours.samples)
	if r.Over {
		figure -= median(r.peer.samples)
	}
	return figure * cmp.Or(perUnit[r.Unit], 1)
}

// maxFigure returns the maximum figure that meets the bar.
func (r row) maxFigure() float64 { return r.Bar / cmp.Or(r.Beyond, 1) }

// free reports whether the row has no bar: its ratio is only reported.
func (r row) free() bool { return r.Bar == 0 && r.Unit == "" }

// skipped returns why the row was not measured; "" if it was, or failed.
func (r result) skipped() string {
	var skipped errSkipped
	_ = errors.As(r.err, &skipped)
	return skipped.cause
}

// oneLine returns an error's text for a table cell.
func oneLine(err error) string {
	why := cmp.Or(result{err: err}.skipped(), err.Error())
	return strings.ReplaceAll(fmt.Sprintf("%.200s", why), "\n", " ")
}

// verdict reports whether the row meets its bar.
func (r result) verdict() string {
	switch {
	case r.skipped() != "":
		return "not measured"
	case r.err != nil:
		return "**failed**"
	case r.free():
		return "–"
	case r.figure() > r.maxFigure():
		return "**no**"
	case r.Unit == "" && r.ratio() > r.Bar:
		return "yes (with its start: no)"
	}
	return "yes"
}

func (r result) barText() string {
	switch {
	case r.free():
		return "–"
	case r.Beyond > 0:
		return fmt.Sprintf("≤ %s (%g of %g %s)", number(r.maxFigure()), r.Bar, r.Beyond, r.Unit)
	}
	return "≤ " + strings.TrimSpace(fmt.Sprintf("%g %s", r.Bar, r.Unit))
}

// number formats n with three significant digits, or as "–" if there is no value.
func number(n float64) string {
	if n == 0 {
		return "–"
	}
	return strconv.FormatFloat(n, 'g', 3, 64)
}

// span formats a number of seconds: "47.00 ms"; "–" if there is none.
func span(seconds float64) string {
	if seconds == 0 {
		return "–"
	}
	s := benchunit.CommonScale([]float64{seconds}, benchunit.Decimal)
	return fmt.Sprintf("%.*f %ss", s.Prec, seconds/s.Factor, s.Prefix)
}

func megabytes(n float64) string {
	if n == 0 {
		return "–"
	}
	return fmt.Sprintf("%.0f", max(1, n/(1<<20)))
}

// markdown formats a table: head holds the two header lines, rows the cells.
func markdown(head string, rows [][]string) string {
	b := strings.Builder{}
	b.WriteString(head)
	for _, cells := range rows {
		fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | "))
	}
	return b.String()
}

// speedTable returns the text for docs/SPEED.md.
func speedTable(results []result, rounds int, machine string) string {
	var cells [][]string
	met, bars := 0, 0
	for _, r := range results {
		if r.err == nil && !r.free() {
			bars++
			if r.figure() <= r.maxFigure() {
				met++
			}
		}
		cells = append(cells, r.cells())
	}
	return fmt.Sprintf("%s. Medians of %d interleaved rounds, or of as many as the last column says. %d of %d rows stand "+
		"at or below their bar.\n\n", machine, rounds, met, bars) +
		markdown("| what | beside | ours | peer | ratio | served | bar | at or below | MB at most, ours / peer | rounds |\n"+
			"|---|---|---:|---:|---:|---:|---:|---|---:|---:|\n", cells)
}

func (r result) cells() []string {
	escape := func(s string) string { return strings.ReplaceAll(s, "|", `\|`) }
	what := escape(r.Family + ": " + r.Name)
	if r.err != nil {
		return []string{what, escape(oneLine(r.err)), "–", "–", "–", "–", r.barText(), r.verdict(), "–", "–"}
	}
	figure := func(s side) string {
		if len(s.samples) == 0 {
			return "–"
		}
		if r.unitOf() != "sec/op" {
			return number(median(s.samples)*cmp.Or(perUnit[r.Unit], 1)) + " " + r.Unit
		}
		return span(median(s.samples))
	}
	ours := figure(r.ours)
	if r.Over {
		ours = span(median(r.ours.samples)-median(r.peer.samples)) + " more"
	}
	return []string{
		what, cmp.Or(r.ours.note, r.version, "–"), ours, figure(r.peer), number(r.ratio()), number(r.servedRatio()),
		r.barText(), r.verdict(), megabytes(r.ours.peak) + " / " + megabytes(r.peer.peak), fmt.Sprint(len(r.ours.samples)),
	}
}

// writeSamples writes all samples to a file, in Go's benchmark format: `go tool benchstat -col /side FILE`.
func writeSamples(path string, results []result) error {
	var b strings.Builder
	for _, r := range results {
		for _, s := range []side{r.ours, r.peer, r.served} {
			for _, n := range s.samples {
				name := strings.ToUpper(r.Family[:1]) + strings.ReplaceAll(r.id()[1:]+"/side="+s.name, " ", "_")
				fmt.Fprintf(&b, "Benchmark%s 1 %v %s\n", name, n, r.unitOf())
			}
		}
	}
	return os.WriteFile(path, []byte(b.String()), 0o644)
}
