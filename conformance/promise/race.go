//go:build race

package promise

// UnderRace says that the race detector is on.
const UnderRace = true
