//go:build !race

package child

const raceLinked = false
