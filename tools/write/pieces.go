package write

import (
	"bytes"
	"context"
	"io"
	"slices"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// pieces is a piece table: a text made of ranges of a file and of new texts, in order. It holds no part of the file in
// memory. See "Data Structures for Text Sequences" by Charles Crowley, 1998.
type pieces struct {
	list []piece
	enc  content.Encoding
}

// piece is n bytes of a file or of a new text, at an offset.
type piece struct {
	from  io.ReaderAt
	at, n int64
}

func newPiece(b []byte) piece { return piece{from: bytes.NewReader(b), n: int64(len(b))} }

// newPieces returns a text of one piece, in the encoding that it seems to have.
func newPieces(one piece) (*pieces, error) {
	p := &pieces{list: []piece{one}}
	head, err := p.part(0, content.SniffSize).bytes()
	p.enc = content.Detect(head, int64(len(head)) == one.n)
	return p, err
}

// size returns the bytes of the text.
func (p *pieces) size() (n int64) {
	for _, one := range p.list {
		n += one.n
	}
	return n
}

// reader returns a reader of the text, from its start.
func (p *pieces) reader() io.Reader {
	all := make([]io.Reader, len(p.list))
	for i, one := range p.list {
		all[i] = io.NewSectionReader(one.from, one.at, one.n)
	}
	return io.MultiReader(all...)
}

func (p *pieces) bytes() ([]byte, error) { return io.ReadAll(p.reader()) }

// cut removes the first n bytes of a list, at most what it has, and returns them.
func cut(list *[]piece, n int64) (head []piece) {
	for n > 0 && len(*list) > 0 {
		first := &(*list)[0]
		one := piece{first.from, first.at, min(n, first.n)}
		head = append(head, one)
		first.at, first.n, n = first.at+one.n, first.n-one.n, n-one.n
		if first.n == 0 {
			*list = (*list)[1:]
		}
	}
	return head
}

// part returns the bytes [from, to) of the text, at most what it has.
func (p *pieces) part(from, to int64) *pieces {
	rest := slices.Clone(p.list)
	cut(&rest, from)
	return &pieces{list: cut(&rest, to-from), enc: p.enc}
}

// place is n bytes of a text at an offset, and what is put there.
type place struct {
	at, n int64
	by    piece
	crlf  bool // lines end in \r\n there
}

func (p place) end() int64 { return p.at + p.n }

// splice puts texts in the given places, which are in order and do not overlap.
func (p *pieces) splice(places []place) {
	rest, at := slices.Clone(p.list), int64(0)
	p.list = make([]piece, 0, len(rest)+2*len(places))
	for _, one := range places {
		p.list = append(append(p.list, cut(&rest, one.at-at)...), one.by)
		cut(&rest, one.n)
		at = one.end()
	}
	p.list = append(p.list, rest...)
}

// blockSize is how much of a text is searched at once, in bytes.
const blockSize = 256 << 10

// maxMatches bounds the matches that one edit may replace.
const maxMatches = 1_000_000

// find returns the places of a text, from left to right, also where they overlap, and how many there are if these are
// more than most. They begin at multiples of the size of a code unit.
func (p *pieces) find(ctx context.Context, text string, most int) (found []place, n int, err error) {
	what, unit, err := p.enc.Encode(text)
	if err != nil {
		return nil, 0, err
	}
	crlf, size := strings.Contains(text, "\r\n"), int64(len(what))
	r, buf := p.reader(), make([]byte, 0, min(blockSize, p.size()+1)+size)
	last, far := -size, 0 // the last match, and how far it is from the one before if both overlap
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
			// If as many bytes follow as the last match is far, the next one is as far: linear where texts repeat themselves.
			to := int(last-base) + far + len(what)
			if far > 0 && to <= len(buf) && bytes.Equal(buf[to-far:to], what[len(what)-far:]) {
				at = to - len(what)
			} else if i := bytes.Index(buf[at:], what); i >= 0 {
				at += i
			} else {
				far = 0
				break
			}
			here := base + int64(at)
			if far = int(here - last); far >= len(what) {
				far = 0
			}
			if last, next = here, here+1; here%int64(unit) == 0 {
				if n++; len(found) < most {
					found = append(found, place{at: here, n: size, crlf: crlf})
				}
			}
			at++
		}
		if keep := min(len(what)-1, len(buf)); len(buf)-keep > 0 {
			base += int64(len(buf) - keep)
			buf = buf[:copy(buf, buf[len(buf)-keep:])]
		}
	}
	return found, n, nil
}
