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
		"<p><b>Sch&ouml;ne</b> indented line",
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
		"raw header bytes": {[]string{"Subject: caf\xe9", "", "x"}, "Subject: café\n\nx\n"},
		"no content type":  {[]string{"To: a", "", "caf\xe9"}, "To: a\n\ncafé\n"},
		"unknown charset": {
			[]string{"To: a", "Content-Type: text/plain; charset=x", "", "é"},
			"To: a\n\né\n[the charset x is not known]\n",
		},
		"mislabelled ASCII": {[]string{"To: a", "Content-Type: text/plain; charset=us-ascii", "", "é"}, "To: a\n\né\n"},
		"broken base64": {
			[]string{"To: a", "Content-Transfer-Encoding: base64", "", "YWJj!!!!"},
			"To: a\n\nabc\n[bytes in base64 that are not base64 are skipped]\n",
		},
		"html alternative": {
			[]string{
				"To: a", "Content-Type: multipart/alternative; boundary=B", "", "--B", "Content-Type: text/plain", "", " ",
				"--B", "Content-Type: multipart/related; boundary=C", "", "--C", "Content-Type: text/html", "", "<p>rich",
				"--C", "Content-Type: image/png", "", "png", "--C--", "--B--",
			},
			"To: a\n\nrich\n[1 attachment: image/png]\n",
		},
		"all recipients": {
			[]string{"From: a", "To: b", "Cc: c,", " d", "Cc: e", "Bcc: f", "Reply-To: =?utf-8?q?J=C3=BCrg?= <g>", "", "x"},
			"From: a\nReply-To: Jürg <g>\nTo: b\nCc: c, d, e\nBcc: f\n\nx\n",
		},
		"byte order mark": {[]string{"\ufeffSubject: s", "From: a", "", "x"}, "From: a\nSubject: s\n\nx\n"},
		"a word in an unknown charset": {
			[]string{"Subject: =?utf-8?Q?Rechnung_f=C3=BCr?= =?x-unknown?Q?ab=E9?= Mai", "", "x"},
			"Subject: Rechnung fürabé Mai\n\nx\n[the charset x-unknown is not known]\n",
		},
		"words in DOS, UTF-7 and Shift_JIS": {
			[]string{"Subject: =?cp850?Q?K=94ln?= - =?UTF-7?Q?Gr+APwA3w-e?= - =?shift_jis?B?i56Tcw==?=", "", "x"},
			"Subject: Köln - Grüße - 京都\n\nx\n",
		},
		"DOS":    {[]string{"To: a", "Content-Type: text/plain; charset=cp850", "", "Gr\x81\xe1e"}, "To: a\n\nGrüße\n"},
		"IBM437": {[]string{"To: a", "Content-Type: text/plain; charset=IBM437", "", "caf\x82"}, "To: a\n\ncafé\n"},
		"UTF-7":  {[]string{"To: a", "Content-Type: text/plain; charset=utf-7", "", "Caf+AOk- +- x"}, "To: a\n\nCafé + x\n"},
		"HTML in UTF-7": {
			[]string{"To: a", "Content-Type: text/html; charset=UTF-7", "", "<p>Caf+AOk-</p>"}, "To: a\n\nCafé\n",
		},
		"charset without a decoder": {
			[]string{"To: a", "Content-Type: text/plain; charset=iso-2022-cn", "", "x"},
			"To: a\n\nx\n[the charset iso-2022-cn is not known]\n",
		},
		"not UTF-8 as declared": {
			[]string{"To: a", "Content-Type: text/plain; charset=utf-8", "", "Gr\xfc\xdfe aus K\xf6ln"},
			"To: a\n\nGrüße aus Köln\n",
		},
		"blanks and junk in base64": {
			[]string{
				"To: a", "Content-Transfer-Encoding: base64", "", "VGhlIHJvb20g aXMgQjEy", "IGFuZCB0aGUg!!aG91ciBp cyBuaW5lLg",
			},
			"To: a\n\nThe room is B12 and the hour is nine.\n[bytes in base64 that are not base64 are skipped]\n",
		},
		"padding within base64": {
			[]string{"To: a", "Content-Transfer-Encoding: BASE64 ", "", "YQ==YmM=ZA"}, "To: a\n\nabcd\n",
		},
		"stray equals": {
			[]string{"To: a", "Content-Transfer-Encoding: quoted-printable", "", "1 = 2=", "=3D", "=ZZ"},
			"To: a\n\n1 = 2=\n=ZZ\n",
		},
		"long quoted-printable line": {
			[]string{"To: a", "Content-Transfer-Encoding: quoted-printable", "", strings.Repeat("a", 9000)},
			"To: a\n\n" + strings.Repeat("a", 9000) + "\n",
		},
		"unknown transfer encoding": {
			[]string{"To: a", "Content-Transfer-Encoding: x-uuencode", "", "begin"},
			"To: a\n\nbegin\n[the encoding x-uuencode is not decoded]\n",
		},
		"unquoted boundary": {
			[]string{
				"To: a", "Content-Type: multipart/mixed; boundary=----=_Part_12_34.56", "", "------=_Part_12_34.56", "", "x",
				"------=_Part_12_34.56--",
			},
			"To: a\n\nx\n",
		},
		"no subtype":   {[]string{"To: a", "Content-Type: text", "", "Plain tea."}, "To: a\n\nPlain tea.\n"},
		"no type":      {[]string{"To: a", "Content-Type: ; charset=koi8-r", "", "\xc1"}, "To: a\n\nа\n"},
		"invalid type": {[]string{"To: a", "Content-Type: text/plain; =x; charset=koi8-r;;", "", "\xc1"}, "To: a\n\nа\n"},
		"unquoted file names": {
			[]string{
				"To: a", "Content-Type: multipart/mixed; boundary=B", "", "--B", "Content-Type: application/pdf",
				"Content-Disposition: attachment; filename=My final report.pdf; size=3", "", "x",
				"--B", "Content-Type: application/pdf; name=a b (2).pdf", "", "x", "--B--",
			},
			"To: a\n\n[2 attachments: My final report.pdf, a b (2).pdf]\n",
		},
		"plain text that only points to the HTML": {
			[]string{
				"To: a", "Content-Type: multipart/alternative; boundary=B", "", "--B", "", "Open this in a client that shows HTML.",
				"--B", "Content-Type: text/html", "", "<p>Our price is 4,200 euro.</p>", "--B--",
			},
			"To: a\n\nOpen this in a client that shows HTML.\nOur price is 4,200 euro.\n",
		},
		"saved web page": {
			[]string{
				"From: <Saved by Blink>", "Content-Type: multipart/related; type=\"text/html\"; boundary=B", "", "--B",
				"Content-Type: text/html; charset=windows-1251", "Content-Transfer-Encoding: quoted-printable", "",
				"<p>=CA=E0=E7=E0=ED=FC", "--B", "Content-Type: text/css", "", "p {}", "--B--",
			},
			"From: <Saved by Blink>\n\nКазань\n[1 attachment: text/css]\n",
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
	refuses(t, "eml", map[string]refusal{
		"text":            {[]byte(strings.Repeat("plain text\n", 200)), ErrBroken},
		"NULs":            {make([]byte, 4096), ErrBroken},
		"no boundary":     {crlf("Subject: a", "Content-Type: multipart/mixed", "", "x"), ErrBroken},
		"deep":            {[]byte(deep), ErrBroken},
		"large header":    {[]byte("Subject: " + strings.Repeat("a", maxHeader)), ErrTooLarge},
		"large text":      {[]byte("Subject: a\n\n" + strings.Repeat("a", maxText+1)), ErrTooLarge},
		"PGP":             {crlf("Subject: a", "Content-Type: multipart/encrypted; boundary=B", "", "--B--"), ErrEncrypted},
		"S/MIME":          {crlf("Subject: a", "Content-Type: application/pkcs7-mime; smime-type=enveloped-data", ""), ErrEncrypted},
		"S/MIME, x- type": {crlf("Subject: a", "Content-Type: application/x-pkcs7-mime", ""), ErrEncrypted},
	})
}

func TestMbox(t *testing.T) {
	x, err := read(t, "mbox", crlf(
		"From a@x Thu Jan  1 00:00:00 1970", "Subject: one", "", "From the start", ">From here", "", "",
		"From b@x Thu Jan  1 00:00:00 1970", "no message", "",
		"From c@x Thu Jan  1 00:00:00 1970", "Subject: =?utf-8?q?Geb=C3=BChr?=", "Content-Transfer-Encoding: base64", "",
		"OTMgRnJhbmtlbg==",
	))
	want := "message 1: Subject: one\nmessage 1: \nmessage 1: From the start\nmessage 1: From here\nmessage 1: \n" +
		"message 3: Subject: Gebühr\nmessage 3: \nmessage 3: 93 Franken\n[1 message cannot be read]\n"
	if got := show(x); err != nil || got != want {
		t.Errorf("got %s, %v; want %s", got, err, want)
	}
	if _, err := read(t, "mbox", []byte("plain\n\nFrom here\n")); !errors.Is(err, ErrBroken) {
		t.Errorf("got %v, want %v", err, ErrBroken)
	}
}
