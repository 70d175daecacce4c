package extract

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"

	"github.com/mcp-funnel/mcp-funnel/text/content"
)

var (
	// rtfSkipped are the groups without text to read.
	rtfSkipped = content.SetOf(`fonttbl colortbl stylesheet info nonshppict objdata listtable listoverridetable
		rsidtbl revtbl filetbl xmlnstbl themedata datastore latentstyles nonesttables`)
	rtfText = map[string]string{
		"tab": "\t", "cell": " | ", "nestcell": " | ", "super": "^", "sub": "_",
		"emdash": "—", "endash": "–", "bullet": "•", "lquote": "‘", "rquote": "’",
		"ldblquote": "“", "rdblquote": "”", "emspace": " ", "enspace": " ",
	}
	rtfLineEnds = content.SetOf("par line row sect page column nestrow")
	// rtfShown begin groups of text that begin with \*, which says that a reader may skip them.
	rtfShown = content.SetOf("shppict shptxt annotation nesttableprops")
	// rtfCharsets are the charsets of fonts; others are the document's.
	rtfCharsets = map[int]string{
		128: "shift_jis", 129: "euc-kr", 134: "gbk", 136: "big5", 161: "windows-1253", 162: "windows-1254",
		163: "windows-1258", 177: "windows-1255", 178: "windows-1256", 186: "windows-1257", 204: "windows-1251",
		222: "windows-874", 238: "windows-1250",
	}
)

// rtfGroup is what holds up to the end of a group.
type rtfGroup struct {
	skip, inFonts bool
	font, uc      int // uc: how many bytes follow a character of \u for readers that cannot show it
}

// rtf reads a document in the Rich Text Format.
type rtf struct {
	rtfGroup
	outer    []rtfGroup
	charset  encoding.Encoding         // of the document
	fonts    map[int]encoding.Encoding // those with a charset of their own
	symbols  map[int]bool              // fonts of symbols
	raw      []byte                    // to decode
	line     []byte
	high     uint16 // the first half of a surrogate pair
	unread   int    // bytes to ignore after \u
	pictures int
	fields   int
	b        *builder
}

func readRTF(ctx context.Context, b *builder, r io.ReaderAt, size int64) error {
	if size > maxText {
		return fmt.Errorf("%w: %d bytes, the limit is %d", ErrTooLarge, size, maxText)
	}
	text := make([]byte, size)
	if _, err := r.ReadAt(text, 0); err != nil && err != io.EOF {
		return err
	}
	if !bytes.HasPrefix(text, []byte(`{\rtf`)) {
		return fmt.Errorf(`%w: it does not begin with {\rtf`, ErrBroken)
	}
	d := rtf{rtfGroup: rtfGroup{uc: 1}, charset: charmap.Windows1252, b: b}
	d.fonts, d.symbols = map[int]encoding.Encoding{}, map[int]bool{}
	for len(text) > 0 && b.err == nil {
		text = d.next(text)
		if len(text)%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
	}
	if d.fields > 0 {
		b.note("%s: only the text is read, no address of a link", count(d.fields, "field"))
	}
	if d.pictures > 0 {
		b.missed("picture", d.pictures)
	}
	d.endLine()
	return nil
}

// next reads the next byte or control word, and returns the text after it.
func (d *rtf) next(text []byte) (rest []byte) {
	c, rest := text[0], text[1:]
	switch c {
	case '{':
		d.flush()
		if d.outer = append(d.outer, d.rtfGroup); len(d.outer) > maxDepth {
			d.b.fail(fmt.Errorf("%w: more than %d nested groups", ErrBroken, maxDepth))
		}
	case '}':
		d.flush()
		if n := len(d.outer) - 1; n >= 0 {
			d.rtfGroup, d.outer = d.outer[n], d.outer[:n]
		}
	case '\\':
		if len(rest) > 0 {
			return d.control(rest)
		}
	case '\r', '\n':
	default:
		d.byte(c)
	}
	return rest
}

// byte adds a byte of text.
func (d *rtf) byte(c byte) {
	if d.unread > 0 {
		d.unread--
	} else if !d.skip {
		d.raw = append(d.raw, c)
	}
}

// control reads what follows a backslash.
func (d *rtf) control(text []byte) (rest []byte) {
	c, rest := text[0], text[1:]
	switch {
	case c == '\'' && len(rest) >= 2:
		if code, err := strconv.ParseUint(string(rest[:2]), 16, 8); err == nil {
			d.byte(byte(code))
		}
		return rest[2:]
	case c == '\\', c == '{', c == '}':
		d.byte(c)
	case c == '~':
		d.byte(' ')
	case c == '_':
		d.byte('-')
	case c == '*':
		d.skip = true
	case c == '\r', c == '\n':
		d.endLine()
	case c|0x20 >= 'a' && c|0x20 <= 'z':
		n := 1
		for n < len(text) && n < 32 && text[n]|0x20 >= 'a' && text[n]|0x20 <= 'z' {
			n++
		}
		word, digits := string(text[:n]), n
		for n < len(text) && n < digits+11 && (text[n] >= '0' && text[n] <= '9' || n == digits && text[n] == '-') {
			n++
		}
		value, err := strconv.Atoi(string(text[digits:n]))
		if rest = text[n:]; len(rest) > 0 && rest[0] == ' ' {
			rest = rest[1:]
		}
		if word == "bin" && err == nil {
			return rest[min(max(value, 0), len(rest)):]
		}
		d.word(word, value, err == nil)
	}
	return rest
}

// word applies a control word; has reports whether it has a value.
func (d *rtf) word(word string, value int, has bool) {
	d.flush()
	switch {
	case word == "pict" && !d.skip:
		d.pictures++
		d.skip = true
	case rtfShown[word]:
		d.skip = false
	case (word == "deleted" || word == "v") && !(has && value == 0): // removed, or hidden
		d.skip = true
	case word == "fldinst":
		d.fields++
		d.skip = true
	case rtfSkipped[word]:
		d.skip, d.inFonts = true, word == "fonttbl"
	case word == "fcharset" && value == 2 && d.inFonts:
		d.symbols[d.font] = true
	case word == "fcharset" && d.inFonts:
		if enc := charsetOf(rtfCharsets[value]); enc != nil {
			d.fonts[d.font] = enc
		}
	case word == "ansicpg":
		if enc := charsetOf("cp" + strconv.Itoa(value)); enc != nil {
			d.charset = enc
		} else if enc := charsetOf("windows-" + strconv.Itoa(value)); enc != nil {
			d.charset = enc
		}
	case word == "mac":
		d.charset = charmap.Macintosh
	case word == "pc", word == "pca":
		d.charset = charmap.CodePage850
	case word == "f", word == "deff":
		d.font = value
	case word == "uc":
		d.uc = min(max(value, 0), maxDepth)
	case d.skip:
	case word == "u" && has:
		d.unicode(uint16(value)) //nolint:gosec // negative values are those over 32767
	case rtfLineEnds[word]:
		d.endLine()
	default:
		d.line = append(d.line, rtfText[word]...)
	}
}

// unicode adds a UTF-16 unit.
func (d *rtf) unicode(unit uint16) {
	d.unread = d.uc
	r := rune(unit)
	if utf16.IsSurrogate(r) {
		if d.high == 0 {
			d.high = unit
			return
		}
		r = utf16.DecodeRune(rune(d.high), r)
	}
	d.high = 0
	d.line = utf8.AppendRune(d.line, r)
}

// flush decodes the bytes of text so far.
func (d *rtf) flush() {
	d.unread = 0
	if len(d.raw) == 0 {
		return
	}
	enc := d.fonts[d.font]
	if enc == nil {
		enc = d.charset
	}
	if d.symbols[d.font] {
		d.b.missed("symbol", len(d.raw))
	} else if text, err := enc.NewDecoder().Bytes(d.raw); err == nil {
		d.line = append(d.line, text...)
	}
	d.raw = d.raw[:0]
}

func (d *rtf) endLine() {
	d.flush()
	line := d.line
	d.line = d.line[:0]
	d.b.add("", collapsed(string(line)))
}
