package fs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/mcp-funnel/mcp-funnel/kinds"
	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/tools"
	"github.com/mcp-funnel/mcp-funnel/tools/source"
)

// appendStat appends kind, lines, tokens and language of a file. If the file cannot be read it appends the error
// instead, so that the other files are still listed.
func (r *recordWriter) appendStat(b []byte, e foundEntry) []byte {
	src, err := r.f.in.Sources.Open(r.ctx, e.Path)
	if err == nil {
		defer func() { _ = src.Close() }()
		b = append(b, `,"kind":`...)
		b = appendString(b, string(src.Kind()))
		if src.Kind() == content.Binary {
			return b
		}
		var lines int64
		counter := r.f.in.NewTokenCounter()
		if lines, err = r.measure(src, counter); err == nil {
			b = fmt.Appendf(b, `,"lines":%d`, lines)
			n, off := counter.Total()
			b = append(appendTokens(b, n, off), `,"language":`...)
			return appendString(b, kinds.Language(e.Path, src.Kind()))
		}
	}
	r.f.unreadable++
	b = append(b, `,"error":`...)
	return appendString(b, content.ClipBytes(err.Error(), 300))
}

// appendTokens appends a token count, and its margin of error if it is an estimate.
func appendTokens(b []byte, n int64, off float64) []byte {
	b = fmt.Appendf(b, `,"tokens":%d`, n)
	if off > 0 {
		b = fmt.Appendf(b, `,"tokens_within":"±%.1f %%"`, math.Ceil(off*1000)/10)
	}
	return b
}

// measure reads a text once and counts its lines and tokens.
func (r *recordWriter) measure(src *source.Source, counter tools.TokenCounter) (lines int64, _ error) {
	text, err := src.Text()
	if err != nil {
		return 0, err
	}
	buf := make([]byte, 64<<10)
	last := byte('\n')
	for {
		if err := r.ctx.Err(); err != nil {
			return 0, err
		}
		k, err := text.Read(buf)
		if k > 0 {
			lines += int64(bytes.Count(buf[:k], []byte{'\n'}))
			last = buf[k-1]
			_, _ = counter.Write(buf[:k])
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return 0, err
		}
	}
	if last != '\n' {
		lines++
	}
	return lines, nil
}
