//go:build amd64 || arm64

package sandbox

import (
	"time"

	"github.com/mcp-funnel/mcp-funnel/base/spare"
)

// spareAge is how long a spare init waits for a command.
const spareAge = 5 * time.Minute

// spares holds at most one init that was started ahead: starting a Go program and its namespaces takes longer than
// starting a command in it.
var spares = spare.Spare[kind, *Process]{End: (*Process).Kill}

// KeepSpare makes each Start start one more process, which waits for the next command, for five minutes at most.
// It ends with the returned function, and with this process.
func KeepSpare() (stop func()) {
	spares.Keep(spareAge)
	return func() { spares.Keep(0) }
}
