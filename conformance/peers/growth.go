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

// growth is one figure at three sizes, each about ten times the one before.
type growth struct {
	name, unit string
	at         func(step int) func(context.Context) (*duel, error)

	steps []step
	err   error
}

type step struct {
	work       float64 // MB or files
	ours, peer time.Duration
}

// stepTime bounds the rounds of one step.
const stepTime = 6 * time.Second

func (b *bench) growths() []growth {
	sized := func(last int64, at func(int64) func(context.Context) (*duel, error)) func(int) func(context.Context) (*duel, error) {
		return func(step int) func(context.Context) (*duel, error) { return at(last / []int64{100, 10, 1}[step]) }
	}
	pattern := func(c looked) func(int) func(context.Context) (*duel, error) {
		return sized(grepSize, func(size int64) func(context.Context) (*duel, error) { return b.grepping(c, size, true) })
	}
	below := func(at func(path string) func(context.Context) (*duel, error)) func(int) func(context.Context) (*duel, error) {
		return func(step int) func(context.Context) (*duel, error) {
			return at([]string{"kernel", "drivers/net", "."}[step])
		}
	}
	query := func(filter string) func(int) func(context.Context) (*duel, error) {
		return sized(jqSize, func(size int64) func(context.Context) (*duel, error) { return b.querying(filter, size) })
	}
	return []growth{
		{name: "latency added, JSON", unit: "MB", at: sized(5<<20, b.adding)},
		{name: "tokens, JSON", unit: "MB", at: sized(10<<20, func(size int64) func(context.Context) (*duel, error) { return b.counting("JSON", size) })},
		{name: "grep, a literal", unit: "MB", at: pattern(literal)},
		{name: "grep, no literal", unit: "MB", at: pattern(noLiteral)},
		{name: "grep, dense", unit: "MB", at: pattern(everyLine)},
		{name: "search, a rare literal", unit: "files", at: below(func(path string) func(context.Context) (*duel, error) { return b.searching(b.rare(), "matches", path) })},
		{name: "listing, kept", unit: "files", at: below(func(path string) func(context.Context) (*duel, error) { return b.listing("list", path) })},
		{name: "jq, streamable", unit: "MB", at: query(streamable)},
		{name: "jq, not streamable", unit: "MB", at: query(materialised)},
		{name: "keep from a file", unit: "MB", at: sized(keepSize, func(size int64) func(context.Context) (*duel, error) { return b.keeping(size, false) })},
		{name: "slice deep", unit: "MB", at: sized(keepSize, b.slicing)},
	}
}

// measureGrowth measures what is asked for, the last step too: it is the same work as a row's, and a second look at it.
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
		fmt.Fprintf(os.Stderr, "growth/%s: %s (%.0f s)\n", g.name, strings.Join(g.cells()[1:], ", "), time.Since(began).Seconds())
		all = append(all, g)
	}
	return all
}

func (b *bench) measureStep(ctx context.Context, setup func(context.Context) (*duel, error)) (s step, err error) {
	d, err := setup(ctx)
	if err != nil {
		return s, err
	}
	sides := []contestant{d.ours, d.peer}
	took := make([][]time.Duration, len(sides))
	began := time.Now()
	for round := 0; round == 0 || round < 3 && time.Since(began) < stepTime; round++ {
		for i, c := range sides {
			one, err := c.once(ctx, false)
			if err != nil {
				return s, err
			}
			took[i] = append(took[i], one.took)
		}
	}
	return step{work: d.work, ours: slices.Min(took[0]), peer: slices.Min(took[1])}, nil
}

// exponent is the power of the work by which time grew from one step to the next: 1 is as fast as the work, 2 its square.
func exponent(from, to step) float64 {
	return math.Log(to.ours.Seconds()/from.ours.Seconds()) / math.Log(to.work/from.work)
}

// faster is the exponent from which a cost is told to grow faster than its work: noise stays below it.
const faster = 1.15

func (g growth) cells() []string {
	cells := []string{g.name}
	if g.err != nil {
		return append(cells, strings.ReplaceAll(fmt.Sprintf("%.200s", g.err), "\n", " "), "–", "–", "–", "–")
	}
	for _, s := range g.steps {
		cells = append(cells, fmt.Sprintf("%s %s: %s, %s (%s)", number(s.work), g.unit, span(s.ours), perUnit(s, g.unit), number(float64(s.ours)/float64(s.peer))))
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
	var b strings.Builder
	fmt.Fprintf(&b, "\nThe same at three sizes: our best time, what that is for each MB or file, in brackets the ratio to the peer. An exponent of 1 says that ten times the work takes "+
		"ten times as long, of 0.5 that it takes three times as long: from the first to the second size, and from the second to the third; over %g at the last, the cost grows faster than its work.\n\n", faster)
	b.WriteString("| what | 1× | 10× | 100× | exponents | grows faster than its work |\n|---|---:|---:|---:|---:|---|\n")
	for _, g := range growths {
		fmt.Fprintf(&b, "| %s |\n", strings.Join(g.cells(), " | "))
	}
	return b.String()
}
