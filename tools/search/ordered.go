package search

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcp-funnel/mcp-funnel/base/panics"
	"github.com/mcp-funnel/mcp-funnel/tools/source"
)

// run searches the locations:
//
//	walk ─► order (32) ─────────────────────────► written in this order, one batch at a time
//	  └───► work ─► workers ─► chunks of records ──┘
//
// A worker whose batch is not yet being written blocks once it has two chunks. Workers receive batches in order, so the
// batch that is being written always has a worker.
func (s *searcher) run(ctx context.Context, locations []source.Location) (err error) {
	s.oneFile = len(locations) == 1 && !locations[0].IsDir
	ctx, cancel := context.WithCancel(ctx)
	reading, end := context.WithTimeout(ctx, documentTime)
	defer end()
	s.documents = reading
	order, work := make(chan *fileBatch, ahead), make(chan *fileBatch, ahead)
	var wg sync.WaitGroup
	defer func() {
		cancel()
		wg.Wait()
	}()
	var walked error
	wg.Go(func() {
		defer close(order)
		defer close(work)
		panics.Into(&walked, func() { walked = s.sendBatches(ctx, locations, work, order) })
	})
	for range min(runtime.GOMAXPROCS(0), maxWorkers) {
		wg.Go(func() {
			w := newWorker(ctx, s)
			for j := range work { // until work is closed, so that each target is released
				w.searchBatch(j)
			}
		})
	}
	var written atomic.Int64
	wg.Go(func() { s.reportProgress(ctx, &written) })

	for j := range order {
		for c := range j.chunks {
			if _, err := s.rows.Write(c); err != nil {
				return err
			}
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		for i := range j.results {
			_ = panics.Again(j.results[i].err)
			s.addResult(&j.targets[i], &j.results[i])
		}
		written.Add(int64(len(j.results)))
	}
	if walked != nil { // order is closed: the walk has ended
		return panics.Again(walked)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return s.writeCounts()
}

// sendBatches sends the targets in batches. The first ones have one file each, so that a few files are searched
// concurrently.
func (s *searcher) sendBatches(ctx context.Context, locations []source.Location, to ...chan<- *fileBatch) error {
	var j *fileBatch
	send := func() error {
		if j == nil {
			return nil
		}
		j.results = make([]fileResult, len(j.targets))
		full := j
		j = nil
		for i, c := range to { // order comes last: each batch in it was sent to a worker
			select {
			case c <- full:
			case <-ctx.Done():
				if i == 0 {
					full.release()
				}
				return ctx.Err()
			}
		}
		return nil
	}
	n := 0
	err := s.eachTarget(ctx, locations, func(t target) error {
		if j == nil {
			j = &fileBatch{targets: make([]target, 0, maxBatch), chunks: make(chan []byte, chunksHeld)}
		}
		j.targets = append(j.targets, t)
		if t.document {
			j.documents++
		}
		held := !t.entry.IsFile() && t.entry.Size > maxHeld // in memory, for which the next member may wait
		if n++; !j.isFull(n) && !held {
			return nil
		}
		return send()
	})
	if err == nil {
		return send()
	}
	if j != nil {
		j.release()
	}
	return err
}

// reportProgress reports every 250 ms, until ctx ends, how many files were searched; of one file, how many bytes of it.
func (s *searcher) reportProgress(ctx context.Context, written *atomic.Int64) {
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if s.oneFile {
				s.out.Progress(s.fileRead.Load(), s.fileSize.Load(), "bytes read")
				continue
			}
			n := written.Load()
			s.out.Progress(n, 0, fmt.Sprintf("%d files searched", n))
		}
	}
}

// addResult adds the result of one file to the totals.
func (s *searcher) addResult(t *target, j *fileResult) {
	s.seen++
	switch j.status {
	case searched:
		s.searched++
	case binary:
		s.binary++
	case noText:
		of := s.noText[j.err.Error()]
		of.add(t.name())
		s.noText[j.err.Error()] = of
	case failed:
		if s.failed++; s.firstError == nil {
			s.firstError = source.ReadError(t.name(), j.err)
		}
	}
	if j.keptInPart {
		s.keptInPart++
	}
	if j.shrunk {
		s.shrunk++
	}
	s.letters = s.letters || j.letters
	if d := j.document; d != nil && len(d.Notes) > 0 {
		s.inPart.add(t.name() + ": " + d.Notes[0])
	}
	if j.caveat != "" {
		s.caveats.add(j.caveat)
	}
	if j.short && len(s.cutMultiline) < 10 {
		s.cutMultiline = append(s.cutMultiline, t.name())
	}
	if s.beyond && (!j.stored.Certain() || j.stored == source.Mixed) {
		s.doubtful.Add(t.name(), j.stored)
	}
	if j.matches == 0 {
		return
	}
	s.matches += j.matches
	s.files++
	for i, n := range j.counts {
		if s.patterns[i].matches += n; n > 0 {
			s.patterns[i].files++
		}
	}
	if j.stored != source.Mixed {
		s.decoded.Add(t.name(), j.stored)
	}
	if j.notUTF8 {
		s.notUTF8++
	}
	if j.window != nil && s.window == nil {
		s.window, s.windowFile = j.window, t.name()
	}
	switch s.Show {
	case "counts":
		s.counts = append(s.counts, fileCount{t.name(), j.matches})
	case "dirs":
		dir := dirOf(t.name())
		d := s.dirs[dir]
		s.dirs[dir] = dirCount{d.matches + j.matches, d.files + 1}
	case "groups":
		s.groups.merge(&j.groups)
	}
}

// writeCounts writes the records of show=counts, dirs and groups: most matches or occurrences first, then by name; or
// one record for each of several patterns, in their order.
func (s *searcher) writeCounts() error {
	slices.SortStableFunc(s.counts, func(a, b fileCount) int {
		return cmp.Or(cmp.Compare(b.matches, a.matches), strings.Compare(a.name, b.name))
	})
	b := bufio.NewWriterSize(&s.rows, chunkSize)
	for _, c := range s.counts {
		_, _ = b.Write(appendCount(nil, c)) // Flush returns its error
	}
	for i, c := range s.patterns {
		name := s.Pattern.Names[i]
		if !s.Pattern.Named {
			name = s.Pattern.Texts[i]
		}
		_, _ = fmt.Fprintf(b, `{"pattern":%s,"matches":%d,"files":%d}`+"\n", jsonString(nil, name), c.matches, c.files)
	}
	for _, dir := range sortedDirs(s.dirs) {
		d := s.dirs[dir]
		_, _ = fmt.Fprintf(b, `{"dir":%s,"matches":%d,"files":%d}`+"\n", jsonString(nil, dir), d.matches, d.files)
	}
	for _, c := range s.groups.sorted() {
		_, _ = fmt.Fprintf(b, `{"group":%s,"count":%d}`+"\n", jsonString(nil, c.group), c.n)
	}
	return b.Flush()
}
