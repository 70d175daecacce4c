package content

import (
	"regexp"
	"sync"
)

// Pattern returns a function that compiles a regular expression on its first call. Compiling all patterns of the
// project at start would cost 1.5 ms. The function panics if expr is invalid.
func Pattern(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}
