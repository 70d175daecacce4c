package fs

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/color/palette"
	"image/gif"
	"image/jpeg"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/google/go-cmp/cmp"

	"github.com/mcp-funnel/mcp-funnel/tools"
	"github.com/mcp-funnel/mcp-funnel/tools/source"
	"github.com/mcp-funnel/mcp-funnel/tools/toolstest"
)

func utf16le(s string) string {
	b := []byte{0xff, 0xfe}
	for _, u := range utf16.Encode([]rune(s)) {
		b = append(b, byte(u), byte(u>>8))
	}
	return string(b)
}

var pixel = picture(1, 1)

// picture returns a PNG image.
func picture(width, height int) string {
	var b bytes.Buffer
	_ = png.Encode(&b, image.NewGray(image.Rect(0, 0, width, height)))
	return b.String()
}

func library(t testing.TB) (string, source.Set) {
	dir := t.TempDir()
	plant(t, dir, map[string]string{
		"a.txt":            "one\ntwo\n",
		"sub/b.txt":        "no newline",
		"sub/deep/c.txt":   "deep\n",
		"empty":            "",
		"wide.txt":         utf16le("grüße\n"),
		"old.csv":          "name;stra\xdfe\nM\xfcller;Hauptstra\xdfe\n",
		"pic.png":          pixel,
		"prog":             "\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\x3e\x00\x01\x00\x00\x00",
		"app/[id]/page.md": "a name that is a pattern too\n",
		".hid/x.txt":       "hidden\n",
		"link.txt":         "-> a.txt",
	})
	return dir, toolstest.Roots(t, dir)
}

func TestReadOneFile(t *testing.T) {
	_, s := library(t)
	for _, test := range []struct{ path, want, source, note string }{
		{"a.txt", "one\ntwo\n", "a.txt", ""},
		{"./sub/../a.txt", "one\ntwo\n", "a.txt", ""},
		{"link.txt", "one\ntwo\n", "link.txt", ""},
		{"sub/b.txt", "no newline", "sub/b.txt", ""},
		{"empty", "", "empty", "the file is empty"},
		{"wide.txt", "grüße\n", "wide.txt", "wide.txt: decoded from utf-16le"},
		{"old.csv", "name;straße\nMüller;Hauptstraße\n", "old.csv", "old.csv: decoded from latin-1"},
		{"app/[id]/page.md", "a name that is a pattern too\n", "app/[id]/page.md", ""},
		{".hid/x.txt", "hidden\n", ".hid/x.txt", ""},
		{"sub/deep/*.txt", "deep\n", "sub/deep/c.txt", ""}, // a glob that takes one file
	} {
		a, err := call(t, Read(), s, arguments(t, "path", test.path))
		if err != nil {
			t.Errorf("%s: %v", test.path, err)
			continue
		}
		if a.String() != test.want || a.source != test.source || strings.Join(a.notes, "|") != test.note {
			t.Errorf("%s: %q from %q, notes %q", test.path, a.String(), a.source, a.notes)
		}
	}
}

func TestReadImagesAndBinaries(t *testing.T) {
	dir, s := library(t)
	a, err := call(t, Read(), s, `{"path":"pic.png"}`)
	if err != nil {
		t.Fatal(err)
	}
	if b := a.parts["image/png pic.png"]; b == nil || b.String() != pixel || a.Len() > 0 {
		t.Errorf("parts %v, text %q", a.parts, a.String())
	}
	if a, err = call(t, Read(), s, `{"path":"prog"}`); err != nil ||
		!strings.HasPrefix(a.String(), "prog: binary, application/") || !strings.Contains(a.String(), "24 bytes") ||
		a.source != "" {
		t.Errorf("%v: %q", err, a.String())
	}
	big := append([]byte(pixel), make([]byte, maxImage)...)
	if err := os.WriteFile(filepath.Join(dir, "big.png"), big, 0o600); err != nil {
		t.Fatal(err)
	}
	if a, err = call(t, Read(), s, `{"path":"big.png"}`); err != nil || len(a.parts) > 0 ||
		!strings.Contains(a.String(), "too large to show") {
		t.Errorf("%v: %q, %d parts", err, a.String(), len(a.parts))
	}
}

// A client's API refuses such images, and with them the conversation.
func TestReadRefusesImagesThatAPIsRefuse(t *testing.T) {
	whole := picture(100, 100)
	badSum := []byte(whole)
	badSum[len(badSum)-20] ^= 1
	var jpg, moving bytes.Buffer
	gray := image.NewPaletted(image.Rect(0, 0, 90, 90), palette.WebSafe)
	if err := errors.Join(jpeg.Encode(&jpg, gray, nil), gif.Encode(&moving, gray, nil)); err != nil {
		t.Fatal(err)
	}
	webp, err := base64.StdEncoding.DecodeString("UklGRh4AAABXRUJQVlA4TBEAAAAvAAAAAAfQ//73v/+BiOh/AAA=") // one pixel
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ name, content, fault string }{
		{"whole.png", whole, ""},
		{"most.png", picture(8000, 3), ""},
		{"wide.png", picture(8001, 1), "8001 × 1 pixels: too large"},
		{"high.png", picture(1, 9000), "1 × 9000 pixels: too large"},
		{"area.png", picture(8000, 8000), "8000 × 8000 pixels: too large"},
		{"cut.png", whole[:len(whole)-30], "damaged"},
		{"head.png", whole[:33], "damaged"},
		{"sum.png", string(badSum), "damaged"},
		{"whole.jpg", jpg.String(), ""},
		{"cut.jpg", jpg.String()[:jpg.Len()/2], "damaged"},
		{"whole.gif", moving.String(), ""},
		{"cut.gif", moving.String()[:moving.Len()/2], "damaged"},
		{"whole.webp", string(webp), ""},
		{"cut.webp", string(webp[:30]), "damaged"},
	} {
		dir := t.TempDir()
		plant(t, dir, map[string]string{test.name: test.content})
		a, err := call(t, Read(), toolstest.Roots(t, dir), arguments(t, "path", test.name))
		if err != nil {
			t.Fatal(err)
		}
		if shown := len(a.parts) == 1; shown != (test.fault == "") || !strings.Contains(a.String(), test.fault) {
			t.Errorf("%s: shown %t, %q", test.name, shown, a.String())
		}
	}
}

func TestReadGlob(t *testing.T) {
	_, s := library(t)
	for _, test := range []struct{ path, want string }{
		{"*.txt", "==> a.txt <==\none\ntwo\n==> sub/b.txt <==\nno newline\n==> sub/deep/c.txt <==\ndeep\n==> wide.txt <==\ngrüße\n"},
		{"sub/*.txt", "no newline"}, // one file: as if it had been named
		{"sub/**/*.txt", "==> sub/b.txt <==\nno newline\n==> sub/deep/c.txt <==\ndeep\n"},
		{"{a.txt,pic.png,empty}", "==> a.txt <==\none\ntwo\n==> empty <==\n==> pic.png <== not text: image/png, 71 bytes; read it alone\n"},
	} {
		a, err := call(t, Read(), s, arguments(t, "path", test.path))
		if err != nil {
			t.Errorf("%s: %v", test.path, err)
			continue
		}
		if d := cmp.Diff(test.want, a.String()); d != "" {
			t.Errorf("%s: -want +got:\n%s", test.path, d)
		}
		if told := strings.Join(a.notes, "|") == "decoded: wide.txt (utf-16le)"; told != strings.Contains(test.want, "wide.txt") {
			t.Errorf("%s: notes %q", test.path, a.notes)
		}
		if strings.Contains(test.want, "==>") && a.source != "" {
			t.Errorf("%s: several files have no one source, but %q", test.path, a.source)
		}
	}
	a, err := call(t, Read(), s, `{"path":"*.nope"}`)
	if err != nil || a.Len() > 0 || len(a.notes) != 1 || !strings.HasPrefix(a.notes[0], "no match among") {
		t.Errorf("%v %q %q", err, a.String(), a.notes)
	}
}

func TestReadGlobIsBounded(t *testing.T) {
	dir := t.TempDir()
	for i := range maxRead + 5 {
		name := filepath.Join(dir, fmt.Sprintf("f%04d", i))
		if err := os.WriteFile(name, []byte("x\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	a, err := call(t, Read(), toolstest.Roots(t, dir), `{"path":"f*"}`)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(a.String(), "==> "); n != maxRead || a.counts["files_read"] != maxRead {
		t.Errorf("%d files, counts %v", n, a.counts)
	}
	if len(a.notes) != 1 || !strings.Contains(a.notes[0], "there are more") {
		t.Errorf("notes %q", a.notes)
	}
	// Bytes: the file that goes over is shown in part, those after it are counted.
	big := t.TempDir()
	line := strings.Repeat("word ", 12) + "end\n"
	text := bytes.Repeat([]byte(line), maxReadBytes/2/len(line)+1000)
	if err := os.WriteFile(filepath.Join(big, "a"), text, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"b", "c", "d"} {
		if err := os.Link(filepath.Join(big, "a"), filepath.Join(big, name)); err != nil {
			t.Fatal(err)
		}
	}
	a, err = call(t, Read(), toolstest.Roots(t, big), `{"path":"?"}`)
	if err != nil {
		t.Fatal(err)
	}
	if a.Len() > maxReadBytes+1000 || len(a.notes) != 2 || !strings.HasPrefix(a.notes[0], "shown in part, because") ||
		!strings.HasPrefix(a.notes[1], "2 files are not read") {
		t.Errorf("%d bytes, notes %q", a.Len(), a.notes)
	}
}

func TestReadRefuses(t *testing.T) {
	_, s := library(t)
	for _, test := range []struct{ path, want string }{
		{"", "empty"},
		{"nope.txt", "no such file"},
		{"sub", "is a directory; find"},
		{"sub/", "is a directory; find"},
		{"a.txt/", "not a directory"},
		{"../x", "outside the root"},
		{"../*", "outside the root"},
		{"/etc/passwd", "outside the root"},
		{"/etc/*", "outside the root"},
		{"a\x00", "NUL"},
		{"sub/{a", "not a pattern"},
		{"obs:zzz", "observation"},
		{strings.Repeat("y/", 3000), "at most 4096"},
	} {
		_, err := call(t, Read(), s, arguments(t, "path", test.path))
		if err == nil || !strings.Contains(err.Error(), test.want) || len(err.Error()) > 400 {
			t.Errorf("%.40q: error %v, want %q", test.path, err, test.want)
		}
	}
}

func TestReadAndFindStopWhenCancelled(t *testing.T) {
	_, s := library(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for _, tool := range []tools.Tool{Read(), Find()} {
		err := tool.Run(
			ctx, tools.Input{Args: json.RawMessage(`{"path":"sub"}`), Sources: s}, &answer{counts: map[string]float64{}},
		)
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", tool.Name, err)
		}
	}
}
