package content

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

// traced is what a scanner tells of a text in pieces of size n: events with the bytes where they stand.
func traced(text string, n, quiet int) (string, error) {
	s := Scanner{Quiet: quiet}
	var out strings.Builder
	note := func(e Event) {
		if e != More {
			fmt.Fprintf(&out, "%d@%d/%d ", e, s.Offset(), s.Depth())
		}
	}
	for at := 0; at < len(text) && s.Err() == nil; at += n {
		p := []byte(text[at:min(at+n, len(text))])
		for len(p) > 0 && s.Err() == nil {
			used, e := s.Scan(p)
			note(e)
			p = p[used:]
		}
	}
	e, err := s.End()
	note(e)
	return out.String(), err
}

// itemised is traced of a text that is read by items where there are any.
func itemised(text string, n int) (string, int, error) {
	var s Scanner
	var out strings.Builder
	items := 0
	note := func(e Event, at int64, depth int) {
		if e != More {
			fmt.Fprintf(&out, "%d@%d/%d ", e, at, depth)
		}
	}
	for at := 0; at < len(text) && s.Err() == nil; at += n {
		p := []byte(text[at:min(at+n, len(text))])
		for len(p) > 0 && s.Err() == nil {
			from, depth := s.Offset(), s.Depth()
			var it Item
			if used := s.Item(p, &it); used > 0 {
				items++
				if it.HasKey {
					note(KeyStart, from+int64(it.KeyFrom), depth)
					note(KeyEnd, from+int64(it.KeyTo)+1, depth)
				}
				switch it.Event {
				case StringEnd:
					note(StringStart, from+int64(it.From), depth)
					note(StringEnd, from+int64(it.To)+1, depth)
				case NumberEnd, LiteralEnd:
					note(it.Event-1, from+int64(it.From)+1, depth)
					note(it.Event, from+int64(it.To), depth)
				default:
					note(it.Event, from+int64(it.To), s.Depth())
				}
				p = p[used:]
				continue
			}
			used, e := s.Scan(p)
			note(e, s.Offset(), s.Depth())
			p = p[used:]
		}
	}
	e, err := s.End()
	note(e, s.Offset(), s.Depth())
	return out.String(), items, err
}

// oneValue says whether the scanner takes text as exactly one value.
func oneValue(text string) bool {
	s := Scanner{Quiet: 1}
	ends := 0
	for p := []byte(text); len(p) > 0 && s.Err() == nil; {
		n, e := s.Scan(p)
		if e.Ends() {
			ends++
		}
		p = p[n:]
	}
	e, err := s.End()
	if e.Ends() {
		ends++
	}
	return err == nil && ends == 1
}

var jsonSamples = []string{
	`{}`, `[]`, `""`, `0`, `-0`, `12`, `-1.5e+10`, `1E9`, `1e-2`, `true`, `false`, `null`, ` [ 1 , 2 ] `,
	`{"a":{"b":[1,2,{"c":null}]},"d":"x\n\u00e9\ud83d\ude00\\\""}`, "[\"\xff\"]", `{"a":1,"a":2}`, "[\n\t1\r\n]",
	`[1,]`, `[,1]`, `{,}`, `{"a"}`, `{"a":}`, `{"a":1,}`, `{a:1}`, `[1 2]`, `01`, `-`, `1.`, `.5`, `1e`, `1e+`, `+1`, `tru`, `truex`,
	`nul`, `"`, `"\x"`, `"\u12g4"`, "\"\n\"", "\"\x1f\"", "\"\x7f\"", `[`, `{`, `{"`, `]`, `}`, `[}`, `{]`, `'a'`, `NaN`, `[1][`, `1.2.3`, `2026-11-20`, `1_0`, "\ufeff1", `[1]]`, `/**/1`,
}

func TestScannerAgreesWithEncodingJSON(t *testing.T) {
	for _, text := range jsonSamples {
		if got, want := oneValue(text), json.Valid([]byte(text)); got != want {
			t.Errorf("%q: one value %v, encoding/json says %v", text, got, want)
		}
	}
}

func TestScannerPiecesOfAnySizeTellTheSame(t *testing.T) {
	for _, text := range jsonSamples {
		for quiet := range 4 {
			want, wantErr := traced(text, len(text), quiet)
			for n := 1; n < min(len(text), 12); n++ {
				got, err := traced(text, n, quiet)
				if got != want || fmt.Sprint(err) != fmt.Sprint(wantErr) {
					t.Errorf("%q in pieces of %d, quiet %d:\n got %s %v\nwant %s %v", text, n, quiet, got, err, want, wantErr)
				}
			}
		}
	}
}

func TestItemsTellTheSame(t *testing.T) {
	items := 0
	for _, text := range append(jsonSamples, string(sampleJSON()[:2000]), strings.Repeat(`[{"a":`, MaxDepth/2), strings.Repeat(`[`, MaxDepth)+`[`,
		`{"a":-0.5e-7,"b":1E+2,"":"\u00e9\t\\"}`, `[1.,2]`, `[1.e5]`, `[1e]`, `[00]`, `[-]`, `[tru]`, `[truex]`, `["\ud8"]`, `["\u12g4"]`, "[\"a\x01\"]", `{"a":1"b":2}`, `{"`+strings.Repeat("k", longKey+1)+`":1}`) {
		want, wantErr := traced(text, len(text)+1, 0)
		for n := 1; n < 40 && n < 2+len(text); n++ {
			size := n
			if n == 39 {
				size = len(text) + 1
			}
			got, m, err := itemised(text, size)
			items += m
			if got != want || fmt.Sprint(err) != fmt.Sprint(wantErr) {
				t.Errorf("%.100q in pieces of %d:\n got %.300s %v\nwant %.300s %v", text, size, got, err, want, wantErr)
			}
		}
	}
	if items < 1000 {
		t.Errorf("%d items", items)
	}
}

func TestScannerQuietTellsNoLessAbove(t *testing.T) {
	text := `{"a":[1,{"b":[[2]]}],"c":"x"} [3,[4]]`
	all, _ := traced(text, len(text), 0)
	for quiet := 1; quiet < 7; quiet++ {
		got, err := traced(text, len(text), quiet)
		expect.Must(t, err)
		rest := all
		for _, e := range strings.Fields(got) {
			i := strings.Index(rest, e+" ")
			if i < 0 {
				t.Fatalf("quiet %d told %s, which is not in order in %s", quiet, e, all)
			}
			rest = rest[i:]
		}
		expect.Equal(t, quiet >= 6, got == all, "quiet %d: all told, %s %s", quiet, got, all)
	}
}

func TestScannerErrors(t *testing.T) {
	for _, tt := range expect.Table[struct {
		Text, Reason string
		Offset       int64
		Cut          bool
	}](t, "testdata/errors.tsv") {
		_, err := traced(tt.Text, len(tt.Text), 0)
		var s *SyntaxError
		if !errors.As(err, &s) {
			t.Errorf("%q: %v is no SyntaxError", tt.Text, err)
			continue
		}
		if s.Reason != tt.Reason || s.Offset != tt.Offset || s.Cut != tt.Cut ||
			errors.Is(err, io.ErrUnexpectedEOF) != tt.Cut {
			t.Errorf("%q:\n got %+v\nwant %+v", tt.Text, *s, tt)
		}
	}
}

func TestScannerDepth(t *testing.T) {
	for depth, right := range map[int]bool{MaxDepth: true, MaxDepth + 1: false} {
		text := strings.Repeat("[", depth) + strings.Repeat("]", depth)
		if _, err := traced(text, 100, 0); (err == nil) != right {
			t.Errorf("%d deep: %v", depth, err)
		}
		expect.Equal(t, json.Valid([]byte(text)), right, "encoding/json disagrees on %d deep", depth)
	}
}

func FuzzScanner(f *testing.F) {
	for _, s := range jsonSamples {
		f.Add([]byte(s), 3)
	}
	f.Fuzz(func(t *testing.T, text []byte, n int) {
		if len(text) > 4096 {
			return
		}
		if got, want := oneValue(string(text)), json.Valid(text); got != want {
			t.Fatalf("%q: one value %v, encoding/json says %v", text, got, want)
		}
		n = max(1, n%16)
		want, wantErr := traced(string(text), len(text)+1, 0)
		got, err := traced(string(text), n, 0)
		if got != want || fmt.Sprint(err) != fmt.Sprint(wantErr) {
			t.Fatalf("%q in pieces of %d:\n got %s %v\nwant %s %v", text, n, got, err, want, wantErr)
		}
		for _, n := range []int{n, len(text) + 1} {
			if got, _, err = itemised(string(text), n); got != want || fmt.Sprint(err) != fmt.Sprint(wantErr) {
				t.Fatalf("%q by items, in pieces of %d:\n got %s %v\nwant %s %v", text, n, got, err, want, wantErr)
			}
		}
	})
}

func BenchmarkScanner(b *testing.B) {
	text := sampleJSON()
	for _, quiet := range []int{0, 1, 2} {
		b.Run(fmt.Sprint("quiet=", quiet), func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				s := Scanner{Quiet: quiet}
				for p := text; len(p) > 0; {
					n, _ := s.Scan(p)
					p = p[n:]
				}
				if s.Err() != nil {
					b.Fatal(s.Err())
				}
			}
		})
	}
}

func BenchmarkItems(b *testing.B) {
	text := sampleJSON()
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		var s Scanner
		var it Item
		for p := text; len(p) > 0; {
			n := s.Item(p, &it)
			if n == 0 {
				n, _ = s.Scan(p)
			}
			p = p[n:]
		}
		if s.Err() != nil {
			b.Fatal(s.Err())
		}
	}
}

// sampleJSON is a megabyte of search hits.
func sampleJSON() []byte {
	var b bytes.Buffer
	b.WriteString("[\n")
	for i := 0; b.Len() < 1<<20; i++ {
		if i > 0 {
			b.WriteString(",\n")
		}
		fmt.Fprintf(
			&b,
			`  {"file": "src/pkg%d/file_%d.go", "line": %d, "text": "\tif err := s.walk(ctx, \"%d\"); err != nil {", "score": %d.5, "seen": true}`,
			i%97, i, i%800, i, i%10,
		)
	}
	b.WriteString("\n]\n")
	return b.Bytes()
}
