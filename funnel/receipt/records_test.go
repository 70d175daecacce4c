package receipt

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/funnel/capture"
)

func captureOf(text string) *capture.Captured {
	w := capture.NewWriter(capture.Options{HeadLines: 10, TailLines: 5, Hold: 160_000, Counter: counter})
	_, _ = w.Write([]byte(text))
	return w.Close()
}

// TestOneLineJSONShowsNoRecordTwice: the head of JSON on one line has what is around the records, because the body
// shows the first one.
func TestOneLineJSONShowsNoRecordTwice(t *testing.T) {
	var records []string
	for i := range 900 {
		records = append(records, fmt.Sprintf(`{"id":%d,"name":"record number %d","of":{"é":[%d]}}`, i, i, i))
	}
	list := "[" + strings.Join(records, ",") + "]"
	for _, c := range []struct{ text, head string }{
		{list, "[… %d chars …]"},
		{list + "\n", "[… %d chars …]"},
		{"\xef\xbb\xbf" + list, "[… %d chars …]"},
		{`{"total":900,"items":` + list + "}\n", `{"total":900,"items":[… %d chars …]}`},
		{`{"ä":1,"of":{"items":` + list + `}}`, `{"ä":1,"of":{"items":[… %d chars …]}}`},
		{`{"items":` + list + `,"total":900}`, `{"items":[… %d chars …}`},
	} {
		for _, ceiling := range []int{160, 237, 600, 1500} {
			receipt, tokens := draftOf(captureOf(c.text), "").Fit(ceiling)
			if tokens > ceiling {
				t.Errorf("%d tokens at a ceiling of %d", tokens, ceiling)
			}
			if n := strings.Count(receipt, "record number 0"); n > 1 || n == 0 && ceiling > 200 {
				t.Errorf("at %d, the first record is shown %d times in\n%s", ceiling, n, receipt)
			}
			if before, after, _ := strings.Cut(c.head, "%d"); ceiling > 200 &&
				(!strings.Contains(receipt, before) || !strings.Contains(receipt, after+"\nnext: ")) {
				t.Errorf("at %d, no %q in\n%s", ceiling, c.head, receipt)
			}
		}
	}
	// Broken JSON, several lines, and an array of scalars keep their head: the body does not show its text.
	for _, text := range []string{list[:len(list)-9], list + "\n[", "[" + strings.Repeat("12345,", 900) + "1]"} {
		head := strings.ReplaceAll(text[:9], "\n", "")
		if receipt, _ := draftOf(captureOf(text), "").Fit(600); !strings.Contains(receipt, " ---\n"+head) {
			t.Errorf("no head %q in\n%s", head, receipt)
		}
	}
}

// TestNextSaysWhatARecordIs: the next step names what jq takes for a record, or the filter that gives the records, in
// receipts that have room for it.
func TestNextSaysWhatARecordIs(t *testing.T) {
	lines := func(line string) string { return strings.Repeat(line+"\n", 400) }
	item := `{"id":1,"message":"some words of a message"}`
	items := "[" + strings.Repeat(item+",\n", 400) + item + "]"
	for _, c := range []struct{ text, want string }{
		{lines(item), "for jq, a record is the JSON value of a line"},
		{items, "for jq, .[] gives the records"},
		{`{"results":` + items + "}", "for jq, .results[] gives the records"},
		{`{"a b":{"items":` + items + "}}", `for jq, ."a b".items[] gives the records`},
		{"a,b,c\n" + lines("1,some words,true"), "for jq, a record is a row"},
		{lines("some words of prose, a line each"), "for jq, a record is a line {line, text}"},
	} {
		for _, ceiling := range []int{160, 600} {
			receipt, tokens := draftOf(captureOf(c.text), "").Fit(ceiling)
			next := receipt[strings.LastIndex(receipt, "\n")+1:]
			if tokens > ceiling || strings.Contains(next, "("+c.want) != (ceiling == 600) {
				t.Errorf("at %d, %d tokens: %s; want %q", ceiling, tokens, next, c.want)
			}
		}
	}
	for _, c := range []struct {
		text    string
		offered []string
	}{
		{items, []string{"grep", "slice"}},
		{strings.Repeat("\x00\x01\x02\xff", 900), nil},
		{`{"text":"` + strings.Repeat("words ", 900) + `"}`, nil},
	} {
		f := Facts{Captured: captureOf(c.text), Count: counter.Count, Source: "x", Offered: c.offered}
		if next := f.nextSteps()[0]; strings.Contains(next, "for jq") {
			t.Errorf("%.20q: %s", c.text, next)
		}
	}
}
