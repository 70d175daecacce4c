package extract

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"math"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net/textproto"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/cention-sany/utf7"
	"github.com/jhillyerd/enmime/v2/mediatype"
	"golang.org/x/net/html/charset"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/ianaindex"

	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/text/words"
)

const (
	maxHeader    = 1 << 20 // bytes of the header of a message
	maxMediaType = 8 << 10 // bytes of a field that are parsed as a media type: the parser takes quadratic time
	maxMIMEDepth = 32      // nested parts and messages
	maxMailNotes = 10      // notes on charsets and encodings of one file
)

var (
	errNoHeader  = errors.New("the header has no From, To, Date, Subject, Received, Message-Id or Content-Type")
	errTruncated = errors.New("the message is truncated")

	// mailFields are shown first, in this order.
	mailFields = []string{"From", "Reply-To", "To", "Cc", "Bcc", "Date", "Subject"}
)

// mail reads the parts of messages.
//
// The parsers of the standard library, and of go-message, which wraps them, reject what real messages have: a header
// line without a name, a word in an unknown charset, stray bytes in base64. What they would lose is mended before.
type mail struct {
	ctx         context.Context
	b           *builder
	left        int64  // bytes of decoded text that may still be read
	place       string // of the message that is read; "" if the file is one message
	attachments int
	names       []string // of the first attachments
	notes       []string
	damaged     error // the first decoding error; the text before it is kept
}

func readEML(ctx context.Context, b *builder, r io.ReaderAt, size int64) error {
	m := mail{ctx: ctx, b: b, left: maxText}
	if err := m.message(io.NewSectionReader(r, 0, size), 0); errors.Is(err, errTruncated) {
		m.damaged = err
	} else if err != nil {
		return err
	}
	m.addNotes()
	return nil
}

// addNotes adds the notes on all messages of the file.
func (m *mail) addNotes() {
	if m.attachments > 0 {
		m.b.note("%s: %s", count(m.attachments, "attachment"), list(m.names))
	}
	m.b.notes = append(m.b.notes, m.notes...)
	if m.damaged != nil {
		m.b.note("some text is missing: %v", m.damaged)
	}
}

// note adds a note once, and only so many.
func (m *mail) note(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); len(m.notes) < maxMailNotes && !slices.Contains(m.notes, text) {
		m.notes = append(m.notes, text)
	}
}

// message reads a whole message.
func (m *mail) message(r io.Reader, depth int) error {
	limited := &io.LimitedReader{R: r, N: maxHeader}
	in := bufio.NewReader(limited)
	if mark, _ := in.Peek(3); string(mark) == "\xef\xbb\xbf" {
		_, _ = in.Discard(len(mark))
	}
	h, err := readHeader(in)
	if err != nil {
		return err
	}
	if limited.N <= 0 {
		return fmt.Errorf("%w: a header of more than %d bytes", ErrTooLarge, maxHeader)
	}
	limited.N = math.MaxInt64
	if depth == 0 && !hasMailField(h) {
		return errNoHeader
	}
	if depth > 0 || len(m.b.body) > 0 {
		m.b.addRaw("")
	}
	for _, field := range mailFields {
		if v := h.Values(field); len(v) > 0 {
			m.b.add(m.place, collapsed(field+": "+m.decodeWords(strings.Join(v, ", "))))
		}
	}
	m.b.addRaw("")
	_, err = m.part(h, in, depth)
	return err
}

// readHeader reads the header fields up to a blank line. Unlike net/mail it ignores lines that are no fields, such as
// the "From " line of an mbox file.
func readHeader(in *bufio.Reader) (textproto.MIMEHeader, error) {
	h, last := textproto.MIMEHeader{}, ""
	for {
		line, err := in.ReadString('\n')
		line = strings.TrimRight(line, "\r\n")
		if line == "" || err != nil && err != io.EOF {
			if err == io.EOF {
				err = nil
			}
			return h, err
		}
		key, value, ok := strings.Cut(line, ":")
		switch key = strings.TrimRight(key, " \t"); {
		case line[0] == ' ' || line[0] == '\t':
			if v := h[last]; len(v) > 0 {
				v[len(v)-1] += " " + strings.TrimSpace(line)
			}
		case ok && key != "" && !strings.ContainsAny(key, " \t"):
			last = textproto.CanonicalMIMEHeaderKey(key)
			h[last] = append(h[last], strings.TrimSpace(value))
		default:
			last = ""
		}
	}
}

func hasMailField(h textproto.MIMEHeader) bool {
	fields := append([]string{"Received", "Message-Id", "Content-Type"}, mailFields...)
	return slices.ContainsFunc(fields, func(field string) bool { return h.Get(field) != "" })
}

// decodeWords decodes a header value. A word in an unknown charset does not keep the others from being decoded.
func (m *mail) decodeWords(value string) string {
	d := mime.WordDecoder{CharsetReader: func(label string, in io.Reader) (io.Reader, error) {
		raw, err := io.ReadAll(in)
		return bytes.NewReader(m.decode(label, raw)), err
	}}
	if s, err := d.DecodeHeader(value); err == nil {
		value = s
	}
	return string(m.decode("", []byte(value)))
}

// mediaType returns a media type or disposition and its parameters. It accepts parameters that should be quoted.
func mediaType(value string) (kind string, params map[string]string) {
	kind, params, _, err := mediatype.Parse(value[:min(len(value), maxMediaType)])
	if err != nil {
		return "", nil
	}
	return kind, params
}

// part reads a part, and reports whether it is plain text.
func (m *mail) part(h textproto.MIMEHeader, body io.Reader, depth int) (plain bool, err error) {
	if err := m.ctx.Err(); err != nil {
		return false, err
	}
	if depth > maxMIMEDepth {
		return false, fmt.Errorf("%w: more than %d nested parts", ErrBroken, maxMIMEDepth)
	}
	kind, params := mediaType(h.Get("Content-Type"))
	if !strings.Contains(kind, "/") {
		kind = "text/plain"
	}
	disposition, dparams := mediaType(h.Get("Content-Disposition"))
	name := m.decodeWords(cmp.Or(dparams["filename"], params["name"]))
	text := kind == "text/plain" || kind == "text/html"
	sealed := kind == "multipart/encrypted" ||
		strings.HasSuffix(kind, "pkcs7-mime") && params["smime-type"] != "signed-data"
	switch {
	case sealed && depth == 0:
		return false, encrypted(kind)
	case sealed:
	case strings.HasPrefix(kind, "multipart/"):
		return false, m.multipart(kind, params["boundary"], body, depth)
	case kind == "message/rfc822" || kind == "message/global":
		return false, m.message(m.decodeTransfer(h, body), depth+1)
	case text && disposition != "attachment":
		return kind == "text/plain", m.text(kind, params["charset"], m.decodeTransfer(h, body))
	}
	if name == "" {
		name = kind
	}
	if m.attachments++; m.attachments <= maxNames+1 {
		m.names = append(m.names, collapsed(name))
	}
	return false, nil
}

// multipart reads the parts of a part. Of alternatives it keeps one: the first plain text, else the first text. A
// further one is also kept if the plain text lacks its words.
func (m *mail) multipart(kind, boundary string, body io.Reader, depth int) error {
	if boundary == "" {
		return fmt.Errorf("%w: %s without a boundary", ErrBroken, kind)
	}
	outer := m.b
	var best, rich builder // the first plain text, the first other text
	defer func() { m.b = outer }()
	in := multipart.NewReader(body, boundary)
	var err error
	for {
		var p *multipart.Part
		if p, err = in.NextRawPart(); err != nil {
			break
		}
		if kind != "multipart/alternative" {
			if _, err := m.part(p.Header, p, depth+1); err != nil {
				return err
			}
			continue
		}
		m.b = &builder{}
		plain, err := m.part(p.Header, p, depth+1)
		if of := map[bool]*builder{true: &best, false: &rich}[plain]; of.blank() && !m.b.blank() {
			*of = *m.b
		}
		if err != nil {
			keep(outer, &best, &rich)
			return err
		}
	}
	keep(outer, &best, &rich)
	if err == io.EOF {
		return outer.err
	}
	if ctx := m.ctx.Err(); ctx != nil {
		return ctx
	}
	return fmt.Errorf("%w: %w", errTruncated, err)
}

// blank reports whether there is no text.
func (b *builder) blank() bool { return len(bytes.TrimSpace(b.body)) == 0 }

// keep appends the lines of alternatives to the text.
func keep(outer, plain, rich *builder) {
	if plain.blank() || lacksWords(plain.body, rich.body) {
		plain.body = append(plain.body, rich.body...)
		plain.lines += rich.lines
	}
	outer.body = append(outer.body, plain.body...)
	outer.lines += plain.lines
	if len(outer.body) > maxText {
		outer.fail(fmt.Errorf("%w: more than %d bytes of text", ErrTooLarge, maxText))
	}
}

// lacksWords reports whether more than a fifth of the different words of rich are not in plain, as if plain only said
// that the message should be read in another form.
func lacksWords(plain, rich []byte) bool {
	has, all, missing := map[string]bool{}, map[string]bool{}, 0
	words.Each(string(plain), func(w string, _, _ int) { has[w] = true })
	words.Each(string(rich), func(w string, _, _ int) {
		if !all[w] && !has[w] {
			missing++
		}
		all[w] = true
	})
	return missing*5 > len(all)
}

// decodeTransfer decodes base64 and quoted-printable; other encodings are the content itself.
func (m *mail) decodeTransfer(h textproto.MIMEHeader, body io.Reader) io.Reader {
	switch of := strings.ToLower(strings.TrimSpace(h.Get("Content-Transfer-Encoding"))); of {
	case "base64":
		raw, err := io.ReadAll(io.LimitReader(body, 2*maxText))
		if err != nil && m.damaged == nil {
			m.damaged = err
		}
		return bytes.NewReader(m.decodeBase64(raw))
	case "quoted-printable":
		return quotedprintable.NewReader(bufio.NewReaderSize(body, maxHeader)) // its default limits lines to 4 KiB
	case "7bit", "8bit", "binary", "":
	default:
		m.note("the encoding %s is not decoded", content.ClipBytes(of, 40))
	}
	return body
}

const base64Bytes = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

// decodeBase64 decodes base64, also without padding and with padding within.
func (m *mail) decodeBase64(raw []byte) (text []byte) {
	clean := bytes.Map(func(r rune) rune {
		if r == '=' || strings.ContainsRune(base64Bytes, r) {
			return r
		}
		if !unicode.IsSpace(r) {
			m.note("bytes in base64 that are not base64 are skipped") // as RFC 2045 says
		}
		return -1
	}, raw)
	for run := range bytes.SplitSeq(clean, []byte("=")) {
		if len(run)%4 == 1 { // half a byte
			run = run[:len(run)-1]
		}
		text, _ = base64.RawStdEncoding.AppendDecode(text, run)
	}
	return text
}

// charsetOf returns a charset by its name; nil if it is not known.
func charsetOf(label string) encoding.Encoding {
	label = strings.ToLower(strings.TrimSpace(label))
	if strings.HasSuffix(label, "utf-7") {
		return utf7.UTF7
	}
	if enc, name := charset.Lookup(label); enc != nil && name != "replacement" {
		return enc
	}
	enc, err := ianaindex.IANA.Encoding(label) // of DOS, among others
	if err != nil {
		return nil
	}
	return enc
}

// decode decodes text in a charset. Text in UTF-8, in none or in an unknown charset is decoded by its bytes.
func (m *mail) decode(label string, raw []byte) []byte {
	label = strings.ToLower(strings.TrimSpace(label))
	enc := charsetOf(label)
	switch {
	case label == "", label == "us-ascii", label == "utf-8":
	case enc == nil:
		m.note("the charset %s is not known", content.ClipBytes(label, 40))
	default:
		if text, err := enc.NewDecoder().Bytes(raw); err == nil {
			return text
		}
		m.note("some text is not in its charset %s", content.ClipBytes(label, 40))
	}
	if utf8.Valid(raw) {
		return raw
	}
	in, e, err := content.Decode(bytes.NewReader(raw))
	if err != nil || e == content.NoText || e == content.UTF8 {
		in = content.Latin1.Reader(bytes.NewReader(raw))
	}
	text, err := io.ReadAll(in)
	if err != nil {
		return raw
	}
	return text
}

// text adds a part of text. A decoding error ends the part; the text before it is kept.
func (m *mail) text(kind, label string, body io.Reader) error {
	raw, err := io.ReadAll(io.LimitReader(body, m.left+1))
	if m.left -= int64(len(raw)); m.left < 0 {
		return fmt.Errorf("%w: more than %d bytes of text", ErrTooLarge, maxText)
	}
	if ctx := m.ctx.Err(); ctx != nil {
		return ctx
	}
	if err != nil && m.damaged == nil {
		m.damaged = err
	}
	if kind == "text/html" && charsetOf(label) == nil {
		in, err := decodeHTML(bytes.NewReader(raw), int64(len(raw)))
		if err != nil {
			return err
		}
		return htmlText(m.ctx, m.b, in)
	}
	raw = m.decode(label, raw)
	if kind == "text/html" {
		return htmlText(m.ctx, m.b, bytes.NewReader(raw))
	}
	for line := range strings.Lines(strings.TrimRight(string(raw), " \t\r\n")) {
		if m.place != "" && line[0] == '>' && strings.HasPrefix(strings.TrimLeft(line, ">"), "From ") {
			line = line[1:] // as mbox files have it
		}
		m.b.addRaw(strings.TrimRight(line, " \t\r\n"))
	}
	return m.b.err
}
