package write

import (
	"bytes"
	"context"
	"io"
	"slices"
)

// pieces is a piece table: a text made of ranges of a file and of new texts, in order. It holds no part of the file in
// memory. See "Data Structures for Text Sequences" by Charles Crowley, 1998.
type pieces struct {
	file io.ReaderAt
	list []piece
}

// piece is n bytes of the file at an offset, or new bytes.
type piece struct {
	at, n int64
	text  []byte // not nil: new, in place of the range
}

func (p piece) size() int64 {
	if p.text != nil {
		return int64(len(p.text))
	}
	return p.n
}

// part returns the bytes [from, to) of a piece.
func (p piece) part(from, to int64) piece {
	if p.text != nil {
		return piece{text: p.text[from:to]}
	}
	return piece{at: p.at + from, n: to - from}
}

func newPieces(file io.ReaderAt, size int64) *pieces {
	return &pieces{file: file, list: []piece{{n: size}}}
}

// size returns the bytes of the text.
func (p *pieces) size() (n int64) {
	for _, one := range p.list {
		n += one.size()
	}
	return n
}

// reader returns a reader of the text, from its start.
func (p *pieces) reader() io.Reader { return &pieceReader{file: p.file, list: p.list} }

type pieceReader struct {
	file io.ReaderAt
	list []piece
	at   int64 // in the first one
}

func (r *pieceReader) Read(b []byte) (n int, err error) {
	for len(r.list) > 0 && n == 0 && err == nil {
		one := r.list[0].part(r.at, r.list[0].size())
		if one.text != nil {
			n = copy(b, one.text)
		} else if n, err = r.file.ReadAt(b[:min(int64(len(b)), one.n)], one.at); err == io.EOF && n > 0 {
			err = nil
		}
		if r.at += int64(n); int64(n) == one.size() {
			r.list, r.at = r.list[1:], 0
		}
	}
	if n == 0 && err == nil && len(b) > 0 {
		err = io.EOF
	}
	return n, err
}

// section returns the bytes [from, to) of the text, at most what it has.
func (p *pieces) section(from, to int64) ([]byte, error) {
	sub := pieces{file: p.file}
	for _, one := range p.list {
		n := one.size()
		if from < n && to > 0 {
			sub.list = append(sub.list, one.part(max(from, 0), min(to, n)))
		}
		from, to = from-n, to-n
	}
	return io.ReadAll(sub.reader())
}

// ReadAt implements [io.ReaderAt] for the whole text.
func (p *pieces) ReadAt(b []byte, at int64) (int, error) {
	part, err := p.section(at, at+int64(len(b)))
	if n := copy(b, part); err != nil || n == len(b) {
		return n, err
	} else {
		return n, io.EOF
	}
}

// blockSize is how much of a text is searched at once, in bytes.
const blockSize = 256 << 10

// maxMatches bounds the matches that one edit may replace.
const maxMatches = 1_000_000

// find returns the offsets of a text, from left to right, also where they overlap, and how many there are if these are
// more than most. step is the size of a code unit: matches begin at its multiples, counted from the start of the text.
func (p *pieces) find(ctx context.Context, text []byte, step, most int) (found []int64, n int, err error) {
	r, buf := p.reader(), make([]byte, 0, blockSize+len(text))
	for base, next, end := int64(0), int64(0), false; !end; {
		if err := ctx.Err(); err != nil {
			return nil, 0, err
		}
		read, err := io.ReadFull(r, buf[len(buf):cap(buf)])
		if end = err == io.EOF || err == io.ErrUnexpectedEOF; err != nil && !end {
			return nil, 0, err
		}
		buf = buf[:len(buf)+read]
		for at := int(max(next-base, 0)); ; {
			i := bytes.Index(buf[at:], text)
			if i < 0 {
				break
			}
			if at += i; (base+int64(at))%int64(step) != 0 {
				at++
				continue
			}
			if n++; len(found) < most {
				found = append(found, base+int64(at))
			}
			at += step
			next = base + int64(at)
		}
		if keep := min(len(text)-1, len(buf)); len(buf)-keep > 0 {
			base += int64(len(buf) - keep)
			buf = buf[:copy(buf, buf[len(buf)-keep:])]
		}
	}
	return found, n, nil
}

// place is n bytes of a text at an offset, and what is put there.
type place struct {
	at, n int64
	text  []byte // not nil
	crlf  bool   // lines end in \r\n there
}

// replace puts texts in the given places, which are in order and do not overlap.
func (p *pieces) replace(places []place) {
	list := make([]piece, 0, len(p.list)+2*len(places))
	at, drop := int64(0), int64(0) // offset of the piece that is split; how much of it a place before it took
	for _, one := range p.list {
		from, size := drop, one.size()
		drop = 0
		for len(places) > 0 && places[0].at < at+size {
			if begin := places[0].at - at; begin > from {
				list = append(list, one.part(from, begin))
			}
			list = append(list, piece{text: places[0].text})
			from = places[0].at + places[0].n - at
			places = places[1:]
		}
		if from < size {
			list = append(list, one.part(from, size))
		} else {
			drop = from - size
		}
		at += size
	}
	p.list = slices.DeleteFunc(list, func(one piece) bool { return one.size() == 0 })
}
