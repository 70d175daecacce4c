//go:build race

package workertest

const raceEnabled = true
