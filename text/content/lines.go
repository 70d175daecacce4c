package content

import (
	"bytes"
	"context"
	"errors"
	"io"
)

// Lines scans NDJSON, one value per line, and can continue on the next line after an invalid one. Values may span
// several lines instead; then Lines cannot continue after an error because the start of the next value is unknown.
// The zero value is ready to use.
//
//	for len(p) > 0 {
//		from, to, cut := l.Line(p, values)
//		… if cut, discard the current value and call Lost …
//		… Scan p[from:to]; after an error, call Lost and continue at the invalid byte …
//		l.Scanned(p[from:to])
//		p = p[to:]
//	}
type Lines struct {
	Scanner
	spread   bool // values span several lines
	atStart  bool // the next line begins inside a value
	skipping bool // skipping the rest of an invalid line
}

// Line returns the part of p to scan next, p[from:to]: at most one line, unless values span several lines. If cut is
// true, a new value begins at from although the previous one is incomplete; the caller must discard the previous one.
// values is the number of complete values so far.
func (l *Lines) Line(p []byte, values int64) (from, to int, cut bool) {
	if l.skipping {
		if from = bytes.IndexByte(p, '\n'); from < 0 {
			l.off += int64(len(p))
			return len(p), len(p), false
		}
		l.off += int64(from) // the newline itself is white space
		l.skipping = false
	}
	if l.spread {
		return from, len(p), false
	}
	if l.atStart { // in values that span several lines, the inner lines are indented
		l.atStart = false
		cut = values >= 2 && (p[from] == '{' || p[from] == '[')
		l.spread = !cut
	}
	to = len(p)
	if n := bytes.IndexByte(p[from:], '\n'); n >= 0 {
		to = from + n + 1
	}
	return from, to, cut
}

// Scanned must be called with the part of the text that Line returned, after all of it was scanned.
func (l *Lines) Scanned(p []byte) {
	l.atStart = len(p) > 0 && p[len(p)-1] == '\n' && l.depth > 0
}

// Lost discards the current value and, after an error, skips the rest of its line. It returns false if scanning
// cannot continue because the start of the next value is unknown.
func (l *Lines) Lost() bool {
	if l.spread {
		return false
	}
	l.skipping = l.err != nil // else the next value begins right here
	l.Scanner = Scanner{Quiet: l.Quiet, off: l.off}
	return true
}

// lineReader reads NDJSON and calls event for each event of its values.
type lineReader struct {
	Lines
	event   func(used []byte, e Event) (enough bool)
	discard func() // called to discard the events since the last complete value

	values int64        // number of complete values
	broken *SyntaxError // error of the first invalid line; nil if none
}

// read reads the text and skips invalid lines. It returns the error of the first invalid line, whose field Lines counts
// all invalid lines. If the text is also truncated or cannot be read further, it returns that error, with the error of
// the first invalid line in its field Before.
func (l *lineReader) read(ctx context.Context, r io.Reader) error {
	ended, err := pump(ctx, r, l.window)
	if inside := l.Inside(); err == nil && ended && inside != BetweenValues { // a last number may be truncated
		err = l.truncated(inside)
	}
	switch why := (*SyntaxError)(nil); {
	case l.broken == nil:
	case err == nil:
		return l.broken
	case errors.As(err, &why):
		why.Before = l.broken
	}
	return err
}

func (l *lineReader) window(p []byte) (enough bool, err error) {
	for len(p) > 0 {
		from, to, cut := l.Line(p, l.values)
		if cut {
			// The error is nil here: each value is on one line.
			_ = l.discardLine(&SyntaxError{Offset: l.off, Reason: "a line begins inside " + Article(l.Inside())})
		}
		for from < to {
			n, e := l.Scan(p[from:to])
			if l.event(p[from:from+n], e) {
				return true, nil
			}
			if e.Ends() && l.depth == 0 {
				l.values++
			}
			if from += n; l.err != nil {
				to = from
				if err := l.discardLine(l.err); err != nil {
					return false, err
				}
			}
		}
		l.Scanned(p[:to])
		p = p[to:]
	}
	return false, nil
}

// discardLine discards the current value because of the error why. It returns why if reading cannot continue, else nil.
func (l *lineReader) discardLine(why *SyntaxError) error {
	if !l.Lost() {
		return why
	}
	if l.broken == nil {
		l.broken = why
	}
	l.broken.Lines++
	l.discard()
	return nil
}
