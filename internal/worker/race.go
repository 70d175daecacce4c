//go:build race

package worker

const raceLinked = true
