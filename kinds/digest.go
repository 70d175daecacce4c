package kinds

import (
	"bytes"
	"io"

	"github.com/mcp-funnel/mcp-funnel/kinds/digest"
	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// Digest summarises a text that is written to it once. Write never fails. Digest is not safe for concurrent use. It
// uses a few MiB of memory for a text of any size, or up to 300 MiB for one with [Kind.Values], which a parser holds by
// record. A Digest may be dropped without Close: its goroutine, if it has one, ends when it is collected.
type Digest struct {
	name       string
	prefix     []byte            // first bytes, collected until the kind can be detected
	summarizer digest.Summarizer // nil until the kind is detected
	decoder    io.WriteCloser    // nil if the text is UTF-8
	begun      bool              // the summarizer has the first block
	kind       content.Kind
}

// New starts a digest. name is the file name, used as a hint, or "" if the text is not from a file.
func New(name string) *Digest { return &Digest{name: name} }

// Write reads the next block of the text.
func (d *Digest) Write(p []byte) (int, error) {
	n := len(p)
	if d.summarizer == nil {
		prefix := p[:min(content.SniffSize-len(d.prefix), n)]
		p = p[len(prefix):]
		if len(prefix) < content.SniffSize { // otherwise the block need not be copied
			d.prefix = append(d.prefix, prefix...)
			prefix = d.prefix
		}
		if len(prefix) < content.SniffSize {
			return n, nil
		}
		d.begin(prefix, false)
		d.prefix = nil
	}
	if len(p) > 0 {
		d.pass(p)
	}
	return n, nil
}

// begin detects the kind and passes the prefix to the kind's summarizer. Text that is not UTF-8 is decoded first.
func (d *Digest) begin(prefix []byte, whole bool) {
	d.kind = Sniff(prefix, whole, d.name)
	start := prefix
	if d.kind != content.Binary {
		if e := content.Detect(prefix, whole); e != content.UTF8 && e != content.NoText {
			start, _ = io.ReadAll(io.LimitReader(e.Reader(bytes.NewReader(prefix)), content.SniffSize))
			d.decoder = e.Writer((*decoded)(d))
		}
	}
	d.summarizer = Of(d.kind).Summarizer(d.name, start)
	d.pass(prefix)
}

// pass sends a block to the summarizer, through the decoder if there is one.
func (d *Digest) pass(p []byte) {
	if d.decoder == nil {
		d.add(p)
		return
	}
	_, _ = d.decoder.Write(p) // decoded.Write never fails
}

// add passes a block in UTF-8 on, the first one without a byte order mark unless the summarizer counts its bytes. begin
// passes the whole prefix as one block, so the first block has all of the mark.
func (d *Digest) add(p []byte) {
	if !d.begun && d.kind != content.Binary && d.kind != content.JSON && d.kind != content.NDJSON {
		p = digest.WithoutMark(p)
	}
	d.begun = true
	d.summarizer.Add(p)
}

// decoded passes the output of the decoder to the summarizer.
type decoded Digest

func (d *decoded) Write(p []byte) (int, error) {
	(*Digest)(d).add(p)
	return len(p), nil
}

// Close ends the text and returns the summary. The Digest must not be used afterwards.
func (d *Digest) Close() digest.Summary {
	if d.summarizer == nil {
		d.begin(d.prefix, true)
		d.prefix = nil
	}
	if d.decoder != nil {
		_ = d.decoder.Close()
	}
	s := digest.Summary{Kind: d.kind, Records: -1, Matches: -1, Files: -1}
	d.summarizer.Finish(&s)
	s.EachOneLine()
	return s
}
