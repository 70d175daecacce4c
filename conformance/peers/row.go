//go:build linux

package main

import (
	"cmp"
	"context"
	"math"
	"slices"
)

type options struct {
	bin, npm, cache, tree, only, page, record, check string
	small, clean, wire                               bool
	rounds                                           int
}

// row is one line of the table: the work, the peer, and the bar.
type row struct {
	family, name string
	beside       string  // program or module of the peer; its version is reported
	bar          float64 // maximum ratio, or with a unit the maximum figure; 0 without a unit: no bar
	unit         string  // "": the bar limits the ratio; else "ms", "µs", "MB", "%"
	// the peer's figure on the machine on which the bar was set, in the same unit: the ratio must then be at most
	// bar/beyond; 0: the figure must be at most bar
	beyond  float64
	noisy   bool // too noisy at small size to compare with recorded ratios
	setup   setup
	figures func(context.Context) (result, error) // replaces setup for rows with a measurement of their own
}

func (r row) id() string { return r.family + "/" + r.name }

// quantile returns the q-quantile of the values, or 0 if there are none. It sorts a copy.
func quantile[T cmp.Ordered](values []T, q float64) (none T) {
	if len(values) == 0 {
		return none
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[min(int(math.Ceil(q*float64(len(values))))-1, len(values)-1)]
}

func median[T cmp.Ordered](values []T) T { return quantile(values, 0.5) }

// maxFigure returns the maximum figure that meets the bar.
func (r row) maxFigure() float64 {
	if r.beyond > 0 {
		return r.bar / r.beyond
	}
	return r.bar
}

// free reports whether the row has no bar: its ratio is only reported.
func (r row) free() bool { return r.bar == 0 && r.unit == "" }

// wireServer is one server with its measurements from all rounds.
type wireServer struct {
	name, version string
	command       []string
	echo          bool   // has the tool echo
	read          string // name of the tool that reads a file
	funnel        bool   // answers for the large file with a page or a receipt; takes paths below its root

	figures    [figureCount][]float64
	answerSize int // size of the large answer, in bytes
}

func (s *wireServer) median(figure int) float64 { return median(s.figures[figure]) }

func (s *wireServer) add(figure int, n float64) { s.figures[figure] = append(s.figures[figure], n) }
