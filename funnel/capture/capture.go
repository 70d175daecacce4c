// Package capture reads the bytes of one output and returns its counts, first and last lines, summary and tokens, the
// beginning of its text, and its recording in the store.
package capture

import (
	"github.com/mcp-funnel/mcp-funnel/funnel/text"
	"github.com/mcp-funnel/mcp-funnel/kinds"
	"github.com/mcp-funnel/mcp-funnel/kinds/digest"
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/text/tokens"
)

// Captured is what a [Writer] found. Lines are counted as a reader counts them: a last line without a newline counts.
// Chars are runes, each invalid byte one.
type Captured struct {
	Lines, Chars, LongestLine int64
	Bytes                     int64       // as written
	Head, Tail                []text.Line // with their secrets masked
	Tokens                    tokens.Total
	Masked                    int              // secrets found
	Encoding                  content.Encoding // what the text was decoded from
	Decoded                   bool             // the output was not UTF-8
	Redacted                  bool             // secrets are masked in the recording too
	Failure                   error            // a panic while the output was read; nil: none
	Streams                   Streams          // which parts are standard error
	News                      *News            // its end, if an earlier answer has shown the rest; nil: nothing was shown

	held     hold
	sum      digest.Summary
	digest   *kinds.Digest // if not nil it has read nothing yet, and sum holds only the kind; nil: sum is complete
	recorder *recorder
}

// Summary returns the summary of the output. The first call makes that of a short output.
func (c *Captured) Summary() digest.Summary {
	if c.digest != nil {
		_, _ = c.digest.Write(c.held.shown)
		c.sum, c.digest = c.digest.Close(), nil
	}
	return c.sum
}

// Counts returns the matches and the files with matches in the output, −1 for those that were not counted. It makes
// no summary.
func (c *Captured) Counts() (matches, files int64) { return c.sum.Matches, c.sum.Files }

// Kind returns what kind of text the output is.
func (c *Captured) Kind() content.Kind { return c.sum.Kind }

// JSON reports whether hidden characters are shown as JSON escapes.
func (c *Captured) JSON() bool { return c.sum.Kind == content.JSON || c.sum.Kind == content.NDJSON }

// Beginning returns the first bytes of the output as text with its secrets masked; all reports that nothing follows.
func (c *Captured) Beginning() (b []byte, all bool) { return c.held.shown, !c.held.overflow }

// Unmasked reports whether no secret was masked in the text: then Tokens also counts the text as shown.
func (c *Captured) Unmasked() bool { return !c.held.forked }

// Record starts the recording of an output that was held so far, if it is not recorded yet.
func (c *Captured) Record() {
	c.recorder.start(true, c.held.overflow, c.held.asStored(c.Decoded, c.Redacted))
	c.recorder.dropCut()
}

// Recording returns the recording of the output, nil if there is none: err says why.
func (c *Captured) Recording() (r *observations.Recording, err error) {
	return c.recorder.recording, c.recorder.err
}

// Discard deletes a recording that was not committed; no further recording can be started.
func (c *Captured) Discard() { c.recorder.discard() }
