package record

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/text/content"
)

func TestTextLines(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"", ""},
		{"a", `{"line":1,"text":"a"}` + "\n"},
		{"a\n\nb\r\n", `{"line":1,"text":"a"}` + "\n" + `{"line":2,"text":""}` + "\n" + `{"line":3,"text":"b"}` + "\n"},
		{"\r\n\xff\"\\", `{"line":1,"text":""}` + "\n" + `{"line":2,"text":"` + "\ufffd" + `\"\\"}` + "\n"},
	} {
		var out bytes.Buffer
		r := iotest.OneByteReader(strings.NewReader(tt.text))
		if err := TextLines(t.Context(), r, &out); (err == nil) != (tt.text == "") || out.String() != tt.want {
			t.Errorf("%q: %v\n%s", tt.text, err, out.String())
		}
	}
}

// Spans are the lines as strings.Lines cuts them, however long they are.
func TestLineSpans(t *testing.T) {
	text := strings.Repeat("x", 200_000) + "\r\ny\n\n" + strings.Repeat("z", 65_536) + "\nend"
	var got, want []string
	for line := range strings.Lines(text) {
		want = append(want, strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r"))
	}
	expect.Must(t, LineSpans(t.Context(), strings.NewReader(text), func(i int64, at content.Span) bool {
		if int(i) != len(got) {
			t.Errorf("index %d at line %d", i, len(got))
		}
		got = append(got, text[at.Start:at.End])
		return true
	}))
	expect.Same(t, got, want)
}

func TestLinesEnd(t *testing.T) {
	long := NewLines(t.Context(), strings.NewReader("abcdef\nx\n"), 3)
	if line, err := long.Next(); string(line) != "abc" || err != nil || long.Whole() || long.Check() == nil {
		t.Errorf("%q, %v", line, err)
	}
	if line, err := long.Next(); string(line) != "x" || err != nil || !long.Whole() || long.Number != 2 ||
		long.Check() != nil {
		t.Errorf("%q, %v", line, err)
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	expect.ErrorIs(
		t, TextLines(ctx, strings.NewReader(strings.Repeat("a\n", 5000)), &bytes.Buffer{}), context.Canceled, "canceled",
	)
	broken := errors.New("broken")
	expect.ErrorIs(t, TextLines(t.Context(), iotest.ErrReader(broken), &bytes.Buffer{}), broken, "a reader that fails")
}

func TestObject(t *testing.T) {
	var o Object
	expect.Equal(t, o.Text(), "{}")
	o.String("a\n", "b")
	o.StringOrNull("n", "")
	o.Int("i", -1)
	for _, s := range []string{"1", "-0.5e3", "007", "+1", "1.", "NaN", "1e9999", ""} {
		o.Scalar("s", s)
	}
	want := `{"a\n":"b","n":null,"i":-1,"s":1,"s":-0.5e3,"s":"007","s":"+1","s":"1.","s":"NaN","s":"1e9999","s":""}`
	expect.Equal(t, o.Text(), want)
}
