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

	"github.com/mcp-funnel/mcp-funnel/internal/runes"
)

// SniffSize is the maximum length, in bytes, of the prefix that detection of the encoding and of the kind reads.
const SniffSize = 64 << 10

// Encoding is the character encoding of a stored text: "utf-8", "utf-8-bom", "utf-16le", "utf-16be", "utf-32le",
// "utf-32be", "latin-1" (windows-1252), "an unknown 8-bit encoding, read as latin-1", or "binary".
type Encoding string

// The encodings that [Detect] can return.
const (
	UTF8    Encoding = "utf-8" // also with a few invalid bytes
	UTF8BOM Encoding = "utf-8-bom"
	UTF16LE Encoding = "utf-16le"
	UTF16BE Encoding = "utf-16be"
	UTF32LE Encoding = "utf-32le"
	UTF32BE Encoding = "utf-32be"
	Latin1  Encoding = "latin-1" // windows-1252, which browsers read as latin-1 too
	// KOI8-R, Shift-JIS, GBK …: the decoded letters are wrong
	Unknown Encoding = "an unknown 8-bit encoding, read as latin-1"
	NoText  Encoding = "binary"
)

// Decode detects the encoding of r and returns a reader of its text as UTF-8 without BOM. Binary data is returned
// unchanged, with Encoding "binary". Line ends are kept. Memory is bounded.
func Decode(r io.Reader) (io.Reader, Encoding, error) {
	b := bufio.NewReaderSize(r, SniffSize)
	prefix, err := b.Peek(SniffSize)
	if err != nil && err != io.EOF {
		return nil, "", err
	}
	e := Detect(prefix, err == io.EOF)
	return e.Reader(b), e, nil
}

// bom returns the byte order mark with which a text of this encoding may begin; "" if the encoding has none.
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

// Reader returns a reader of r, a text in encoding e from its start, as UTF-8 without BOM. Bytes that cannot be
// decoded become U+FFFD; UTF-8 and binary data are returned unchanged.
func (e Encoding) Reader(r io.Reader) io.Reader {
	if bom := e.bom(); bom != "" {
		r = &bomSkipper{r: r, bom: bom}
	}
	if t := e.decoder(false); t != nil {
		return transform.NewReader(r, t)
	}
	return r
}

// Writer returns a writer that decodes a text in encoding e, from its start, and writes UTF-8 without BOM to w; Close
// flushes the last bytes. It returns nil if no decoding is needed: for UTF-8, with or without BOM, and for binary
// data.
func (e Encoding) Writer(w io.Writer) io.WriteCloser {
	if t := e.decoder(true); t != nil {
		return transform.NewWriter(w, t)
	}
	return nil
}

// decoder returns nil if the encoding needs no decoding. If mark is true, the text may begin with a byte order mark,
// which the decoder skips.
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

// bomSkipper is a reader that skips the byte order mark at the start of r, if present.
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

// Detect returns the encoding of a text from its first bytes (at most [SniffSize]). If whole is true, prefix is the
// whole text.
//
// Detect checks in this order: a byte order mark; NULs in the places where UTF-16 and UTF-32 have them; binary data,
// by its NULs and control characters; UTF-8; bytes that are plausible as windows-1252. Texts in other 8-bit encodings
// can be plausible too. If most of their letters are non-ASCII, unlike in any language of windows-1252, the result is
// [Unknown]. Texts with few such letters (Polish in windows-1250) are wrongly reported as [Latin1].
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

// plainUTF8 is a fast check without a [census]: p is valid UTF-8 with no NUL and few control characters.
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
		p = p[:runes.Complete(p)]
	}
	return utf8.Valid(p)
}

// control is 1 for C0 control characters and DEL, except those common in text and terminal output.
var control = [256]uint8{
	0: 1, 1: 1, 2: 1, 3: 1, 4: 1, 5: 1, 6: 1, 7: 1, '\v': 1, 14: 1, 15: 1, 16: 1, 17: 1, 18: 1, 19: 1, 20: 1, 21: 1, 22: 1, 23: 1, 24: 1, 25: 1, 26: 1,
	28: 1, 29: 1, 30: 1, 31: 1, 0x7f: 1,
}

// census counts the bytes and sequences by which [Detect] distinguishes encodings.
type census struct {
	nul      int
	control  int
	multi    int // UTF-8 sequences of several bytes
	invalid  int // bytes that are not valid UTF-8
	sensible int // invalid bytes that are plausible as windows-1252, see sensible1252
	letters  int // ASCII letters
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
		case (!whole || c.multi > 0) && !utf8.FullRune(p[i:]): // truncated by the end of the prefix or of the output
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

// sensible1252 reports whether the byte at i is plausible as windows-1252: a letter next to a letter, or a common
// sign.
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
	case 0xd7, 0xf7, 0xfe, 0xff: // × ÷, and þ ÿ, whose bytes are far more common in other encodings
		return false
	}
	return b >= 0xc0 || b|0x20-'a' < 26
}

// wide detects UTF-16 and UTF-32 without byte order mark: the NULs are in the places of the high bytes of ASCII
// characters, and the decoded text is readable. It returns "" for any other text.
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
	// Count the pairs of bytes that are an ASCII character in little endian, in big endian, and the pairs that are
	// two ASCII characters. A NUL-separated list of names has almost only the last, Chinese UTF-16 about one third.
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

// readable reports whether every character of p, decoded as e, is graphic, a format character or white space.
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
				break // the end of the prefix splits the surrogate pair
			}
			if r = utf16.DecodeRune(r, unit(i+2)); r == utf8.RuneError {
				return false
			}
			i += 2
		}
		if !unicode.IsGraphic(r) && !unicode.Is(unicode.Cf, r) && r != '\t' && r != '\n' && r != '\r' && r != '\f' &&
			r != 0x1b {
			return false
		}
	}
	return true
}

// hasMagic reports whether p begins with the signature of a known binary format.
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
