package worker

import (
	"time"

	"github.com/mcp-funnel/mcp-funnel/base/spare"
)

// spares holds at most one worker that waits for a job.
var spares = spare.Spare[struct{}, *process]{End: (*process).discard}

// KeepSpare makes this process keep one spare worker, started, confined and without a job, because starting is most of
// the cost of a worker. A spare is started after a worker has succeeded, never after one has failed. A spare that was
// idle for this long is ended; 0, the default, keeps none. The spare worker always ends with this process.
func KeepSpare(idle time.Duration) { spares.Keep(idle) }

// claimSpare removes and returns the spare worker, nil if there is none or it has ended.
func claimSpare() *process {
	p, ok := spares.Claim(struct{}{})
	if !ok {
		return nil
	}
	select {
	case <-p.done:
		p.close()
		return nil
	default:
		return p
	}
}
