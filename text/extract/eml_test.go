package extract

import (
	"encoding/base64"
	"errors"
	"strings"
	"testing"
)

// crlf returns the lines of a message.
func crlf(lines ...string) []byte { return []byte(strings.Join(lines, "\r\n") + "\r\n") }

func emlSample(testing.TB) []byte {
	return crlf(
		"From someone@example.com Thu Jan  1 00:00:00 1970",
		"Received: from a by b; Sun, 1 Mar 2026 10:00:00 +0100",
		"Subject: =?utf-8?q?Gr=C3=BC=C3=9Fe?= from",
		" Berlin",
		"From: =?iso-8859-1?B?SvxyZw==?= <j@example.com>",
		"To: a@example.com, b@example.com",
		"Date: Sun, 1 Mar 2026 10:00:00 +0100",
		"Content-Type: multipart/mixed; boundary=M",
		"",
		"preamble",
		"--M",
		"Content-Type: multipart/alternative; boundary=B",
		"",
		"--B",
		"Content-Type: text/plain; charset=iso-8859-1",
		"Content-Transfer-Encoding: quoted-printable",
		"",
		"Sch=F6ne",
		"",
		"  indented =",
		"line",
		"--B",
		"Content-Type: text/html",
		"",
		"<p>not this",
		"--B--",
		"--M",
		"Content-Type: application/pdf; name=\"=?utf-8?q?=C3=A4.pdf?=\"",
		"Content-Disposition: attachment",
		"Content-Transfer-Encoding: base64",
		"",
		"JVBERg==",
		"--M",
		"Content-Type: text/csv",
		"Content-Disposition: attachment; filename=b.csv",
		"",
		"1,2",
		"--M",
		"Content-Type: message/rfc822",
		"",
		"Subject: inner",
		"",
		"inner text",
		"--M--",
	)
}

func TestEML(t *testing.T) {
	golden(t, "eml", emlSample(t),
		"From: Jürg <j@example.com>",
		"To: a@example.com, b@example.com",
		"Date: Sun, 1 Mar 2026 10:00:00 +0100",
		"Subject: Grüße from Berlin",
		"",
		"Schöne",
		"",
		"  indented line",
		"",
		"Subject: inner",
		"",
		"inner text",
		"[2 attachments: ä.pdf, b.csv]",
	)
}

func TestEMLText(t *testing.T) {
	html := base64.StdEncoding.EncodeToString([]byte("<p>a</p><p>caf\xe9</p>"))
	for name, c := range map[string]struct {
		lines []string
		want  string
	}{
		"html only": {
			[]string{
				"Subject: s", "Content-Type: text/html; charset=windows-1252", "Content-Transfer-Encoding: base64", "", html,
			},
			"Subject: s\n\na\ncafé\n",
		},
		"html without a charset": {
			[]string{"Subject: s", "Content-Type: text/html", "", "<meta charset=koi8-r>\xc1"}, "Subject: s\n\nа\n",
		},
		"raw header bytes":  {[]string{"Subject: caf\xe9", "", "x"}, "Subject: café\n\nx\n"},
		"no content type":   {[]string{"To: a", "", "caf\xe9"}, "To: a\n\ncafé\n"},
		"unknown charset":   {[]string{"To: a", "Content-Type: text/plain; charset=x", "", "é"}, "To: a\n\né\n"},
		"mislabelled ASCII": {[]string{"To: a", "Content-Type: text/plain; charset=us-ascii", "", "é"}, "To: a\n\né\n"},
		"broken base64": {
			[]string{"To: a", "Content-Transfer-Encoding: base64", "", "YWJj!!!!"},
			"To: a\n\nabc\n[some text is missing: illegal base64 data at input byte 4]\n",
		},
		"html alternative": {
			[]string{
				"To: a", "Content-Type: multipart/alternative; boundary=B", "", "--B", "Content-Type: text/plain", "", " ",
				"--B", "Content-Type: multipart/related; boundary=C", "", "--C", "Content-Type: text/html", "", "<p>rich",
				"--C", "Content-Type: image/png", "", "png", "--C--", "--B--",
			},
			"To: a\n\nrich\n[1 attachment: image/png]\n",
		},
		"truncated": {
			[]string{"To: a", "Content-Type: multipart/mixed; boundary=B", "", "--B", "", "first", "--B", "", "sec"},
			"To: a\n\nfirst\nsec\n[some text is missing: the message is truncated: multipart: NextPart: EOF]\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			x, err := read(t, "eml", crlf(c.lines...))
			if got := show(x); err != nil || got != c.want {
				t.Errorf("got %q, %v; want %q", got, err, c.want)
			}
		})
	}
}

func TestEMLBad(t *testing.T) {
	skipLarge(t)
	deep := strings.Repeat("Subject: s\r\nContent-Type: message/rfc822\r\n\r\n", maxMIMEDepth+2)
	for name, c := range map[string]struct {
		data []byte
		want error
	}{
		"text":            {[]byte(strings.Repeat("plain text\n", 200)), ErrBroken},
		"NULs":            {make([]byte, 4096), ErrBroken},
		"no boundary":     {crlf("Subject: a", "Content-Type: multipart/mixed", "", "x"), ErrBroken},
		"deep":            {[]byte(deep), ErrBroken},
		"large header":    {[]byte("Subject: " + strings.Repeat("a", maxHeader)), ErrTooLarge},
		"large text":      {[]byte("Subject: a\n\n" + strings.Repeat("a", maxText+1)), ErrTooLarge},
		"PGP":             {crlf("Subject: a", "Content-Type: multipart/encrypted; boundary=B", "", "--B--"), ErrEncrypted},
		"S/MIME":          {crlf("Subject: a", "Content-Type: application/pkcs7-mime; smime-type=enveloped-data", ""), ErrEncrypted},
		"S/MIME, x- type": {crlf("Subject: a", "Content-Type: application/x-pkcs7-mime", ""), ErrEncrypted},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := read(t, "eml", c.data); !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
		})
	}
}
