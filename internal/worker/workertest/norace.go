//go:build !race

package workertest

const raceEnabled = false
