package shell

import (
	"hash/maphash"

	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// lastKey names a command of an owner.
type lastKey struct{ owner, cwd, command string }

// lastRun is the last stored output of a command.
type lastRun struct {
	name string // obs:ID
	sum  uint64 // of all its bytes
	testsOf
}

// testsOf are the failed tests of a command.
type testsOf struct {
	failed map[string]string // names as they are shown, by key
	whole  bool              // all tests ran, and all that failed are here
}

// copied is the output of a command as far as it is compared. A longer output is compared as a whole, and exactly.
type copied struct {
	sum  maphash.Hash
	text []byte
	over bool // longer than maxCompared
}

// changing matches what differs between two runs of the same program: times of day, dates, durations, addresses.
var changing = content.Pattern(
	`\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d+)?)?)?(Z|[+-]\d\d:?\d\d)?|\b\d\d:\d\d:\d\d(\.\d+)?\b|` +
		`\b\d+(\.\d+)?\s?(ns|µs|us|ms|s|sec|secs|seconds|m|min|minutes)\b|0x[0-9a-f]{6,}`,
)

func newCopied() (c copied) {
	c.sum.SetSeed(seed)
	return c
}

var seed = maphash.MakeSeed()

func (c *copied) add(b []byte) {
	_, _ = c.sum.Write(b)
	if c.over = c.over || len(c.text)+len(b) > maxCompared; c.over {
		c.text = nil
	} else {
		c.text = append(c.text, b...)
	}
}

// lines returns the text without what differs between two runs.
func (c *copied) lines() []byte { return changing().ReplaceAll(c.text, []byte("#")) }
