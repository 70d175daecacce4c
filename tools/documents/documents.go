// Package documents has the tool deliver: it takes a long JSON document in parts, says by parsing what has arrived, and
// where to go on.
//
// It writes nothing itself, and keeps no state but observations: each part, and the joined text with what is needed to
// go on. How parts are joined is the business of [continuation].
package documents

// Toolset is the name of this package's toolset.
const Toolset = "documents"

// Options of the tool deliver. The zero value of a limit is its default.
type Options struct {
	MaxParts      int   // parts of one document; 20
	OutlineTokens int   // of the outline in an answer; 150
	Window        int64 // context window of the model in tokens; 0: unknown
}

// maxDocument is the largest document in bytes.
const maxDocument = 64 << 20

// maxBranches is how many continued documents are remembered, so that a second continuation of one can be reported. It
// is a hint: another process does not see it.
const maxBranches = 1000
