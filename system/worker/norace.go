//go:build !race

package worker

// RaceLinked reports whether this binary has the race detector.
const RaceLinked = false
