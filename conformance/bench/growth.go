//go:build linux

package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/perf/benchunit"
)

// growth is a row at three sizes, each about ten times the previous size.
type growth struct {
	Name, Of, Unit string
	Size           int64
	Paths          []string

	steps []step
	err   error
}

type step struct{ work, ours, peer float64 } // work in bytes or in units; times in seconds

// stepTime bounds the rounds of one step.
const stepTime = 6 * time.Second

// measureGrowth measures the selected growths at all three sizes. The last size repeats the work of a table row, as a
// second measurement.
func (b *bench) measureGrowth(ctx context.Context, only *regexp.Regexp) (all []growth) {
	for _, g := range b.table.Growth.Rows {
		if !only.MatchString("growth/" + g.Name) {
			continue
		}
		began := time.Now()
		i := slices.IndexFunc(b.table.rows, func(v values) bool { return described(v).id() == g.Of })
		for n := range 3 {
			var one step
			if one, g.err = b.step(ctx, g, b.table.rows[i], n); g.err != nil {
				break
			}
			g.steps = append(g.steps, one)
		}
		text := strings.Join(g.cells()[1:], ", ")
		fmt.Fprintf(os.Stderr, "growth/%s: %s (%.0f s)\n", g.Name, text, time.Since(began).Seconds())
		all = append(all, g)
	}
	return all
}

// step measures the n-th of three sizes.
func (b *bench) step(ctx context.Context, g growth, v values, n int) (s step, err error) {
	v = maps.Clone(v)
	v["served"] = false
	if g.Paths != nil {
		v["path"] = g.Paths[n]
	} else {
		v["size"] = int64(cmp.Or(float64(g.Size), described(v).Size) / math.Pow10(2-n))
	}
	r := result{}
	if r.row, err = b.expand(ctx, v); err != nil {
		return s, err
	}
	s.work = r.Size
	if r.Count != "" {
		out, err := b.script(ctx, r.dir(), r.Count)
		if err != nil {
			return s, err
		}
		if s.work, err = strconv.ParseFloat(strings.TrimSpace(out), 64); err != nil {
			return s, err
		}
	}
	err = b.runPair(ctx, &r, 3, func(round int, since time.Duration) bool { return round > 0 && since > stepTime })
	if err == nil {
		s.ours, s.peer = slices.Min(r.ours.samples), slices.Min(r.peer.samples)
	}
	return s, err
}

// exponent returns the power of the work with which the time grew from one step to the next: 1 is linear, 2
// quadratic.
func exponent(from, to step) float64 {
	return math.Log(to.ours/from.ours) / math.Log(to.work/from.work)
}

// superlinear is the exponent from which the table reports superlinear growth; noise stays below it.
const superlinear = 1.15

func (g growth) cells() []string {
	cells := []string{g.Name}
	if g.err != nil {
		return append(cells, oneLine(g.err), "–", "–", "–", "–")
	}
	for _, s := range g.steps {
		work, each, one := fmt.Sprintf("%.0f %s", s.work, g.Unit), s.ours/s.work, strings.TrimSuffix(g.Unit, "s")
		if g.Unit == "" {
			work, each, one = benchunit.Scale(s.work, benchunit.Binary)+"B", each*(1<<20), "MiB"
		}
		cells = append(cells, fmt.Sprintf("%s: %s, %s/%s (%s)", work, span(s.ours), span(each), one, number(s.ours/s.peer)))
	}
	last := exponent(g.steps[1], g.steps[2])
	verdict := "no"
	if last > superlinear {
		verdict = "**yes**"
	}
	return append(cells, fmt.Sprintf("%.2f, %.2f", exponent(g.steps[0], g.steps[1]), last), verdict)
}

const growthIntroduction = `
The same at three sizes: our best time, what that is for each MiB or thing, in brackets the ratio to the peer. ` +
	`An exponent of 1 says that ten times the work takes ten times as long, of 0.5 that it takes three times as long: ` +
	`from the first to the second size, and from the second to the third; over %g at the last, the cost grows faster ` +
	"than its work.\n\n"

// growthTable returns the second table of docs/SPEED.md; "" if nothing was measured.
func growthTable(growths []growth) string {
	if len(growths) == 0 {
		return ""
	}
	var rows [][]string
	for _, g := range growths {
		rows = append(rows, g.cells())
	}
	return fmt.Sprintf(growthIntroduction, superlinear) + markdown("| what | 1× | 10× | 100× | exponents | "+
		"grows faster than its work |\n|---|---:|---:|---:|---:|---|\n", rows)
}
