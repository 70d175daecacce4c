package search

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/tools/source"
)

// Limits of reading documents in one call.
const (
	documentTime = 25 * time.Second // half of the default time limit of a call; texts are kept for the next call
	maxDocuments = 16               // of a batch: source.ReadAhead gives a worker as many
	maxMixed     = 512              // files of a batch with documents
)

// noTextError says why a document has no text.
type noTextError struct{ reason string }

func (e noTextError) Error() string { return e.reason }

// tally counts what a note reports once, and has the first.
type tally struct {
	n     int64
	first string
}

func (t *tally) add(what string) {
	if t.n++; t.n == 1 {
		t.first = what
	}
}

// notYet is the reason of documents for which the time was too short.
const notYet = "not read yet: the same call goes on"

// isFull reports whether a batch takes no more files after the first n of a search. Documents wait for one another,
// because starting a worker takes longer than reading one.
func (j *fileBatch) isFull(n int) bool {
	if j.documents > 0 {
		return j.documents == maxDocuments || len(j.targets) >= maxMixed
	}
	return len(j.targets) >= min(1+n/64, maxBatch)
}

// readAhead reads the documents of a batch together.
func (w *searchWorker) readAhead(j *fileBatch) {
	paths := map[*source.Location][]string{}
	for i := range j.targets {
		if t := &j.targets[i]; t.document {
			paths[t.at] = append(paths[t.at], t.entry.Path)
		}
	}
	for at, names := range paths {
		if source.ReadAhead(w.documents, at.Place, names) != nil { // the time has ended: openDocument reports it for each
			return
		}
	}
}

// openDocument opens the text of a document, which readAhead has read if there are several.
func (w *searchWorker) openDocument(ctx context.Context, t *target) (openedText, error) {
	src, err := t.at.Place.Open(w.documents, t.entry.Path)
	switch {
	case err != nil && ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded):
		return openedText{}, noTextError{notYet}
	case err != nil:
		return openedText{}, err
	case src.Document == nil || src.Document.Failed == "":
	case src.Encoding == content.NoText:
		_ = src.Close()
		reason, _, _ := strings.Cut(src.Document.Failed, ":")
		return openedText{}, noTextError{reason}
	default: // its bytes are text
		_ = src.Close()
		return w.openFile(t)
	}
	r, err := src.Text()
	if err != nil {
		_ = src.Close()
		return openedText{}, err
	}
	return openedText{Reader: r, Closer: src, size: src.Size, stored: src.Encoding, src: src}, nil
}

// documentNotes says which documents were not searched, and what is missing in the text of others.
func (s *searcher) documentNotes() (notes []string) {
	if len(s.noText) > 0 {
		var total int64
		var reasons []string
		for _, reason := range slices.Sorted(maps.Keys(s.noText)) {
			of := s.noText[reason]
			total += of.n
			reasons = append(reasons, fmt.Sprintf("%d %s (such as %s)", of.n, reason, content.ClipBytes(of.first, 80)))
		}
		notes = append(notes, content.Plural(total, "document", "documents")+" not searched: "+
			content.ClipBytes(strings.Join(reasons, ", "), 300))
	}
	if s.inPart.n > 0 {
		notes = append(notes, content.Plural(s.inPart.n, "document has", "documents have")+" content without text, such as "+
			content.ClipBytes(s.inPart.first, 200))
	}
	return notes
}
