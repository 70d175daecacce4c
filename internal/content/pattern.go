package content

import (
	"regexp"
	"sync"
)

// Pattern is a regular expression that is compiled when it is first used: those of the house together take 1.5 ms, which
// no start should pay. One that does not compile panics then.
func Pattern(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}
