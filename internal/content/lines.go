package content

import (
	"bytes"
	"context"
	"errors"
	"io"
)

// Lines reads values that stand on lines of their own, and says where to go on behind a line that is none. Values may go
// over several lines instead; then nothing tells where the next one begins. The zero value is ready.
//
//	for len(p) > 0 {
//		from, to, cut := l.Line(p, values)
//		… what was told of a value is void where cut; then Lost …
//		… Scan p[from:to]; after an error Lost, and go on at the wrong byte …
//		l.Scanned(p[from:to])
//		p = p[to:]
//	}
type Lines struct {
	Scanner
	spread   bool // a value went over several lines
	atStart  bool // a line begins inside a value
	skipping bool // to the end of a line that is lost
}

// Line says what of p comes next: p[from:to], which is of one line where lines are values. cut says that a value begins at from
// before the one before is complete: that one is lost. values are the complete ones so far.
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
	if l.atStart { // values that go over several lines have their inner lines indented
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

// Scanned is told of what Line named, when all of it is used up.
func (l *Lines) Scanned(p []byte) {
	l.atStart = len(p) > 0 && p[len(p)-1] == '\n' && l.depth > 0
}

// Lost gives up the value that is being read, and after an error the rest of its line. False: nothing tells where the next one begins.
func (l *Lines) Lost() bool {
	if l.spread {
		return false
	}
	l.skipping = l.err != nil // else the next value begins right here
	l.Scanner = Scanner{Quiet: l.Quiet, off: l.off}
	return true
}

// lineReader hands on the events of values on lines.
type lineReader struct {
	Lines
	event func(used []byte, e Event) (enough bool)
	lost  func() // what was told since the last complete value is void

	values int64        // complete ones
	broken *SyntaxError // of the first line that is no value
}

// read goes through the text. A line that is no value is passed over; the error of a text that goes on
// behind it is the first one's, with Lines; that of one that breaks off later has it as Before.
func (l *lineReader) read(ctx context.Context, r io.Reader) error {
	ended, err := pump(ctx, r, l.window)
	if inside := l.Inside(); err == nil && ended && inside != BetweenValues { // a number at the very end is none yet
		err = l.breaksOff(inside)
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
			_ = l.lose(&SyntaxError{Offset: l.off, Reason: "a line begins inside " + article(l.Inside())}) // it is not spread
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
				if err := l.lose(l.err); err != nil {
					return false, err
				}
			}
		}
		l.Scanned(p[:to])
		p = p[to:]
	}
	return false, nil
}

// lose gives up a value, for a reason, which is the error where reading cannot go on.
func (l *lineReader) lose(why *SyntaxError) error {
	if !l.Lost() {
		return why
	}
	if l.broken == nil {
		l.broken = why
	}
	l.broken.Lines++
	l.lost()
	return nil
}
