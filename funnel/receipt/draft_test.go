package receipt

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/mcp-funnel/mcp-funnel/conformance/corpus"
	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/conformance/promise"
	"github.com/mcp-funnel/mcp-funnel/funnel/capture"
	"github.com/mcp-funnel/mcp-funnel/funnel/policy"
	"github.com/mcp-funnel/mcp-funnel/funnel/text"
	"github.com/mcp-funnel/mcp-funnel/text/tokens"
)

var update = flag.Bool("update", false, "rewrite the golden files")

var counter = tokens.New(tokens.O200k)

// captured are the outputs of all kinds, captured once for all tests.
var captured = sync.OnceValue(func() (all []*capture.Captured) {
	for _, k := range corpus.Kinds {
		w := capture.NewWriter(capture.Options{HeadLines: 10, TailLines: 5, Hold: 160_000, Counter: counter})
		_, _ = w.Write(k.Text())
		all = append(all, w.Close())
	}
	return all
})

// draftOf is the draft of an output as if it were kept under an ID that does not change from run to run.
func draftOf(c *capture.Captured, saved string) *Draft {
	d := NewDraft(Facts{Captured: c, Count: counter.Count, OwnTool: true, Kept: Kept{Name: "obs:k3v9q2m7x4ab"}})
	d.SetSaved(saved)
	return d
}

const savedPath = "/home/me/.local/state/mcp-funnel/observations/search_20261120T143022_k3v9q2m7x4ab.ndjson"

func TestReceiptGoldens(t *testing.T) {
	promise.OrdinaryRun(t)
	for i, c := range captured() {
		k := corpus.Kinds[i]
		for _, ceiling := range []int{160, 237, 247, 600, 1500} {
			t.Run(fmt.Sprintf("%s-%d", k.Name, ceiling), func(t *testing.T) {
				got, tokens := draftOf(c, savedPath).Fit(ceiling)
				if tokens > ceiling {
					t.Errorf("%d tokens at a ceiling of %d", tokens, ceiling)
				}
				golden(t, filepath.Join("testdata", "receipts", fmt.Sprintf("%s-%d.txt", k.Name, ceiling)), got+"\n")
			})
		}
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	if *update {
		expect.Must(t, os.MkdirAll(filepath.Dir(name), 0o755))
		expect.Must(t, os.WriteFile(name, []byte(got), 0o644))
		return
	}
	want, err := os.ReadFile(name)
	expect.Must(t, err, "(go test -update writes it)")
	expect.Same(t, got, string(want), "%s (go test -update rewrites it)", name)
}

func TestReceiptNeverPassesItsCeiling(t *testing.T) {
	all := captured()
	rapid.Check(t, func(t *rapid.T) {
		c := all[rapid.IntRange(0, len(all)-1).Draw(t, "kind")]
		ceiling := rapid.IntRange(policy.MinReceipt, policy.MaxReceipt).Draw(t, "ceiling")
		d := draftOf(c, rapid.SampledFrom([]string{"", savedPath, "/" + strings.Repeat("d\u202e/", 300)}).Draw(t, "saved"))
		d.notes = rapid.SampledFrom(
			[]string{"", "3 directories could not be read", strings.Repeat("ñ\x1b ", 400)},
		).Draw(t, "notes")
		if rapid.Bool().Draw(t, "from a file") {
			path := rapid.SampledFrom([]string{"a.txt", strings.Repeat("深い/", 1300)}).Draw(t, "path")
			from := Facts{Captured: c, Source: path}
			d.subject, d.next = from.Subject(), from.nextSteps()
		}
		receipt, tokens := d.Fit(ceiling)
		if n := counter.Count(receipt); n != tokens || n > ceiling {
			t.Fatalf("%d tokens (said to be %d) at a ceiling of %d:\n%s", n, tokens, ceiling, receipt)
		}
		order(t, d, receipt)
	})
}

// order checks that what is left out is left out from the end: what is said of a cut, the rest of what the kind says,
// shape, head, tail, saved to. Of the body there is nothing without what is said of a cut.
func order(t *rapid.T, d *Draft, receipt string) {
	t.Helper()
	has := func(mark string) bool { return strings.Contains(receipt, "\n"+mark) }
	begins := func(line string) string { // which a clipped line keeps
		r := []rune(text.VisibleLine(line, d.json()))
		return string(r[:min(len(r), 10)])
	}
	cuts := true
	for _, w := range cutWords {
		if slices.ContainsFunc(d.says, func(s string) bool { return strings.HasPrefix(s, w) }) && !has(w) {
			cuts = false
		}
	}
	if len(d.body) > 0 && !cuts && has(begins(d.body[0])) {
		t.Errorf("%q is there, and not all that is said of where the text breaks off:\n%s", begins(d.body[0]), receipt)
	}
	parts := []struct {
		name    string
		exists  bool
		present bool
	}{
		{"where it breaks off", d.cutLines > 0, cuts},
		{"says", len(d.says) > d.cutLines, len(d.says) > d.cutLines && has(begins(d.says[d.cutLines]))},
		{"shape", len(d.shapes) > 0, has("shape: ")},
		{"head", len(d.head) > 0, has("--- head: ")},
		{"tail", len(d.tail) > 0 && d.lines > int64(len(d.head)), has("--- tail: ")},
		{"saved to", d.saved != "", has("saved to: ")},
	}
	missing := ""
	for _, p := range parts {
		if p.exists && !p.present && missing == "" {
			missing = p.name
		} else if p.present && missing != "" {
			t.Errorf("%s is there without %s:\n%s", p.name, missing, receipt)
		}
	}
}

// If a text is truncated or broken, its receipt says where, at every ceiling and before shape, head and path.
func TestWhereItBreaksOffIsSaidFirst(t *testing.T) {
	for i, c := range captured() {
		want := map[string][]string{
			"json-cut":    {"breaks off at byte 700003, inside string at /2161/bio", "last complete: /2160", "cut-off piece "},
			"json-broken": {"broken at byte "},
			"diff-cut":    {"breaks off inside hunk "},
		}[corpus.Kinds[i].Name]
		if (want == nil) != (draftOf(c, "").cutLines == 0) {
			t.Errorf("%s: %d lines on a cut", corpus.Kinds[i].Name, draftOf(c, "").cutLines)
		}
		if want == nil {
			continue
		}
		for _, ceiling := range []int{200, 250, 600} {
			receipt, _ := draftOf(c, savedPath).Fit(ceiling)
			at := 0
			for _, w := range want {
				i := strings.Index(receipt[at:], "\n"+w)
				if i < 0 {
					t.Errorf("%s at %d: no %q in its place:\n%s", corpus.Kinds[i].Name, ceiling, w, receipt)
					break
				}
				at += i
			}
			for _, mark := range []string{"\nshape: ", "\n--- head: ", "\nsaved to: "} {
				if i := strings.Index(receipt, mark); i >= 0 && i < at {
					t.Errorf("%s at %d: %q stands before what is said of the cut:\n%s", corpus.Kinds[i].Name, ceiling, mark, receipt)
				}
			}
		}
	}
}

// TestBeginsOnce checks that a receipt says how a text begins only if its head does not show that.
func TestBeginsOnce(t *testing.T) {
	prose := string(corpus.WarAndPeace()[100_000:140_000])
	for name, c := range map[string]struct {
		text string
		want int // lines that begin with "begins: "
	}{
		"the head has it": {"It was a dark and stormy night; the rain fell in torrents, except at\noccasional " +
			"intervals, when it was checked by a violent gust of wind.\n\n" + prose, 0},
		"behind short lines": {strings.Repeat("Title\n\n", 30) + "It was a dark and stormy night. " + prose, 1},
	} {
		w := capture.NewWriter(capture.Options{HeadLines: 10, TailLines: 5, Hold: 160_000, Counter: counter})
		_, _ = w.Write([]byte(c.text))
		d := draftOf(w.Close(), "")
		for _, ceiling := range []int{200, 600, 4000} {
			text, _ := d.Fit(ceiling)
			if got := strings.Count(text, "\nbegins: "); got > c.want || ceiling == 600 && got != c.want {
				t.Errorf("%s, ceiling %d: %d: %s", name, ceiling, got, text)
			}
		}
	}
}
