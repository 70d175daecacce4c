package fs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime"
	"strconv"

	"github.com/mcp-funnel/mcp-funnel/base/panics"
	"github.com/mcp-funnel/mcp-funnel/base/runes"
	"github.com/mcp-funnel/mcp-funnel/kinds"
	"github.com/mcp-funnel/mcp-funnel/system/tree"
	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/tools/source"
)

// Limits of files that are read concurrently.
const (
	statFiles   = 64        // entries of a batch
	statBytes   = 512 << 10 // of the files of a batch, so that few records wait for that of a large file
	statWorkers = 16
)

// statWriter writes the records of show=stat. It reads the files of a batch concurrently, while the walk goes ahead,
// and writes their records in the order of the entries.
type statWriter struct {
	f     *finder
	ctx   context.Context
	batch []statEntry
	size  int64 // of the files of the batch
}

// statEntry is an entry and, once its file was read, its record.
type statEntry struct {
	foundEntry
	record     []byte // nil: ctx has ended before
	unreadable bool
}

func (s *statWriter) streams() bool { return true }

func (s *statWriter) writeEntry(e foundEntry) error {
	s.batch, s.size = append(s.batch, statEntry{foundEntry: e}), s.size+e.Size
	if len(s.batch) < statFiles && s.size < statBytes {
		return nil
	}
	return s.finish()
}

// finish writes the records of a batch.
func (s *statWriter) finish() error {
	panics.Each(len(s.batch), min(runtime.GOMAXPROCS(0), statWorkers), func(i int) {
		s.readEntry(&s.batch[i])
	})
	for i := range s.batch {
		e := &s.batch[i]
		if e.record == nil {
			return s.ctx.Err()
		}
		if e.unreadable {
			s.f.unreadable++
		}
		if err := s.f.write(e.record); err != nil { // each at once, as recordWriter does
			return err
		}
		*s.f.shown.counter(e.Type)++
	}
	s.release()
	return s.ctx.Err()
}

// release empties the batch, and releases the texts that its entries hold.
func (s *statWriter) release() {
	for _, e := range s.batch {
		if e.entry != nil {
			e.entry.Release()
		}
	}
	s.batch, s.size = s.batch[:0], 0
}

// readEntry makes the record of an entry, unless ctx has ended: the record may then be wrong.
func (s *statWriter) readEntry(e *statEntry) {
	record, err := appendRecord(nil, &e.foundEntry), s.ctx.Err()
	if e.Type == tree.File && err == nil {
		record, err = s.appendStat(record, &e.foundEntry)
	}
	if s.ctx.Err() != nil {
		return
	}
	if err != nil { // the other files are still listed
		e.unreadable = true
		record = appendString(append(record, `,"error":`...), content.ClipBytes(err.Error(), 300))
	}
	e.record = append(record, "}\n"...)
}

// appendStat appends kind, lines, tokens and language of a file, as far as it can be read.
func (s *statWriter) appendStat(b []byte, e *foundEntry) ([]byte, error) {
	src, held, err := e.entry.Held()
	if !held {
		src, err = s.f.in.Sources.Open(s.ctx, e.Path)
	}
	if err != nil {
		return b, err
	}
	defer func() { _ = src.Close() }()
	if tables := src.Tables(); tables != nil {
		b = append(append(append(b, `,"kind":"sqlite","tables":[`...), tables...), ']')
	} else if b, err = s.appendText(b, e, src); src.Packed() && err == nil &&
		src.Kind() != content.Binary {
		b = strconv.AppendInt(append(b, `,"unpacked":`...), src.Extent(), 10)
	}
	if caveat := src.Caveat(); caveat != "" && err == nil {
		err = errors.New(caveat)
	}
	return b, err
}

// appendText appends the kind of a text and, unless that is binary, its lines, tokens and language.
func (s *statWriter) appendText(b []byte, e *foundEntry, src *source.Source) ([]byte, error) {
	kind := src.Kind()
	b = appendString(append(b, `,"kind":`...), string(kind))
	if kind == content.Binary {
		return b, nil
	}
	text, err := src.Text()
	if err != nil {
		return b, err
	}
	var lines runes.LineCounter
	counter := s.f.in.NewTokenCounter()
	all, text := io.MultiWriter(&lines, counter), content.WithContext(s.ctx, text)
	buf := make([]byte, min(content.SniffSize, src.Extent()+1))
	head, err := io.ReadFull(text, buf)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return b, err
	}
	language := kinds.Language(e.Path, buf[:head], kind)
	if _, err = all.Write(buf[:head]); err == nil {
		_, err = io.CopyBuffer(all, text, buf)
	}
	if err != nil {
		return b, err
	}
	n, off := counter.Total()
	b = fmt.Appendf(b, `,"lines":%d,"tokens":%d`, lines.Lines(), n)
	if off > 0 { // an estimate
		b = fmt.Appendf(b, `,"tokens_within":"±%.1f %%"`, math.Ceil(off*1000)/10)
	}
	return appendString(append(b, `,"language":`...), language), nil
}
