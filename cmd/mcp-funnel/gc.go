package main

import (
	"os"
	"runtime"
	"runtime/debug"
)

// With a small heap Go collects garbage every 4 MB, that is every 70 small calls, and the three or four calls of
// those one or two milliseconds wait: more than one call in a hundred. With 12 MB it is every 400 calls.
//
// ballast counts as live, so Go collects when twice as much as it and the live heap is in use. Nothing touches it, so
// the system gives it no memory.
var ballast []byte //nolint:unused // it is only kept

// delayCollections makes the ballast with the first collection, which is at 12 MB. It does nothing if GOGC is set.
func delayCollections() {
	if os.Getenv("GOGC") != "" {
		return
	}
	percent := debug.SetGCPercent(300) // of 4 MB
	runtime.AddCleanup(new([64]byte), func(percent int) {
		debug.SetGCPercent(percent)
		ballast = make([]byte, 6<<20)
	}, percent)
}
