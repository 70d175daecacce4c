//go:build linux

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
)

// A row is reported if its ratio is at least doubled times the recorded ratio in each of tries consecutive runs. The
// run does not fail: on a shared machine, a busy neighbor can triple the start of a process for minutes.
const (
	doubled = 2.0
	tries   = 3
)

// servedSuffix marks the ratio of a running server.
const servedSuffix = " (served)"

// ratios returns the ratios that can be compared with those of another day, by name.
func ratios(results []result) map[string]float64 {
	all := map[string]float64{}
	for _, r := range results {
		if r.err != nil || r.Noisy {
			continue
		}
		for name, n := range map[string]float64{r.id(): r.ratio(), r.id() + servedSuffix: r.servedRatio()} {
			if n > 0 {
				all[name] = math.Round(n*1e4) / 1e4
			}
		}
	}
	return all
}

func writeRatios(path string, results []result) error {
	text, err := json.MarshalIndent(ratios(results), "", "\t") // sorts the keys
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}

func readRatios(path string) (recorded map[string]float64, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, &recorded); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return recorded, nil
}

// grown returns the names whose ratio has doubled, and those without a recorded ratio.
func grown(recorded, now map[string]float64) (worse, unknown []string) {
	for _, name := range slices.Sorted(maps.Keys(now)) {
		if was, ok := recorded[name]; !ok {
			unknown = append(unknown, name)
		} else if now[name] >= doubled*was {
			worse = append(worse, name)
		}
	}
	return worse, unknown
}

// compareWith measures rows again if their ratio has doubled, and reports those that doubled in every try on standard
// error. It fails only if a row has no recorded ratio.
func (b *bench) compareWith(ctx context.Context, path string, results []result) error {
	recorded, err := readRatios(path)
	if err != nil {
		return err
	}
	now := ratios(results)
	worse, unknown := grown(recorded, now)
	if len(unknown) > 0 {
		return fmt.Errorf("not recorded in %s: %s; scripts/bench-peers -small -record %[1]s",
			path, strings.Join(unknown, ", "))
	}
	for try := 1; try < tries && len(worse) > 0; try++ {
		fmt.Fprintf(os.Stderr, "again, for their ratios have doubled: %s\n", strings.Join(worse, ", "))
		b.servers = nil
		now = ratios(b.measure(ctx, func(r row) bool {
			return slices.Contains(worse, r.id()) || slices.Contains(worse, r.id()+servedSuffix)
		}))
		still, _ := grown(recorded, now)
		worse = slices.DeleteFunc(worse, func(name string) bool { return !slices.Contains(still, name) })
	}
	for _, name := range worse {
		fmt.Fprintf(os.Stderr, "WARNING: the ratio has doubled, %d runs in a row: %s: %.4f, recorded %.4f\n",
			tries, name, now[name], recorded[name])
	}
	return nil
}
