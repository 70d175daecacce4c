package content

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/text/content/contenttest"
)

// recordsOf reads the records of a text, also in the smallest pieces, which must not differ.
func recordsOf(t testing.TB, k Kind, text string) ([]string, error) {
	t.Helper()
	read := func(r io.Reader) (got []string, err error) {
		err = readRecords(context.Background(), r, k, func(i int64, at Span) bool {
			expect.Equal(t, i, int64(len(got)), "record %d came as number", len(got))
			got = append(got, text[at.Start:at.End])
			return true
		})
		return got, err
	}
	whole, err := read(strings.NewReader(text))
	pieces, err2 := read(iotest.OneByteReader(strings.NewReader(text)))
	if diff := cmp.Diff(whole, pieces); diff != "" || fmt.Sprint(err) != fmt.Sprint(err2) {
		t.Errorf("%q: pieces of one byte differ: %v, %v\n%s", text, err, err2, diff)
	}
	return whole, err
}

func TestRecords(t *testing.T) {
	type row struct {
		Name string
		Kind Kind
		Text string
		Want []string
		Err  string
	}
	for _, tt := range append(expect.Table[row](t, "testdata/records.tsv"),
		row{"invalid UTF-8", JSON, "[\"\xff\", 2]", []string{"\"\xff\"", "2"}, ""},
	) {
		t.Run(tt.Name, func(t *testing.T) {
			got, err := recordsOf(t, tt.Kind, tt.Text)
			expect.Same(t, got, tt.Want)
			if msg := fmt.Sprint(err); err == nil && tt.Err != "" || err != nil && msg != tt.Err {
				t.Errorf("error %q, want %q", msg, tt.Err)
			}
		})
	}
}

func TestRecordsStopsAndReadsNoMoreThanItMust(t *testing.T) {
	r := &counting{r: io.MultiReader(strings.NewReader("[1,2,"), zeros{})}
	n := 0
	if err := readRecords(context.Background(), r, JSON, func(int64, Span) bool { n++; return n < 2 }); err != nil ||
		n != 2 {
		t.Fatal(n, err)
	}
	if r.n > 1<<20 {
		t.Errorf("read %d bytes of an endless text to see two records", r.n)
	}
}

func TestRecordsLooksAtTheContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	r := io.MultiReader(strings.NewReader("["), zeros{}, strings.NewReader("]"))
	n := 0
	err := readRecords(ctx, r, JSON, func(int64, Span) bool {
		if n++; n == 100_000 {
			cancel()
		}
		return true
	})
	expect.ErrorIs(t, err, context.Canceled)
}

// zeros is an endless list of zeros.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = "0,"[i%2]
	}
	return len(p) &^ 1, nil
}

type counting struct {
	r io.Reader
	n int64
}

func (c *counting) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

// One enormous string must not take enormous memory.
func TestOneGiantStringTakesNoMemory(t *testing.T) {
	size := int64(256 << 20)
	if testing.Short() {
		size = 64 << 20
	}
	giant := func() io.Reader {
		return io.MultiReader(strings.NewReader(`[{"a":"`), &letters{size}, strings.NewReader(`"},{"b":7}]`))
	}
	var before, now runtime.MemStats
	runtime.ReadMemStats(&before)
	var spans []Span
	expect.Must(t, readRecords(
		context.Background(), giant(), JSON, func(_ int64, at Span) bool { spans = append(spans, at); return true },
	))
	at, err := Point(context.Background(), io.LimitReader(giant(), size), JSON, "/1/b")
	if err == nil {
		t.Error("a cut text had a value in it that was not there", at)
	}
	runtime.ReadMemStats(&now)
	if want := []Span{{1, size + 9}, {size + 10, size + 17}}; !cmp.Equal(want, spans) {
		t.Error(cmp.Diff(want, spans))
	}
	if used := now.TotalAlloc - before.TotalAlloc; used > 4<<20 {
		t.Errorf("%d bytes were allocated on the way", used)
	}
}

type letters struct{ n int64 }

func (l *letters) Read(p []byte) (int, error) {
	if l.n == 0 {
		return 0, io.EOF
	}
	n := int(min(int64(len(p)), l.n))
	for i := range p[:n] {
		p[i] = 'x'
	}
	l.n -= int64(n)
	return n, nil
}

// Every element, found in one pass, decodes to what encoding/json makes of it.
func TestRecordsAgreeWithEncodingJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := contenttest.DrawJSON(t, keys, 4)
		list, ok := value.([]any)
		if !ok {
			list = []any{value}
		}
		text, err := json.MarshalIndent(list, "", rapid.SampledFrom([]string{"", " ", "\t"}).Draw(t, "indent"))
		expect.Must(t, err)
		i := 0
		err = readRecords(context.Background(), bytes.NewReader(text), JSON, func(_ int64, at Span) bool {
			var got any
			expect.Must(t, json.Unmarshal(text[at.Start:at.End], &got))
			if !cmp.Equal(got, list[i]) {
				t.Fatal(cmp.Diff(list[i], got))
			}
			i++
			return true
		})
		if err != nil || i != len(list) {
			t.Fatal(i, err)
		}
	})
}

// keys are texts with all in them that a JSON Pointer has its own way to write.
var keys = rapid.StringOf(rapid.SampledFrom([]rune("ab~/\"\\\n 世\u202e😀0")))

// A number or literal that ends where a cut-off text does may go on: it is no record and no value.
func TestCutScalarIsNoValue(t *testing.T) {
	for text, want := range map[string]int{"[1,2,3": 2, "[1,2,true": 2, `[1,2,"x"`: 3, "[1,2,{}": 3, "[1,2,3 ": 3, "[1,2,3]": 3} {
		n := 0
		err := readRecords(t.Context(), strings.NewReader(text), JSON, func(int64, Span) bool { n++; return true })
		if n != want || (err == nil) != strings.HasSuffix(text, "]") {
			t.Errorf("%s: %d records, want %d; %v", text, n, want, err)
		}
		_, err = Point(t.Context(), strings.NewReader(text), JSON, "/2")
		expect.Equal(t, err == nil, want == 3, "%s: /2: %v", text, err)
	}
}

// readRecords visits the records of a text as kinds has them read.
func readRecords(ctx context.Context, r io.Reader, k Kind, visit func(index int64, at Span) bool) error {
	if k == JSON {
		return Values(ctx, r, visit)
	}
	return LineValues(ctx, r, visit)
}
