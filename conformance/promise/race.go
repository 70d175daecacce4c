//go:build race

package promise

// UnderRace reports whether the race detector is on.
const UnderRace = true
