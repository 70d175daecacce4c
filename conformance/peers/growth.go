//go:build linux

package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"
)

// growth is one measurement at three sizes, each about ten times the previous size.
type growth struct {
	name, unit string
	setups     [3]setup

	steps []step
	err   error
}

type step struct {
	work       float64 // in MB or number of files
	ours, peer time.Duration
}

// stepTime bounds the rounds of one step.
const stepTime = 6 * time.Second

func (b *bench) growths() []growth {
	sized := func(last int64, of func(int64) setup) [3]setup {
		return [3]setup{of(last / 100), of(last / 10), of(last)}
	}
	below := func(in func(path string) setup) [3]setup { return [3]setup{in("kernel"), in("drivers/net"), in(".")} }
	pattern := func(p string) [3]setup {
		return sized(grepSize, func(size int64) setup { return b.grepping(b.log, p, "", size, true) })
	}
	query := func(filter string) [3]setup {
		return sized(jqSize, func(size int64) setup { return b.querying(filter, size) })
	}
	all := []growth{
		{name: "latency added, JSON", unit: "MB", setups: sized(5<<20, b.adding)},
		{name: "tokens, JSON", unit: "MB", setups: sized(10<<20, func(n int64) setup { return b.counting("JSON", n) })},
		{name: "grep, a literal", unit: "MB", setups: pattern(literal)},
		{name: "grep, no literal", unit: "MB", setups: pattern(noLiteral)},
		{name: "grep, dense", unit: "MB", setups: pattern("e")},
		{name: "search, a rare literal", unit: "files", setups: below(func(path string) setup {
			return b.searching(b.source, b.rareLiteral(), "matches", path)
		})},
		{name: "listing, kept", unit: "files", setups: below(func(path string) setup { return b.listing("list", path) })},
		{name: "find, stat", unit: "files", setups: sized(200_000, func(n int64) setup {
			return b.finding(int(n), map[string]any{"type": "file", "show": "stat"}, wordCount...)
		})},
		{name: "jq, streamable", unit: "MB", setups: query(streamable)},
		{name: "jq, not streamable", unit: "MB", setups: query(materialised)},
		{name: "jq, an object built by reduce", unit: "thousands", setups: sized(500_000, func(n int64) setup {
			return b.slurping(built, ndjson, n)
		})},
		{name: "keep from a file", unit: "MB", setups: sized(keepSize, func(n int64) setup {
			return b.keeping(b.log, n, false)
		})},
		{name: "slice deep", unit: "MB", setups: sized(keepSize, b.slicing)},
	}
	for _, k := range kept {
		all = append(all, growth{name: "keep " + k.name, unit: "MB", setups: sized(keptSize, func(n int64) setup {
			return b.keeping(b.kept(k.name), n, false)
		})})
	}
	return all
}

// measureGrowth measures the selected growths at all three sizes. The last size repeats the work of a table row, as a
// second measurement.
func (b *bench) measureGrowth(ctx context.Context, only *regexp.Regexp) (all []growth) {
	for _, g := range b.growths() {
		if !only.MatchString("growth/" + g.name) {
			continue
		}
		began := time.Now()
		for _, setup := range g.setups {
			p, err := setup(ctx)
			var got result
			if err == nil {
				p.served = nil
				got, err = b.runPair(ctx, p, 3, func(round int, since time.Duration) bool {
					return round > 0 && since > stepTime
				})
			}
			if g.err = err; err != nil {
				break
			}
			g.steps = append(g.steps, step{p.work, slices.Min(got.ours), slices.Min(got.peer)})
		}
		text := strings.Join(g.cells()[1:], ", ")
		fmt.Fprintf(os.Stderr, "growth/%s: %s (%.0f s)\n", g.name, text, time.Since(began).Seconds())
		all = append(all, g)
	}
	return all
}

// exponent returns the power of the work with which the time grew from one step to the next: 1 is linear, 2
// quadratic.
func exponent(from, to step) float64 {
	return math.Log(to.ours.Seconds()/from.ours.Seconds()) / math.Log(to.work/from.work)
}

// superlinear is the exponent from which the table reports superlinear growth; noise stays below it.
const superlinear = 1.15

func (g growth) cells() []string {
	cells := []string{g.name}
	if g.err != nil {
		return append(cells, oneLine(g.err), "–", "–", "–", "–")
	}
	one := strings.TrimSuffix(g.unit, "s")
	for _, s := range g.steps {
		each := time.Duration(float64(s.ours) / s.work)
		text := span(each)
		if each < time.Millisecond {
			text = number(float64(each)/1000) + " µs"
		}
		ratio := number(float64(s.ours) / float64(s.peer))
		cells = append(cells, fmt.Sprintf("%s %s: %s, %s/%s (%s)", number(s.work), g.unit, span(s.ours), text, one, ratio))
	}
	last := exponent(g.steps[1], g.steps[2])
	verdict := "no"
	if last > superlinear {
		verdict = "**yes**"
	}
	return append(cells, fmt.Sprintf("%.2f, %.2f", exponent(g.steps[0], g.steps[1]), last), verdict)
}

const growthIntroduction = `
The same at three sizes: our best time, what that is for each MB or file, in brackets the ratio to the peer. ` +
	`An exponent of 1 says that ten times the work takes ten times as long, of 0.5 that it takes three times as long: ` +
	`from the first to the second size, and from the second to the third; over %g at the last, the cost grows faster ` +
	"than its work.\n\n"

func growthTable(growths []growth) string {
	var rows [][]string
	for _, g := range growths {
		rows = append(rows, g.cells())
	}
	return fmt.Sprintf(growthIntroduction, superlinear) + markdown("| what | 1× | 10× | 100× | exponents | "+
		"grows faster than its work |\n|---|---:|---:|---:|---:|---|\n", rows)
}
