package linesearch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp/syntax"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcp-funnel/mcp-funnel/base/panics"
	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/conformance/promise"
)

func TestComplaints(t *testing.T) {
	type row struct {
		P    Pattern
		Want string
	}
	for _, c := range append(expect.Table[row](t, "testdata/complaints.tsv"),
		row{Pattern{
			Expr: strings.Repeat("(", 1001) + strings.Repeat(")", 1001),
		}, "pattern: it nests too deeply: at most 1000 levels"},
		row{Pattern{Expr: strings.Repeat("(", 60_000)}, "pattern: missing closing )\n  …"},
		row{Pattern{
			Expr: strings.Repeat("x", 60_000) + "(",
		}, "pattern: missing closing )\n  …xxxxxxxxxxxxxxxxxxxxxxxxxx(\n                             ^"},
		row{Pattern{Expr: strings.Repeat("x", 1<<20)}, "pattern: 1048576 bytes are over the limit of 262144"},
		row{Pattern{Expr: strings.Repeat(`\pL`, 2100)}, "pattern: it is too large: more than 2000 instructions"},
		row{Pattern{Expr: "(" + strings.Repeat("a|", 3000) + "b)c"}, ""},
		row{Pattern{Expr: "a\xffb"}, "pattern: it is not valid UTF-8"},
	) {
		_, err := Compile(c.P)
		switch {
		case c.Want == "" && err != nil:
			t.Errorf("%.80q: %v", c.P.Expr, err)
		case c.Want != "" && (err == nil || !strings.HasPrefix(err.Error(), c.Want)):
			t.Errorf("%.80q:\n%v\nwant\n%v", c.P.Expr, err, c.Want)
		case err != nil && len(err.Error()) > 450:
			t.Errorf("%.80q: the error has %d bytes", c.P.Expr, len(err.Error()))
		}
	}
}

func FuzzCompile(f *testing.F) {
	for _, s := range []string{"a(b", `[\`, `\Q(`, "(?<=a)", "x{2}{3}", "[[:word:]", "(?i", "\xff", `\x{`, "[a-\\d]"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, expr string) {
		_, err := Compile(Pattern{Expr: expr})
		if err == nil {
			return
		}
		lines := strings.Split(err.Error(), "\n")
		if len(lines) == 1 {
			return
		}
		if len(lines) != 3 || !strings.HasSuffix(lines[2], "^") || len([]rune(lines[2])) > len([]rune(lines[1]))+1 ||
			len(err.Error()) > 450 {
			t.Errorf("%q: %q", expr, err)
		}
	})
}

// TestProgramIsTheCompiledSize holds the estimate, which bounds compiling, against what compiling makes.
func TestProgramIsTheCompiledSize(t *testing.T) {
	for _, expr := range []string{"abc", "a|bc|d+", "(a(b)*)?", "[a-z]{3,9}x", "(?:ab?){2,}", "^$", `\b\w+\b`,
		"(?i)straße", ".*.+.?", "(foo|bar){10}", "x{0}", "(?:x{5}){4}"} {
		tree, err := syntax.Parse(expr, syntax.Perl)
		expect.Must(t, err)
		p, err := syntax.Compile(tree.Simplify())
		expect.Must(t, err)
		if got, want := estimateProgramSize(tree), len(p.Inst); got > want+2 || got < want-4 {
			t.Errorf("%s: about %d, compiled %d", expr, got, want)
		}
	}
}

func TestNeedles(t *testing.T) {
	type row struct{ Expr, Want string }
	for _, c := range append(expect.Table[row](t, "testdata/needles.tsv"),
		row{"", ""},
	) {
		m, err := Compile(Pattern{Expr: c.Expr})
		expect.Must(t, err)
		var got []string
		for _, n := range m.need.Needles {
			if n.Fold {
				n.Text += "~"
			}
			got = append(got, n.Text)
		}
		if m.need.Suffice {
			got = append(got, "sure")
		} else if m.need.Prefix {
			got = append(got, "head")
		}
		expect.Equal(t, strings.Join(got, " "), c.Want, c.Expr)
	}
}

func TestStopAndQuiet(t *testing.T) {
	m, err := Compile(Pattern{Expr: "x"})
	expect.Must(t, err)
	text := strings.Repeat("x\ny\n", 100)
	other := errors.New("other")
	for _, c := range []struct {
		answer, want error
		told         int
		matches      int64
	}{{Stop, nil, 3, 2}, {Quiet, nil, 3, 100}, {other, other, 3, 2}} {
		n := 0
		totals, err := m.Scan(context.Background(), strings.NewReader(text), Options{After: 1}, func(Line) error {
			if n++; n == 3 {
				return c.answer
			}
			return nil
		})
		if err != c.want || n != c.told || totals.Matches != c.matches { //nolint:errorlint // the very error
			t.Errorf(
				"%v: %v, told %d, %d matches; want %v, %d, %d",
				c.answer,
				err,
				n,
				totals.Matches,
				c.want,
				c.told,
				c.matches,
			)
		}
	}
}

// stream makes a text of size bytes without holding it: repeated filler, with pieces at given places.
type stream struct {
	size, pos int64
	filler    byte
	at        map[int64]string
}

func (s *stream) Read(b []byte) (int, error) {
	n, err := s.ReadAt(b, s.pos)
	s.pos += int64(n)
	return n, err
}

func (s *stream) ReadAt(b []byte, at int64) (int, error) {
	n := int(min(int64(len(b)), s.size-at))
	if n <= 0 {
		return 0, io.EOF
	}
	for i := range n {
		b[i] = s.filler
	}
	for p, text := range s.at {
		for i := range len(text) {
			if j := p + int64(i) - at; 0 <= j && j < int64(n) {
				b[j] = text[i]
			}
		}
	}
	return n, nil
}

func (s *stream) Size() int64 { return s.size }

// TestAHugeLineIsSearchedWholeInBoundedMemory searches a line that is 12 times as long as what is held, read once and
// again, by needle and by regexp.
func TestAHugeLineIsSearchedWholeInBoundedMemory(t *testing.T) {
	promise.OrdinaryRun(t)
	size := int64(12 << 20)
	mark := size - 3<<20
	for _, c := range []struct {
		expr  string
		again bool
		hit   bool
	}{
		{"first mark", false, true}, {"first mark", true, true},
		{"f[i]rst.mark$", true, false}, {"f[i]rst ma.k", true, true}, {"f[i]rst ma.k", false, true}, {"not there",
			false, false}, {"second", true, false},
	} {
		m, err := Compile(Pattern{Expr: c.expr})
		expect.Must(t, err)
		s := &stream{size: size, filler: '-', at: map[int64]string{mark: "first mark", size - 20: "end\nsecon\nlast"}}
		var r io.Reader = s
		if !c.again {
			r = struct{ io.Reader }{s}
		}
		var got []Line
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		totals, err := m.Scan(context.Background(), r, Options{Before: 1, After: 1}, func(l Line) error {
			l.Text = bytes.Clone(l.Text)
			got = append(got, l)
			return nil
		})
		runtime.ReadMemStats(&after)
		if err != nil || totals.Lines != 3 || totals.Bytes != size {
			t.Errorf("%s: %v, %+v", c.expr, err, totals)
		}
		if used := after.TotalAlloc - before.TotalAlloc; used > 4<<20 { // all that was ever allocated: what was held is less
			t.Errorf("%s: %d bytes were allocated", c.expr, used)
		}
		if !c.hit {
			expect.Equal(t, len(got), 0, "%s: told, lines", c.expr)
			continue
		}
		if len(got) != 2 || got[0].Column != mark+1 || got[0].Size != size-17 ||
			!bytes.Contains(got[0].Text, []byte("-first mark-")) ||
			got[0].At > mark || got[0].At+int64(len(got[0].Text)) < mark+10 || len(got[0].Text) > DefaultWindow ||
			string(got[1].Text) != "secon" {
			t.Errorf("%s, again %v: told %+v", c.expr, c.again, got)
		}
	}
}

func TestMultilineOfAReaderThatCannotBeReadAgain(t *testing.T) {
	m, err := Compile(Pattern{Expr: `b\nc`, Multiline: true})
	expect.Must(t, err)
	m.sizes.text = 100
	text := "b\nc\n" + strings.Repeat("x\n", 100) + "b\nc\n"
	totals, err := m.Scan(context.Background(), &once{r: strings.NewReader(text)}, Options{}, nil)
	if d := cmp.Diff(Totals{Lines: 50, Matches: 1, Bytes: 100, Short: true}, totals); d != "" || err != nil {
		t.Errorf("%v; -want +got\n%s", err, d)
	}
	totals, err = m.Scan(context.Background(), strings.NewReader(text), Options{}, nil)
	if d := cmp.Diff(Totals{Lines: 104, Matches: 2, Bytes: int64(len(text))}, totals); d != "" || err != nil {
		t.Errorf("read again: %v; -want +got\n%s", err, d)
	}
}

func TestErrorsOfTheReader(t *testing.T) {
	broken := errors.New("broken")
	for _, p := range []Pattern{{Expr: "x"}, {Expr: "[xy]z*"}, {Expr: `x\n`, Multiline: true}} {
		m, err := Compile(p)
		expect.Must(t, err)
		for _, size := range []int{10, 3 << 20} {
			r := io.MultiReader(strings.NewReader(strings.Repeat("-", size)), brokenReader{broken})
			if _, err := m.Scan(context.Background(), r, Options{}, nil); !errors.Is(err, broken) &&
				(!p.Multiline || err != nil || size <= 4<<20) {
				t.Errorf("%+v after %d bytes: %v", p, size, err)
			}
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			if _, err := m.Scan(
				ctx, strings.NewReader(strings.Repeat("-", size)), Options{}, nil,
			); !errors.Is(err, context.Canceled) {
				t.Errorf("%+v cancelled: %v", p, err)
			}
		}
	}
	m, _ := Compile(Pattern{Expr: `a\nb`, Multiline: true})
	if _, err := m.Scan(context.Background(), strings.NewReader(""), Options{Invert: true}, nil); err == nil {
		t.Error("invert with multiline was taken")
	}
}

// shrinking is a text that turns out to be shorter than it says.
type shrinking struct {
	*bytes.Reader
	size int64
}

func (s shrinking) Size() int64 { return s.size }

func TestALargeTextBySeveralWorkers(t *testing.T) {
	var text bytes.Buffer
	for i := range 400_000 {
		fmt.Fprintf(&text, "%d some words and %d\n", i, i%1000)
		if i == 250_000 {
			text.WriteString(strings.Repeat("long ", 600_000) + "end\n") // longer than what is held
		}
	}
	m, err := Compile(Pattern{Expr: "and 77$|long"})
	expect.Must(t, err)
	want, totals := scanAll(t, m, Options{Before: 1, Window: 100}, &once{r: bytes.NewReader(text.Bytes())})
	for name, r := range map[string]io.Reader{"whole": bytes.NewReader(text.Bytes()),
		"shrunk": shrinking{bytes.NewReader(text.Bytes()), int64(text.Len()) * 2}} {
		var seen int64
		got, gotTotals := scanAll(
			t,
			m,
			Options{Before: 1, Window: 100, Progress: func(n int64) { seen = max(seen, n) }},
			r,
		)
		expect.Same(t, got, want, name)
		if gotTotals != totals || seen != totals.Bytes {
			t.Errorf("%s: %+v, want %+v; %d bytes were told as seen", name, gotTotals, totals, seen)
		}
	}
	before := runtime.NumGoroutine()
	for _, answer := range []error{Stop, errors.New("other")} {
		_, err := m.Scan(
			context.Background(),
			bytes.NewReader(text.Bytes()),
			Options{},
			func(Line) error { return answer },
		)
		if answer != Stop && err != answer || answer == Stop && err != nil { //nolint:errorlint // the very error
			t.Errorf("%v: %v", answer, err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	if _, err := m.Scan(
		ctx, bytes.NewReader(text.Bytes()), Options{}, func(Line) error { cancel(); return nil },
	); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled on the way: %v", err)
	}
	for n := 0; runtime.NumGoroutine() > before; n++ { // one that is done may not have gone yet
		if n == 500 {
			t.Fatalf("%d goroutines before, %d after", before, runtime.NumGoroutine())
		}
		time.Sleep(10 * time.Millisecond)
	}
}

type brokenReader struct{ err error }

func (b brokenReader) Read([]byte) (int, error) { return 0, b.err }

func TestWindow(t *testing.T) {
	text := []byte(strings.Repeat("aé世", 100))
	for at := range len(text) {
		w, from := Window(text, at, 50)
		if len(w) > 50 || len(w) < 44 || int64(at) < from || int64(at) >= from+int64(len(w))+3 ||
			!bytes.Equal(w, text[from:from+int64(len(w))]) {
			t.Fatalf("at %d: %d bytes from %d", at, len(w), from)
		}
		if r := []rune(string(w)); at > 3 && (r[0] == '\ufffd' && at-int(from) > 3 || r[len(r)-1] == '\ufffd') {
			t.Fatalf("at %d: cut inside a character: %q", at, w)
		}
	}
}

// A defect of the automaton that shows in one of several workers ends the search by a panic of its own goroutine.
func TestAPanicOfAWorkerIsRaisedInTheScan(t *testing.T) {
	m, err := Compile(Pattern{Expr: "a[bc]d"})
	expect.Must(t, err)
	broken := *m
	broken.sizes = split
	broken.auto = func() *automaton { panic("a defect") }
	broken.need.Needles, broken.newSearcher = nil, nil
	defer func() {
		if p, ok := recover().(*panics.Caught); !ok || p.Value != "a defect" {
			t.Errorf("recovered %v", p)
		}
	}()
	_, err = broken.Scan(
		t.Context(), strings.NewReader(strings.Repeat("add some text\n", 100)), Options{}, func(Line) error { return nil },
	)
	t.Errorf("it ended with %v", err)
}
