package conformance

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf16"
)

// document runs a command of documents in dir.
func document(t *testing.T, dir, stdin string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	return launch{dir: dir, stdin: strings.NewReader(stdin), flags: args}.output(t)
}

// TestDocumentEncodings has check, join and deliver agree on texts of several encodings.
func TestDocumentEncodings(t *testing.T) {
	drivesOnly(t)
	t.Parallel()
	wide := func(s string) string {
		var b []byte
		for _, u := range utf16.Encode([]rune(s)) {
			b = append(b, byte(u), byte(u>>8))
		}
		return string(b)
	}
	const doc = `{"name": "Zoë", "words": "some of them"}`
	dir := plainDir(t)
	for name, tt := range map[string]struct {
		text  string
		whole bool
	}{
		"UTF-8":                         {doc, true},
		"UTF-8 with a mark":             {"\ufeff" + doc, true},
		"UTF-16 with a mark":            {"\xff\xfe" + wide(doc), true},
		"UTF-16":                        {wide(doc), true},
		"Latin-1":                       {strings.Replace(doc, "ë", "\xeb", 1), false},
		"overlong":                      {strings.Replace(doc, "ë", "\xc0\xab", 1), false},
		"far behind":                    {`{"a":"` + strings.Repeat("some words ", 20_000) + "\xeb\"}", false},
		"cut inside of a character":     {doc[:13], false},
		"other bytes after a whole":     {doc + "\n\xeb", false},
		"a character between two reads": {`{"a":"` + strings.Repeat("\u20ac", 100_000) + `"}`, true},
	} {
		file := filepath.Join(dir, "document")
		write(t, file, tt.text)
		for _, command := range []string{"check", "join", "deliver"} {
			out, errs, code := document(t, dir, "", command, file)
			if (code == 0) != tt.whole || strings.Contains(out+errs, "\ufffd") {
				t.Errorf("%s of %s: exit code %d, %.200s %.200s", command, name, code, out, errs)
			}
			if out, errs, code := document(t, dir, tt.text, command, "-"); (code == 0) != tt.whole {
				t.Errorf("%s of %s on standard input: exit code %d, %.200s %.200s", command, name, code, out, errs)
			}
		}
	}
	if out, _, _ := document(t, dir, doc[:13], "deliver"); !strings.Contains(out, "CUT OFF") {
		t.Errorf("a part that is cut inside of a character: %s", out)
	}
}

// TestDocumentFiles has files that are not regular, and a document of many levels.
func TestDocumentFiles(t *testing.T) {
	drivesOnly(t)
	dir := plainDir(t)
	for _, command := range []string{"check", "join", "deliver"} {
		if _, errs, code := document(t, dir, "", command, os.DevNull); code == 0 ||
			!strings.Contains(errs, "not a regular file") {
			t.Errorf("%s: exit code %d, %s", command, code, errs)
		}
		if _, errs, code := document(t, dir, "", command, dir); code == 0 ||
			!strings.Contains(errs, "not a regular file") {
			t.Errorf("%s of a directory: exit code %d, %s", command, code, errs)
		}
	}
	out, _, _ := document(t, dir, strings.Repeat("[", 9000), "check")
	if len(out) > 500 || !strings.Contains(out, "cut off") {
		t.Errorf("%d bytes: %.600s", len(out), out)
	}
}
