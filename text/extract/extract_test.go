package extract

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

// entry is a file of a zip archive.
type entry struct{ name, text string }

func zipOf(t testing.TB, entries ...entry) []byte {
	t.Helper()
	var buf bytes.Buffer
	z := zip.NewWriter(&buf)
	for _, e := range entries {
		w, err := z.Create(e.name)
		if err == nil {
			_, err = w.Write([]byte(e.text))
		}
		expect.Must(t, err)
	}
	expect.Must(t, z.Close())
	return buf.Bytes()
}

// relsOf returns a part of relationships r1, r2 and so on. Each is "kind target".
func relsOf(all ...string) string {
	var b strings.Builder
	b.WriteString(`<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">`)
	for i, r := range all {
		kind, target, _ := strings.Cut(r, " ")
		fmt.Fprintf(&b, `<Relationship Id="r%d" Target="%s"`, i+1, target)
		if strings.Contains(target, "://") {
			b.WriteString(` TargetMode="External"`)
		}
		fmt.Fprintf(&b, ` Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/%s"/>`, kind)
	}
	return b.String() + `</Relationships>`
}

func read(t testing.TB, format string, data []byte) (Text, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute) // the machine may be busy
	defer cancel()
	return Read(ctx, format, bytes.NewReader(data), int64(len(data)))
}

// skipLarge skips a test of inputs at the limits in short runs: the race detector takes minutes for them.
func skipLarge(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("inputs at the limits are left to runs without -short")
	}
}

// show returns the text with the place of each line, then the notes.
func show(x Text) string {
	var b strings.Builder
	for i, line := range strings.Split(strings.TrimSuffix(string(x.Body), "\n"), "\n") {
		if p := x.PlaceOf(i + 1); p != "" {
			fmt.Fprintf(&b, "%s: ", p)
		}
		fmt.Fprintf(&b, "%s\n", line)
	}
	for _, n := range x.Notes {
		fmt.Fprintf(&b, "[%s]\n", n)
	}
	return b.String()
}

// golden checks the text, places and notes of a document.
func golden(t *testing.T, format string, data []byte, want ...string) {
	t.Helper()
	x, err := read(t, format, data)
	expect.Must(t, err)
	expect.Same(t, show(x), strings.Join(want, "\n")+"\n")
}

// refusal is a document that is not read, and the error.
type refusal struct {
	data []byte
	want error
}

func refuses(t *testing.T, format string, documents map[string]refusal) {
	t.Helper()
	for name, c := range documents {
		t.Run(name, func(t *testing.T) {
			_, err := read(t, format, c.data)
			expect.ErrorIs(t, err, c.want)
		})
	}
}

// samples are one small document of each format.
var samples = map[string]func(testing.TB) []byte{
	"docx": docxSample,
	"xlsx": xlsxSample,
	"pptx": pptxSample,
	"odt":  odtSample,
	"pdf":  pdfSample,
	"html": htmlSample,
	"eml":  emlSample,
}

func formatNames() []string {
	var all []string
	for name := range samples {
		all = append(all, name)
	}
	slices.Sort(all)
	return all
}

func TestFormat(t *testing.T) {
	for name, want := range map[string]string{
		"a.docx": "docx", "b/A.DOCM": "docx", "x.xlsx": "xlsx", "x.pptx": "pptx", "x.odt": "odt", "x.htm": "html",
		"x.html": "html", "mail.eml": "eml", "x.pdf": "pdf", "x.txt": "", "docx": "", "": "", "a.docx/b": "",
	} {
		expect.Equal(t, Format(name), want, "Format(%q)", name)
	}
}

func TestPlaceOf(t *testing.T) {
	x := Text{Places: []Place{{2, "a"}, {5, "b"}}}
	for line, want := range map[int]string{0: "", 1: "", 2: "a", 4: "a", 5: "b", 99: "b"} {
		expect.Equal(t, x.PlaceOf(line), want, "PlaceOf(%d)", line)
	}
}

func TestTruncated(t *testing.T) {
	for _, format := range formatNames() {
		data := samples[format](t)
		if _, err := read(t, format, data); err != nil {
			t.Fatalf("%s: %v", format, err)
		}
		for i := range 20 {
			x, err := read(t, format, data[:len(data)*i/20])
			if err == nil && len(x.Body) == 0 {
				t.Errorf("%s: %d/20 has neither text nor an error", format, i)
			}
			if err != nil && !errors.Is(err, ErrBroken) && !errors.Is(err, ErrNoText) {
				t.Errorf("%s: %d/20: %v", format, i, err)
			}
		}
	}
}

func TestInputOfAnotherFormat(t *testing.T) {
	for _, format := range formatNames() {
		if format == "html" || format == "eml" {
			continue // any bytes can be text
		}
		for name, data := range map[string][]byte{
			"text":  []byte(strings.Repeat("plain text\n", 200)),
			"zip":   zipOf(t, entry{"a.txt", "a"}),
			"NULs":  make([]byte, 4096),
			"1byte": {'P'},
		} {
			if _, err := read(t, format, data); !errors.Is(err, ErrBroken) {
				t.Errorf("%s of %s: %v", format, name, err)
			}
		}
		if _, err := read(t, format, nil); !errors.Is(err, ErrNoText) {
			t.Errorf("%s of no bytes: %v", format, err)
		}
	}
	if _, err := read(t, "doc", []byte("x")); err == nil {
		t.Error("an unknown format has no error")
	}
}

func TestLimits(t *testing.T) {
	if _, err := Read(t.Context(), "html", bytes.NewReader(nil), maxInput+1); !errors.Is(err, ErrTooLarge) {
		t.Errorf("input over the limit: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, format := range formatNames() {
		data := samples[format](t)
		if _, err := Read(ctx, format, bytes.NewReader(data), int64(len(data))); !errors.Is(err, context.Canceled) {
			t.Errorf("%s with a canceled context: %v", format, err)
		}
	}
}

// oleOf returns an OLE container whose directory has the name of one stream.
func oleOf(stream string) []byte {
	ole := make([]byte, 2048)
	copy(ole, "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1")
	ole[30] = 9 // sectors of 512 bytes; the directory is in sector 0
	for i, c := range stream {
		ole[512+128+2*i] = byte(c)
	}
	return ole
}

func TestOLE(t *testing.T) {
	for _, format := range []string{"docx", "xlsx", "pptx"} {
		if _, err := read(t, format, oleOf("EncryptedPackage")); !errors.Is(err, ErrEncrypted) {
			t.Errorf("%s with a password: %v", format, err)
		}
		if _, err := read(t, format, oleOf("WordDocument")); !errors.Is(err, ErrBroken) {
			t.Errorf("%s that is a doc: %v", format, err)
		}
	}
}

func TestRecovered(t *testing.T) {
	expect.ErrorIs(t, recovered(func() { panic("index out of range") }), ErrBroken, "a panic became")
}
