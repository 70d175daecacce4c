package extract

import (
	"bufio"
	"bytes"
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
	"unicode/utf8"

	"golang.org/x/net/html/charset"
	"golang.org/x/text/encoding/charmap"
)

const (
	maxHeader    = 1 << 20 // bytes of the header of a message
	maxMIMEDepth = 32      // nested parts and messages
)

var (
	errNoHeader  = errors.New("the header has no From, To, Date, Subject, Received, Message-Id or Content-Type")
	mailFields   = []string{"From", "To", "Date", "Subject"} // shown first, in this order
	wordDecoder  = mime.WordDecoder{CharsetReader: charset.NewReaderLabel}
	errTruncated = errors.New("the message is truncated")
)

// mail reads the parts of a message.
type mail struct {
	ctx         context.Context
	b           *builder
	left        int64 // bytes of decoded text that may still be read
	attachments int
	names       []string // of the first attachments
	damaged     error    // the first decoding error; the text before it is kept
}

func readEML(ctx context.Context, b *builder, r io.ReaderAt, size int64) error {
	m := mail{ctx: ctx, b: b, left: maxText}
	err := m.message(io.NewSectionReader(r, 0, size), 0)
	if err != nil && !errors.Is(err, errTruncated) {
		return err
	}
	if m.attachments > 0 {
		b.note("%s: %s", count(m.attachments, "attachment"), list(m.names))
	}
	if err == nil {
		err = m.damaged
	}
	if err != nil {
		b.note("some text is missing: %v", err)
	}
	return nil
}

// message reads a whole message.
func (m *mail) message(r io.Reader, depth int) error {
	limited := &io.LimitedReader{R: r, N: maxHeader}
	in := bufio.NewReader(limited)
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
	if depth > 0 {
		if err := m.b.addRaw(""); err != nil {
			return err
		}
	}
	for _, field := range mailFields {
		if v := h.Values(field); len(v) > 0 {
			if err := m.b.add("", collapsed(field+": "+decodeWords(strings.Join(v, ", ")))); err != nil {
				return err
			}
		}
	}
	if err := m.b.addRaw(""); err != nil {
		return err
	}
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

// decodeWords decodes a header value. Bytes that are not UTF-8 are windows-1252.
func decodeWords(value string) string {
	if s, err := wordDecoder.DecodeHeader(value); err == nil {
		value = s
	}
	if !utf8.ValidString(value) {
		value, _ = charmap.Windows1252.NewDecoder().String(value)
	}
	return value
}

// part reads a part, and reports whether it is plain text.
func (m *mail) part(h textproto.MIMEHeader, body io.Reader, depth int) (plain bool, err error) {
	if err := m.ctx.Err(); err != nil {
		return false, err
	}
	if depth > maxMIMEDepth {
		return false, fmt.Errorf("%w: more than %d nested parts", ErrBroken, maxMIMEDepth)
	}
	kind, params, err := mime.ParseMediaType(h.Get("Content-Type"))
	if err != nil && kind == "" {
		kind = "text/plain"
	}
	disposition, dparams, _ := mime.ParseMediaType(h.Get("Content-Disposition"))
	name := decodeWords(dparams["filename"])
	if name == "" {
		name = decodeWords(params["name"])
	}
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
		return false, m.message(decodeTransfer(h, body), depth+1)
	case text && disposition != "attachment":
		return kind == "text/plain", m.text(kind, params["charset"], decodeTransfer(h, body))
	}
	if name == "" {
		name = kind
	}
	if m.attachments++; m.attachments <= maxNames+1 {
		m.names = append(m.names, collapsed(name))
	}
	return false, nil
}

// multipart reads the parts of a part. Of alternatives it keeps one: the first plain text, else the first text.
func (m *mail) multipart(kind, boundary string, body io.Reader, depth int) error {
	if boundary == "" {
		return fmt.Errorf("%w: %s without a boundary", ErrBroken, kind)
	}
	outer, best, found := m.b, builder{}, false
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
		if blank := len(bytes.TrimSpace(m.b.body)) == 0; !blank && !found && (plain || len(best.body) == 0) {
			best, found = *m.b, plain
		}
		if err != nil {
			return errors.Join(err, m.keep(outer, &best))
		}
	}
	if err := m.keep(outer, &best); err != nil {
		return err
	}
	if err == io.EOF {
		return nil
	}
	if ctx := m.ctx.Err(); ctx != nil {
		return ctx
	}
	return fmt.Errorf("%w: %w", errTruncated, err)
}

// keep appends the lines of an alternative to the text.
func (m *mail) keep(outer, best *builder) error {
	outer.body = append(outer.body, best.body...)
	outer.lines += best.lines
	if len(outer.body) > maxText {
		return fmt.Errorf("%w: more than %d bytes of text", ErrTooLarge, maxText)
	}
	return nil
}

// decodeTransfer decodes base64 and quoted-printable; other encodings are the content itself.
func decodeTransfer(h textproto.MIMEHeader, body io.Reader) io.Reader {
	switch strings.ToLower(strings.TrimSpace(h.Get("Content-Transfer-Encoding"))) {
	case "base64":
		return base64.NewDecoder(base64.StdEncoding, body)
	case "quoted-printable":
		return quotedprintable.NewReader(body)
	}
	return body
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
	enc, _ := charset.Lookup(label)
	switch {
	case kind == "text/html" && enc == nil:
		in, err := decodeHTML(bytes.NewReader(raw), int64(len(raw)))
		if err != nil {
			return err
		}
		return htmlText(m.ctx, m.b, in)
	case enc == nil || strings.EqualFold(label, "us-ascii"):
		if !utf8.Valid(raw) {
			raw, _ = charmap.Windows1252.NewDecoder().Bytes(raw)
		}
	default:
		raw, _ = enc.NewDecoder().Bytes(raw)
	}
	if kind == "text/html" {
		return htmlText(m.ctx, m.b, bytes.NewReader(raw))
	}
	for line := range strings.Lines(strings.TrimRight(string(raw), " \t\r\n")) {
		if err := m.b.addRaw(strings.TrimRight(line, " \t\r\n")); err != nil {
			return err
		}
	}
	return nil
}
