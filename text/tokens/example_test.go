package tokens_test

import (
	"fmt"

	"github.com/mcp-funnel/mcp-funnel/text/tokens"
)

// A counter of one vocabulary counts texts that are at hand.
func ExampleCounter_Count() {
	c := tokens.New(tokens.O200k)
	fmt.Println(c.Count("tokens are counted"))
	// Output: 3
}

// A tally counts a text while it is written, exactly up to 16 MiB.
func ExampleTally() {
	t := tokens.New(tokens.O200k).Tally()
	for range 3 {
		_, _ = fmt.Fprintln(t, "tokens are counted")
	}
	fmt.Println(t.Total())
	// Output: 12
}
