//go:build unix && !linux

package stdio

// pollRDHup is 0: not every Unix has this event.
const pollRDHup = 0
