package backend

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func TestIDs(t *testing.T) {
	for in, want := range map[string]ID{
		"k3v9q2m7x4ab":               "k3v9q2m7x4ab",
		"K3V9Q2M7X4AB":               "k3v9q2m7x4ab",
		"obs:k3v9q2m7x4ab":           "k3v9q2m7x4ab",
		"OBS:K3v9q2m7x4ab":           "k3v9q2m7x4ab",
		"observation://k3v9q2m7x4ab": "k3v9q2m7x4ab",
		"":                           "", "obs:": "", "k3v9q2m7x4a": "", "k3v9q2m7x4abc": "", "k3v9q2m7x4al": "",
		"k3v9q2m7x4ai": "", "k3v9q2m7x4ao": "", "k3v9q2m7x4au": "", "../../../../ab": "", "obs:obs:k3v9q2m7x4ab": "",
		"observation://k3v9q2m7x4ab/receipt": "", " k3v9q2m7x4ab": "", "k3v9q2m7x4a\x00": "", strings.Repeat("k", 1<<20): "",
	} {
		got, err := ParseID(in)
		if got != want || (err == nil) != (want != "") || (err != nil && !errors.Is(err, ErrMalformed)) {
			t.Errorf("ParseID(%.40q) = %q, %v", in, got, err)
		}
		if err != nil && len(err.Error()) > 300 {
			t.Errorf("ParseID(%.40q): an error of %d bytes", in, len(err.Error()))
		}
	}
	seen := map[ID]bool{}
	for range 10_000 {
		id := RandomID()
		if back, err := ParseID("obs:" + string(id)); err != nil || back != id || seen[id] {
			t.Fatalf("new ID %q: %v", id, err)
		}
		seen[id] = true
	}
}

func TestDataNames(t *testing.T) {
	at := time.Date(2026, 11, 20, 14, 30, 22, 0, time.UTC)
	const id = "k3v9q2m7x4ab"
	for _, c := range []struct{ tool, ext, want string }{
		{"search", "ndjson", "search_20261120T143022_k3v9q2m7x4ab.ndjson"},
		{"", "", "tool_20261120T143022_k3v9q2m7x4ab.txt"},
		{"github__list_issues", "json", "github__list_issues_20261120T143022_k3v9q2m7x4ab.json"},
		{"../../etc/passwd", "../x", "------etc-passwd_20261120T143022_k3v9q2m7x4ab.txt"},
		{"a\x00b\u202e.c", "JSON", "a-b----c_20261120T143022_k3v9q2m7x4ab.txt"},
		{strings.Repeat("x", 500), strings.Repeat("e", 11), strings.Repeat("x", 40) + "_20261120T143022_k3v9q2m7x4ab.txt"},
	} {
		got := DataName(c.tool, at, id, c.ext)
		if got != c.want {
			t.Errorf("dataName(%.20q, %.20q) = %q, want %q", c.tool, c.ext, got, c.want)
		}
		if back, ok := ParseDataName(got); !ok || back != id {
			t.Errorf("parseDataName(%q) = %q, %v", got, back, ok)
		}
	}
	for _, name := range []string{"", ".", "k3v9q2m7x4ab.json", "_20261120T143022_k3v9q2m7x4ab.txt", "search_20261320T143022_k3v9q2m7x4ab.txt",
		"search_20261120T143022_k3v9q2m7x4ab", "search_20261120T143022_k3v9q2m7x4al.txt", "search_20261120T143022_k3v9q2m7x4ab.txt.bak",
		"search-20261120T143022_k3v9q2m7x4ab.txt", "a/b_20261120T143022_k3v9q2m7x4ab.txt", "search_20261120T143022_k3v9q2m7x4ab.TXT"} {
		if id, ok := ParseDataName(name); ok {
			t.Errorf("parseDataName(%q) = %q", name, id)
		}
	}
}
