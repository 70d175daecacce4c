package stack

import "testing"

// deep has some 12 KiB on the stack, as a call of a tool does.
//
//go:noinline
func deep(n int) byte {
	var room [200]byte
	if n == 0 {
		return room[first]
	}
	return deep(n-1) + room[first]
}

// How much sooner a goroutine ends that was given its stack at once; how much that is of a call, BenchmarkRead of the
// server shows.
func BenchmarkGrow(b *testing.B) {
	for name, begin := range map[string]func() byte{"at once": Grow, "by steps": func() byte { return 0 }} {
		b.Run(name, func(b *testing.B) {
			done := make(chan byte)
			for b.Loop() {
				go func() { done <- begin() + deep(50) }()
				<-done
			}
		})
	}
}
