//go:build linux

package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"time"
)

// growth is one measurement at three sizes, each about ten times the previous size.
type growth struct {
	name, unit string
	at         func(step int) setup

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
	sized := func(last int64, at func(int64) setup) func(int) setup {
		return func(step int) setup { return at(last / []int64{100, 10, 1}[step]) }
	}
	pattern := func(c looked) func(int) setup {
		return sized(grepSize, func(size int64) setup { return b.grepping(c, size, true) })
	}
	query := func(filter string) func(int) setup {
		return sized(jqSize, func(size int64) setup { return b.querying(filter, size) })
	}
	below := func(at func(path string) setup) func(int) setup {
		return func(step int) setup { return at([]string{"kernel", "drivers/net", "."}[step]) }
	}
	return []growth{
		{name: "latency added, JSON", unit: "MB", at: sized(5<<20, b.adding)},
		{name: "tokens, JSON", unit: "MB", at: sized(10<<20, func(size int64) setup { return b.counting("JSON", size) })},
		{name: "grep, a literal", unit: "MB", at: pattern(literal)},
		{name: "grep, no literal", unit: "MB", at: pattern(noLiteral)},
		{name: "grep, dense", unit: "MB", at: pattern(everyLine)},
		{name: "search, a rare literal", unit: "files", at: below(
			func(path string) setup { return b.searching(b.rare(), "matches", path) },
		)},
		{name: "listing, kept", unit: "files", at: below(func(path string) setup { return b.listing("list", path) })},
		{name: "jq, streamable", unit: "MB", at: query(streamable)},
		{name: "jq, not streamable", unit: "MB", at: query(materialised)},
		{name: "keep from a file", unit: "MB", at: sized(keepSize, func(size int64) setup { return b.keeping(size, false) })},
		{name: "slice deep", unit: "MB", at: sized(keepSize, b.slicing)},
	}
}

// measureGrowth measures the selected growths at all three sizes. The last size repeats the work of a table row, as a
// second measurement.
func (b *bench) measureGrowth(ctx context.Context) []growth {
	var all []growth
	for _, g := range b.growths() {
		if !b.only.MatchString("growth/" + g.name) {
			continue
		}
		began := time.Now()
		for i := range 3 {
			s, err := b.measureStep(ctx, g.at(i))
			if err != nil {
				g.err = err
				break
			}
			g.steps = append(g.steps, s)
		}
		fmt.Fprintf(
			os.Stderr, "growth/%s: %s (%.0f s)\n", g.name, strings.Join(g.cells()[1:], ", "), time.Since(began).Seconds(),
		)
		all = append(all, g)
	}
	return all
}

func (b *bench) measureStep(ctx context.Context, setup setup) (s step, err error) {
	d, err := setup(ctx)
	if err != nil {
		return s, err
	}
	var took [2][]time.Duration
	began := time.Now()
	err = interleave(3, 2, func(round int) bool { return round > 0 && time.Since(began) > stepTime }, func(i, _ int) error {
		one, err := []contestant{d.ours, d.peer}[i].once(ctx, false)
		took[i] = append(took[i], one.took)
		return err
	})
	if err != nil {
		return s, err
	}
	return step{work: d.work, ours: slices.Min(took[0]), peer: slices.Min(took[1])}, nil
}

// exponent returns the power of the work with which the time grew from one step to the next: 1 is linear, 2
// quadratic.
func exponent(from, to step) float64 {
	return math.Log(to.ours.Seconds()/from.ours.Seconds()) / math.Log(to.work/from.work)
}

// faster is the exponent from which the table reports superlinear growth; noise stays below it.
const faster = 1.15

func (g growth) cells() []string {
	cells := []string{g.name}
	if g.err != nil {
		return append(cells, oneLine(g.err), "–", "–", "–", "–")
	}
	for _, s := range g.steps {
		cells = append(
			cells,
			fmt.Sprintf(
				"%s %s: %s, %s (%s)", number(s.work), g.unit, span(s.ours), perUnit(s, g.unit),
				number(float64(s.ours)/float64(s.peer)),
			),
		)
	}
	last := exponent(g.steps[1], g.steps[2])
	verdict := "no"
	if last > faster {
		verdict = "**yes**"
	}
	return append(cells, fmt.Sprintf("%.2f, %.2f", exponent(g.steps[0], g.steps[1]), last), verdict)
}

func perUnit(s step, unit string) string {
	one := time.Duration(float64(s.ours) / s.work)
	if one < time.Millisecond {
		return fmt.Sprintf("%s µs/%s", number(float64(one)/1000), strings.TrimSuffix(unit, "s"))
	}
	return fmt.Sprintf("%s/%s", span(one), strings.TrimSuffix(unit, "s"))
}

func growthTable(growths []growth) string {
	var rows [][]string
	for _, g := range growths {
		rows = append(rows, g.cells())
	}
	return fmt.Sprintf("\nThe same at three sizes: our best time, what that is for each MB or file, in brackets the ratio to the peer. An exponent of 1 says that ten times the work takes "+
		"ten times as long, of 0.5 that it takes three times as long: from the first to the second size, and from the second to the third; over %g at the last, the cost grows faster than its work.\n\n", faster) +
		markdown("| what | 1× | 10× | 100× | exponents | grows faster than its work |\n|---|---:|---:|---:|---:|---|\n", rows)
}
