// Package deliver has the tool deliver: it takes a long JSON document in parts, says by parsing what has arrived, and
// where to go on.
//
// Its state is observations: each part, and the joined text with what is needed to go on. How parts are joined is the
// business of [continuation].
package deliver

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/mcp-funnel/mcp-funnel/base/lru"
	"github.com/mcp-funnel/mcp-funnel/continuation"
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/tools"
)

// Toolset is the name of this package's toolset.
const Toolset = "documents"

// Options of the tool deliver. The zero value of a limit is its default.
type Options struct {
	MaxParts      int   // parts of one document; 20
	OutlineTokens int   // of the outline in an answer; 150
	Window        int64 // context window of the model in tokens; 0: unknown

	// Save writes a whole document to a new file and returns what the answer says of it; nil: files are not written.
	Save func(ctx context.Context, name string, text []byte, in tools.Input, out tools.Output) (says string, err error)
}

// maxDocument is the largest document in bytes.
const maxDocument = 64 << 20

// maxBranches is how many continued documents are remembered, so that a second continuation of one can be reported. It
// is a hint: another process does not see it.
const maxBranches = 1000

// deliverer runs the tool deliver.
type deliverer struct {
	options  Options
	branches *lru.Values[string, string] // the continuation of each document, by owner and document
	refused  *lru.Values[string, bool]   // parts that were not joined, by owner, document and hash of the part
}

// read returns the text of the source that an argument names, and its observation; nil if it is none.
func read(
	ctx context.Context, in tools.Input, argument, name string,
) (text []byte, of *observations.Observation, err error) {
	src, err := in.Sources.Open(ctx, name)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", argument, err)
	}
	defer func() { _ = src.Close() }()
	if src.Size > maxDocument {
		return nil, nil, fmt.Errorf("%s %s: it has %d bytes; a document may have %d",
			argument, name, src.Size, int64(maxDocument))
	}
	text = make([]byte, src.Size)
	n, err := src.ReadAt(text, 0)
	if err == nil || errors.Is(err, io.EOF) {
		text, err = continuation.Decode(text[:n])
	}
	if err != nil {
		return nil, nil, fmt.Errorf("%s %s: %w", argument, name, err)
	}
	return text, src.Observation, nil
}
