package search

import (
	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/text/linesearch"
	"github.com/mcp-funnel/mcp-funnel/tools/source"
)

// Limits of memory while files are searched concurrently: at most (ahead + workers) × (chunksHeld+1) chunks, about
// 20 MiB in all, however many matches there are.
const (
	chunkSize  = 32 << 10
	chunksHeld = 2
	ahead      = 32       // batches that may be searched ahead of the one that is being written
	maxBatch   = 16       // files of a batch: for small files, sending one by one costs more than the search
	maxHeld    = 16 << 10 // bytes of a member of an archive that waits in a batch for others
	maxWorkers = 16       // each may hold some 5 MiB of a text
)

const (
	searched fileStatus = iota
	binary
	noText // a document
	failed
)

// fileBatch is a few files that one worker searches in order. The worker writes results before it closes chunks.
type fileBatch struct {
	targets   []target
	documents int          // of the targets
	results   []fileResult // of each target
	chunks    chan []byte
}

// fileResult is the result of one file.
type fileResult struct {
	status     fileStatus
	err        error
	matches    int64            // of all patterns
	counts     []int64          // of each of several patterns
	window     *linesearch.Line // the first truncated match
	notUTF8    bool             // a line that is shown is not UTF-8
	short      bool             // not searched to its end: linesearch.Totals.Short
	keptInPart bool             // an observation that was kept in part
	letters    bool             // linesearch.Totals.Letters
	shrunk     bool             // the file became shorter during the search
	document   *source.Document // whose text was searched
	caveat     string           // of a compressed file or a member: why it was not read whole
	stored     content.Encoding
	groups     groupCounts // with show=groups
}

type fileStatus int

// release releases the targets of a batch that will not be searched.
func (j *fileBatch) release() {
	for i := range j.targets {
		j.targets[i].release()
	}
}
