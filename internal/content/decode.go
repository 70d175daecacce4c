package content

import (
	"bufio"
	"bytes"
	"io"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/gabriel-vasile/mimetype"
	"golang.org/x/text/encoding/charmap"
	utf "golang.org/x/text/encoding/unicode"
	"golang.org/x/text/encoding/unicode/utf32"
	"golang.org/x/text/transform"
)

// Encoding says how a text was stored: "utf-8", "utf-8-bom", "utf-16le", "utf-16be", "utf-32le", "utf-32be",
// "latin-1" (windows-1252), "an unknown 8-bit encoding, read as latin-1", or "binary".
type Encoding string

// The encodings that are told apart.
const (
	UTF8    Encoding = "utf-8" // also where some bytes are invalid
	UTF8BOM Encoding = "utf-8-bom"
	UTF16LE Encoding = "utf-16le"
	UTF16BE Encoding = "utf-16be"
	UTF32LE Encoding = "utf-32le"
	UTF32BE Encoding = "utf-32be"
	Latin1  Encoding = "latin-1"                                    // windows-1252, as browsers take it
	Unknown Encoding = "an unknown 8-bit encoding, read as latin-1" // KOI8-R, Shift-JIS, GBK …: its letters are not those shown
	NoText  Encoding = "binary"
)

// Decode returns the text as UTF-8, without BOM, whatever its encoding; binary is passed on as it is
// with Encoding "binary". Line ends are kept. Bounded memory.
func Decode(r io.Reader) (io.Reader, Encoding, error) {
	b := bufio.NewReaderSize(r, SniffSize)
	prefix, err := b.Peek(SniffSize)
	if err != nil && err != io.EOF {
		return nil, "", err
	}
	e := Detect(prefix, err == io.EOF)
	return e.Reader(b), e, nil
}

// bom is the byte order mark that a text of this encoding may begin with.
func (e Encoding) bom() string {
	switch e {
	case UTF8BOM:
		return "\xef\xbb\xbf"
	case UTF16LE:
		return "\xff\xfe"
	case UTF16BE:
		return "\xfe\xff"
	case UTF32LE:
		return "\xff\xfe\x00\x00"
	case UTF32BE:
		return "\x00\x00\xfe\xff"
	}
	return ""
}

// Reader reads a text stored as e from its start, as UTF-8 without BOM. What cannot be decoded becomes U+FFFD; UTF-8 and binary are
// passed on as they are.
func (e Encoding) Reader(r io.Reader) io.Reader {
	if bom := e.bom(); bom != "" {
		r = &bomSkipper{r: r, bom: bom}
	}
	if t := e.decoder(false); t != nil {
		return transform.NewReader(r, t)
	}
	return r
}

// Writer makes UTF-8 of a text stored as e that is written to it from its start, without BOM, and writes that to w; Close ends
// it. nil where the bytes are the text: UTF-8, with a BOM or without, and binary.
func (e Encoding) Writer(w io.Writer) io.WriteCloser {
	if t := e.decoder(true); t != nil {
		return transform.NewWriter(w, t)
	}
	return nil
}

// decoder is nil where there is nothing to decode. mark says that the text may begin with its byte order mark, to be left out.
func (e Encoding) decoder(mark bool) transform.Transformer {
	policy, policy32 := utf.IgnoreBOM, utf32.IgnoreBOM
	if mark {
		policy, policy32 = utf.UseBOM, utf32.UseBOM
	}
	switch e {
	case UTF16LE:
		return utf.UTF16(utf.LittleEndian, policy).NewDecoder()
	case UTF16BE:
		return utf.UTF16(utf.BigEndian, policy).NewDecoder()
	case UTF32LE:
		return utf32.UTF32(utf32.LittleEndian, policy32).NewDecoder()
	case UTF32BE:
		return utf32.UTF32(utf32.BigEndian, policy32).NewDecoder()
	case Latin1, Unknown:
		return charmap.Windows1252.NewDecoder()
	}
	return nil
}

// bomSkipper leaves out a byte order mark where there is one.
type bomSkipper struct {
	r    io.Reader
	bom  string
	done bool
}

func (b *bomSkipper) Read(p []byte) (int, error) {
	if !b.done {
		b.done = true
		head := make([]byte, len(b.bom))
		n, err := io.ReadFull(b.r, head)
		if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
			return 0, err
		}
		if head = head[:n]; string(head) != b.bom {
			b.r = io.MultiReader(bytes.NewReader(head), b.r)
		}
	}
	return b.r.Read(p)
}

// Detect says how a text is stored, by its first bytes (at most [SniffSize]); whole says that they are all of it.
//
// In this order: a byte order mark; NULs as UTF-16 and UTF-32 have them; what is binary by its NULs and
// control characters; UTF-8; bytes that make sense in windows-1252. Other 8-bit encodings make sense in it too: where most
// letters are above ASCII, as no language that it was made for has them, it is [Unknown]. Some that have few (Polish in
// windows-1250) still pass for it.
func Detect(prefix []byte, whole bool) Encoding {
	for _, e := range []Encoding{UTF8BOM, UTF32LE, UTF32BE, UTF16LE, UTF16BE} {
		if bytes.HasPrefix(prefix, []byte(e.bom())) {
			return e
		}
	}
	if plainUTF8(prefix, whole) {
		return UTF8
	}
	c := take(prefix, whole)
	if c.nul > 0 {
		if e := wide(prefix, whole); e != "" {
			return e
		}
	}
	n := len(prefix)
	switch {
	case c.nul*1000 > n, c.control*20 > n:
		return NoText
	case c.invalid == 0, c.multi >= 2*c.invalid:
		return UTF8
	case c.control*50 > n, hasMagic(prefix):
		return NoText
	case c.sensible*10 >= c.invalid*9 && c.invalid > c.letters/2:
		return Unknown
	case c.sensible*10 >= c.invalid*9:
		return Latin1
	case c.invalid*3 > n:
		return NoText
	}
	return UTF8
}

// plainUTF8 says of most texts what they are without a [census]: no NUL, few control characters, all of it UTF-8.
func plainUTF8(p []byte, whole bool) bool {
	if bytes.IndexByte(p, 0) >= 0 {
		return false
	}
	controls := 0
	for _, b := range p {
		controls += int(control[b])
	}
	if controls*20 > len(p) {
		return false
	}
	if !whole {
		p = p[:completeRunes(p)]
	}
	return utf8.Valid(p)
}

// control has 1 for C0 and DEL, but those that text and terminals use.
var control = [256]uint8{
	0: 1, 1: 1, 2: 1, 3: 1, 4: 1, 5: 1, 6: 1, 7: 1, '\v': 1, 14: 1, 15: 1, 16: 1, 17: 1, 18: 1, 19: 1, 20: 1, 21: 1, 22: 1, 23: 1, 24: 1, 25: 1, 26: 1,
	28: 1, 29: 1, 30: 1, 31: 1, 0x7f: 1,
}

// census counts what tells encodings apart.
type census struct {
	nul      int
	control  int
	multi    int // UTF-8 sequences of several bytes
	invalid  int // bytes that are no UTF-8
	sensible int // of these: where windows-1252 has a letter beside a letter, or a sign
	letters  int // of ASCII
}

func take(p []byte, whole bool) census {
	var c census
	for i := 0; i < len(p); {
		b := p[i]
		if b < utf8.RuneSelf {
			switch {
			case b == 0:
				c.nul++
				c.control++
			case b|0x20-'a' < 26:
				c.letters++
			default:
				c.control += int(control[b])
			}
			i++
			continue
		}
		r, size := utf8.DecodeRune(p[i:])
		switch {
		case r != utf8.RuneError || size > 1:
			c.multi++
		case (!whole || c.multi > 0) && !utf8.FullRune(p[i:]): // cut by the end of the prefix, or of an output of UTF-8
			return c
		default:
			c.invalid++
			if sensible1252(p, i) {
				c.sensible++
			}
		}
		i += size
	}
	return c
}

// sensible1252 says whether the byte at i makes sense as windows-1252.
func sensible1252(p []byte, i int) bool {
	switch b := p[i]; {
	case letter1252(b):
		return i > 0 && letter1252(p[i-1]) || i+1 < len(p) && letter1252(p[i+1])
	case b == 0x80, b == 0x85, b >= 0x91 && b <= 0x97, b >= 0xa0 && b <= 0xbf, b == 0xd7, b == 0xf7: // € … ‘’“”•–— § ° × ÷
		return true
	}
	return false
}

func letter1252(b byte) bool {
	switch b {
	case 0x8a, 0x8c, 0x8e, 0x9a, 0x9c, 0x9e, 0x9f: // Š Œ Ž š œ ž Ÿ
		return true
	case 0xd7, 0xf7, 0xfe, 0xff: // × ÷, and þ ÿ: far more often bytes of something else
		return false
	}
	return b >= 0xc0 || b|0x20-'a' < 26
}

// wide recognises UTF-16 and UTF-32 without byte order mark: NULs stand where the high bytes
// of ASCII characters would, and what is decoded reads as text.
func wide(p []byte, whole bool) Encoding {
	if whole && len(p)%2 != 0 || len(p) < 4 {
		return ""
	}
	if whole && len(p)%4 == 0 || !whole {
		var nuls [4]int
		for i, b := range p {
			if b == 0 {
				nuls[i%4]++
			}
		}
		quads := len(p) / 4
		switch {
		case quads >= 2 && nuls[3] >= quads && nuls[2]*10 >= quads*9 && readable(p, UTF32LE):
			return UTF32LE
		case quads >= 2 && nuls[0] >= quads && nuls[1]*10 >= quads*9 && readable(p, UTF32BE):
			return UTF32BE
		}
	}
	// Units that are ASCII one way and the other, and those that would be two ASCII characters if this were no UTF-16: names
	// with NULs between them are all such, of Chinese it is a third.
	var little, big, two int
	pairs := len(p) / 2
	for i := 0; i+1 < len(p); i += 2 {
		a, b := p[i], p[i+1]
		switch {
		case b == 0 && texty(a):
			little++
		case a == 0 && texty(b):
			big++
		case texty(a) && texty(b):
			two++
		}
	}
	switch {
	case little > big && little*100 >= pairs && two*10 <= (pairs-little)*7 && readable(p, UTF16LE):
		return UTF16LE
	case big > little && big*100 >= pairs && two*10 <= (pairs-big)*7 && readable(p, UTF16BE):
		return UTF16BE
	}
	return ""
}

func texty(b byte) bool { return b >= 0x20 && b < 0x7f || b == '\t' || b == '\n' || b == '\r' }

// readable says whether every character of p, decoded as e, is one that text has.
func readable(p []byte, e Encoding) bool {
	size := 2
	if e == UTF32LE || e == UTF32BE {
		size = 4
	}
	unit := func(i int) rune {
		switch e {
		case UTF16LE:
			return rune(p[i]) | rune(p[i+1])<<8
		case UTF16BE:
			return rune(p[i+1]) | rune(p[i])<<8
		case UTF32LE:
			return rune(p[i]) | rune(p[i+1])<<8 | rune(p[i+2])<<16 | rune(p[i+3])<<24
		}
		return rune(p[i+3]) | rune(p[i+2])<<8 | rune(p[i+1])<<16 | rune(p[i])<<24
	}
	for i := 0; i+size <= len(p); i += size {
		r := unit(i)
		if size == 2 && utf16.IsSurrogate(r) {
			if i+4 > len(p) {
				break // the pair is cut by the end of the prefix
			}
			if r = utf16.DecodeRune(r, unit(i+2)); r == utf8.RuneError {
				return false
			}
			i += 2
		}
		if !unicode.IsGraphic(r) && !unicode.Is(unicode.Cf, r) && r != '\t' && r != '\n' && r != '\r' && r != '\f' && r != 0x1b {
			return false
		}
	}
	return true
}

// hasMagic says whether p begins as a known binary format does.
func hasMagic(p []byte) bool {
	m := mimetype.Detect(p)
	if m.Is("application/octet-stream") {
		return false
	}
	for ; m != nil; m = m.Parent() {
		if m.Is("text/plain") {
			return false
		}
	}
	return true
}
