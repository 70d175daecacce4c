//go:build race

package conformance

const underRace = true
