package funnel

import (
	"slices"

	"github.com/mcp-funnel/mcp-funnel/funnel/text"
	"github.com/mcp-funnel/mcp-funnel/session/trace"
	"github.com/mcp-funnel/mcp-funnel/tools"
)

// maxNotStored is the size up to which a result of an upstream server that cannot be stored is sent as it is, in bytes.
const maxNotStored = 1_000_000

// passResult decides whether an answer is the result of an upstream server as that wrote it. If not, it adds what the
// answer lacks of the result. It returns what the caller is shown, as masked blocks. A result that cannot be stored is
// worth more whole than its two ends: the call may have changed something, and nobody would repeat it.
func (d *display) passResult(a *Answer, r *tools.Result) []Block {
	receipt := &a.Receipts[0]
	notStored := (r.NotStored || receipt.NotKept != "" || receipt.Truncated) && receipt.Decision.Deficit <= 0 &&
		len(r.Raw) <= maxNotStored && text.Sanitize(r.Text, false, text.Standalone) == r.Text
	whole := d.whole.Written && !d.rejected && d.outcome.err == nil
	switch {
	case d.call.request.Via == trace.ViaObserved, notStored && r.Pass != tools.PassNever:
		a.Raw, a.Blocks = r.Raw, nil
		return []Block{{Text: text.Visible(d.call.reply.maskText(r.Text), false)}}
	case whole && r.Pass == tools.PassWhole:
		shown := a.Blocks
		notes := slices.DeleteFunc(slices.Clone(shown), func(b Block) bool { return b.MIME != "" })
		if a.Raw, a.Blocks = r.Raw, nil; d.whole.Notes != "" {
			a.Blocks = notes[len(notes)-1:]
		}
		return shown
	}
	a.Failed, a.Meta = a.Failed || r.Failed, r.Meta
	if r.Second != "" {
		a.Blocks = append(a.Blocks, Block{Text: text.Visible(d.call.reply.maskText(r.Second), true)})
	}
	if r.Failed && receipt.Status == success {
		receipt.Status = failure
	}
	return a.Blocks
}
