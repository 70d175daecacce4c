package fs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"path"
	"runtime"
	"sync"

	"github.com/mcp-funnel/mcp-funnel/base/panics"
	"github.com/mcp-funnel/mcp-funnel/base/runes"
	"github.com/mcp-funnel/mcp-funnel/kinds"
	"github.com/mcp-funnel/mcp-funnel/system/tree"
	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// Limits of files that are read concurrently.
const (
	statAhead   = 32        // batches that may be read ahead of the one that is being written
	statFiles   = 32        // entries of a batch
	statBytes   = 256 << 10 // of the files of a batch, so that the record of a large file is not delayed
	statWorkers = 16
)

// statWriter writes the records of show=stat. Workers read the files, and the caller's goroutine writes the records in
// the order of the entries.
type statWriter struct {
	f       *finder
	ctx     context.Context
	cancel  context.CancelFunc
	filling *statBatch
	order   []*statBatch // sent and not yet written
	work    chan *statBatch
	workers sync.WaitGroup
}

// statBatch is a few entries and, once it is done, their records: one line each.
type statBatch struct {
	entries    []foundEntry
	size       int64 // of the files
	done       chan struct{}
	records    []byte
	unreadable int64
	defect     error // the panic of the worker, if any
}

func newStatWriter(ctx context.Context, f *finder) *statWriter {
	s := &statWriter{f: f, work: make(chan *statBatch, statAhead+2)}
	s.ctx, s.cancel = context.WithCancel(ctx)
	for range min(runtime.GOMAXPROCS(0), statWorkers) {
		s.workers.Go(s.readBatches)
	}
	s.begin()
	return s
}

func (s *statWriter) begin()        { s.filling = &statBatch{done: make(chan struct{})} }
func (s *statWriter) streams() bool { return true }
func (s *statWriter) finish() error { return s.send(0) }

// writeEntry adds an entry to a batch, which is sent at once if no worker has anything to do.
func (s *statWriter) writeEntry(e foundEntry) error {
	b := s.filling
	b.entries, b.size = append(b.entries, e), b.size+e.Size
	if len(b.entries) < statFiles && b.size < statBytes && len(s.work) > 0 {
		return nil
	}
	return s.send(statAhead)
}

// send sends the batch that is being filled to the workers. It then writes the records of the batches that they have
// read, in order, and waits for further ones until at most ahead batches are left.
func (s *statWriter) send(ahead int) error {
	s.work <- s.filling // never blocks: work has room for all batches in order
	s.order = append(s.order, s.filling)
	for s.begin(); len(s.order) > 0; s.order = s.order[1:] {
		b := s.order[0]
		select {
		case <-b.done:
		default:
			if len(s.order) <= ahead {
				return nil
			}
			<-b.done // workers end soon after ctx
		}
		_ = panics.Again(b.defect)
		s.f.unreadable += b.unreadable
		n := 0
		for record := range bytes.Lines(b.records) { // each at once, as recordWriter does
			if err := s.f.write(record); err != nil {
				return err
			}
			*s.f.shown.counter(b.entries[n].Type)++
			n++
		}
		if err := s.ctx.Err(); err != nil {
			return err
		}
	}
	return nil
}

// release ends the workers and releases the directories that entries hold.
func (s *statWriter) release() {
	s.cancel()
	s.work <- s.filling
	close(s.work)
	s.workers.Wait()
}

// readBatches is a worker. It goes on until work is closed, so that each entry is released.
func (s *statWriter) readBatches() {
	buf := make([]byte, 2*content.SniffSize) // a small file, and as much again to count it
	for b := range s.work {
		panics.Into(&b.defect, func() {
			for i := range b.entries {
				s.addRecord(b, &b.entries[i], buf)
			}
		})
		for _, e := range b.entries {
			if e.entry != nil {
				e.entry.Release()
			}
		}
		close(b.done)
	}
}

// addRecord adds the record of an entry, unless ctx has ended: the record may then be wrong.
func (s *statWriter) addRecord(b *statBatch, e *foundEntry, buf []byte) {
	record, err := appendRecord(b.records, e), s.ctx.Err()
	if e.Type == tree.File && err == nil {
		record, err = s.appendStat(record, e, buf)
	}
	if s.ctx.Err() != nil {
		return
	}
	if err != nil { // the other files are still listed
		b.unreadable++
		record = appendString(append(record, `,"error":`...), content.ClipBytes(err.Error(), 300))
	}
	b.records = append(record, "}\n"...)
}

// appendStat appends kind, lines, tokens and language of a file, as far as it can be read.
func (s *statWriter) appendStat(b []byte, e *foundEntry, buf []byte) ([]byte, error) {
	if text, kind, ok := s.readSmall(e, buf); ok {
		open := func() (io.Reader, error) { return bytes.NewReader(text), nil }
		return s.appendText(b, e, kind, open, buf[len(text):])
	}
	src, err := s.f.in.Sources.Open(s.ctx, e.Path)
	if err != nil {
		return b, err
	}
	defer func() { _ = src.Close() }()
	return s.appendText(b, e, src.Kind(), src.Text, buf)
}

// readSmall reads a small UTF-8 or binary file through the open directory that its entry holds. ok is false if the file
// must be opened by its name.
func (s *statWriter) readSmall(e *foundEntry, buf []byte) (text []byte, kind content.Kind, ok bool) {
	if e.entry == nil || !e.entry.IsFile() || s.f.in.Sources.Documents.Replaces(e.Path) {
		return nil, "", false
	}
	f, err := e.entry.OpenFile()
	if err != nil {
		return nil, "", false
	}
	defer func() { _ = f.Close() }()
	if f.Size() == 0 || f.Size() >= content.SniffSize {
		return nil, "", false
	}
	text = buf[:f.Size()]
	if _, err := f.ReadAt(text, 0); err != nil { // shorter by now
		return nil, "", false
	}
	stored := content.Detect(text, true)
	return text, kinds.Sniff(text, true, path.Base(e.Path)), stored == content.UTF8 || stored == content.NoText
}

// appendText appends the kind of a text and, unless that is binary, its lines, tokens and language.
func (s *statWriter) appendText(
	b []byte, e *foundEntry, kind content.Kind, open func() (io.Reader, error), buf []byte,
) ([]byte, error) {
	b = appendString(append(b, `,"kind":`...), string(kind))
	if kind == content.Binary {
		return b, nil
	}
	text, err := open()
	if err != nil {
		return b, err
	}
	var lines runes.LineCounter
	counter := s.f.in.NewTokenCounter()
	all, text := io.MultiWriter(&lines, counter), content.WithContext(s.ctx, text)
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
