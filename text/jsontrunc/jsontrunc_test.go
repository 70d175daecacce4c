package jsontrunc

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/mcp-funnel/mcp-funnel/conformance/corpus"
	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/text/content/contenttest"
)

func TestChecker(t *testing.T) {
	type row struct {
		Name, Text string
		Want       Report
	}
	for _, tt := range append(expect.Table[row](t, "testdata/checker.tsv"),
		row{"half a mark", "\xef\xbb", Report{
			State: Broken, Piece: "\xef\xbb", Inside: "between values",
			Reason: `invalid character '\xef' where a value must stand`,
		}},
	) {
		t.Run(tt.Name, func(t *testing.T) {
			for _, wrap := range []func(io.Reader) io.Reader{func(r io.Reader) io.Reader { return r }, iotest.OneByteReader} {
				got, err := position(wrap(strings.NewReader(tt.Text)))
				expect.Must(t, err)
				expect.Same(t, got, tt.Want)
			}
		})
	}
}

// oracle finds out the same slowly: it reads the text by recursion, and asks encoding/json where scalars end.
type oracle struct {
	text   string
	at     int
	open   []container // from the outermost
	inside string
	deep   string // pointer of the innermost open value
}

type container struct {
	array    bool
	elements []element
}

type element struct {
	pointer    string
	start, end int
}

// stop is thrown where the text ends.
type stop struct{}

func (o *oracle) end(inside, pointer string) {
	if o.at >= len(o.text) {
		o.inside, o.deep = inside, pointer
		panic(stop{})
	}
}

func (o *oracle) blank() {
	for o.at < len(o.text) && strings.IndexByte(" \n\r\t", o.text[o.at]) >= 0 {
		o.at++
	}
}

func (o *oracle) value(pointer string) {
	switch c := o.text[o.at]; c {
	case '{', '[':
		o.at++
		o.open = append(o.open, container{array: c == '['})
		here := len(o.open) - 1
		inside := map[bool]string{true: "array", false: "object"}[c == '[']
		for i := 0; ; i++ {
			o.blank()
			o.end(inside, pointer)
			if o.text[o.at] == ']' || o.text[o.at] == '}' {
				break
			}
			if o.text[o.at] == ',' {
				o.at++
				o.blank()
				o.end(inside, pointer)
			}
			token := strconv.Itoa(i)
			if c == '{' {
				raw := o.scalar("key", pointer)
				_ = json.Unmarshal([]byte(raw), &token)
				token = strings.ReplaceAll(strings.ReplaceAll(token, "~", "~0"), "/", "~1")
				o.blank()
				o.end(inside, pointer)
				o.at++ // the colon
				o.blank()
				o.end(inside, pointer)
			}
			from := o.at
			o.value(pointer + "/" + token)
			o.open[here].elements = append(o.open[here].elements, element{pointer + "/" + token, from, o.at})
		}
		o.at++
		o.open = o.open[:here]
	case '"':
		o.scalar("string", pointer)
	case 't', 'f', 'n':
		o.scalar("literal", pointer)
	default:
		o.scalar("number", pointer)
	}
}

// scalar takes the longest thing that is valid, and whose next byte is there: a string ends where it first is valid.
func (o *oracle) scalar(inside, pointer string) string {
	start := o.at
	for o.at++; ; o.at++ {
		valid := json.Valid([]byte(o.text[start:o.at]))
		if o.text[start] == '"' {
			if valid {
				break
			}
			o.end(inside, pointer)
			continue
		}
		o.end(inside, pointer)
		if valid && strings.IndexByte(" \n\r\t,]}", o.text[o.at]) >= 0 {
			break
		}
	}
	return o.text[start:o.at]
}

// report is of a text that was valid before it was cut.
func (o *oracle) report() (r Report) {
	var values []element
	func() {
		defer func() {
			if p := recover(); p != nil {
				if _, ok := p.(stop); !ok {
					panic(p)
				}
			}
		}()
		for {
			o.blank()
			if o.at >= len(o.text) {
				return
			}
			start := o.at
			pointer := ""
			if len(values) > 0 {
				pointer = fmt.Sprintf("/%d", len(values))
			}
			o.value(pointer)
			values = append(values, element{fmt.Sprintf("/%d", len(values)), start, o.at})
		}
	}()
	r = Report{State: Cut, Values: int64(len(values)), Offset: int64(len(o.text)), Pointer: o.deep, Inside: o.inside}
	var chosen []element
	switch {
	case o.inside == "" && len(values) == 0:
		return Report{State: Empty, Offset: r.Offset}
	case o.inside == "":
		r.State = Whole
		chosen = values
		if len(values) == 1 {
			chosen = nil
			one := &oracle{text: o.text[values[0].start : values[0].end-1]}
			if one.text != "" && (one.text[0] == '{' || one.text[0] == '[') {
				chosen = one.elements(values[0].start, o.text)
			}
		}
	case len(values) > 0:
		chosen = values
	default:
		for _, c := range o.open {
			if c.array && len(c.elements) > 0 {
				chosen = c.elements
				break
			}
		}
		for _, c := range o.open {
			if chosen == nil && len(c.elements) > 0 {
				chosen = c.elements
			}
		}
	}
	if n := len(chosen); n > 0 {
		last := chosen[n-1]
		r.Elements, r.LastPointer = int64(n), last.pointer
		r.LastStart, r.LastEnd, r.Last = int64(last.start), int64(last.end), o.text[last.start:last.end]
		r.PieceStart = r.LastEnd
	}
	if r.State != Whole {
		r.Piece = o.text[r.PieceStart:]
	}
	return r
}

// elements of a container, found by reading it without its last byte, then up to the last byte.
func (o *oracle) elements(base int, text string) []element {
	o.text += " " // so that a number before the bracket is complete
	func() {
		defer func() { _ = recover() }()
		o.value("")
	}()
	all := o.open[0].elements
	for i := range all {
		all[i].start += base
		all[i].end += base
	}
	return all
}

var samples = []string{
	`{"a":[1,-2.5e+3,{"b":null,"c":"x\"]}\u00e9\\"}],"d/e":{},"":[[],[{}]],"f":true}`,
	`[[[1,2],[3]],"世界",{"k":{"k":{"k":[0]}}}]`,
	"{\"a\":1}\n{\"a\":[true,false]}\n\n[1]\n\"x\"\n12\n",
	"\n  [\n    1 ,\n    {\n \"a\" : \"b\"\n }\n ]\n ",
	`"just a string"`,
	"true ",
}

// A valid text, cut at every byte, gives what the oracle says.
func TestEveryCutOfSamples(t *testing.T) {
	for _, text := range samples {
		cutEverywhere(t, text)
	}
}

func TestEveryCut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var text strings.Builder
		for range rapid.IntRange(1, 3).Draw(t, "values") {
			b, err := json.MarshalIndent(
				contenttest.DrawJSON(t, short, 4), "", rapid.SampledFrom([]string{"", "\t"}).Draw(t, "indent"),
			)
			expect.Must(t, err)
			text.Write(b)
			text.WriteString(rapid.SampledFrom([]string{"\n", " ", "\r\n\n"}).Draw(t, "after"))
		}
		cutEverywhere(t, text.String())
	})
}

func cutEverywhere(t expect.TB, text string) {
	t.Helper()
	for n := range len(text) + 1 {
		want := (&oracle{text: text[:n]}).report()
		c := NewChecker()
		for at, size := 0, 1; at < n; at, size = at+size, size*2%7+1 {
			_, _ = c.Write([]byte(text[at:min(at+size, n)]))
		}
		expect.MustSame(t, c.Close(), want, "%q: (-oracle +checker)", text[:n])
		got, err := position(strings.NewReader(text[:n]))
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Fatalf("%q at once: %v (-oracle +checker)\n%s", text[:n], err, diff)
		}
	}
}

// short are texts with all in them that ends a JSON text's parts.
var short = rapid.StringOfN(rapid.SampledFrom([]rune("ab~/\"\\{[]}, 世😀")), 0, 5, -1)

// What encoding/json refuses is broken where it says; what it finds too short is cut.
func checkBroken(t expect.TB, text []byte) {
	r, err := position(bytes.NewReader(text))
	expect.OK(t, err)
	var v any
	err = json.Unmarshal(text, &v)
	var syntax *json.SyntaxError
	trimmed := bytes.TrimRight(text, " \n\r\t")
	closed := len(trimmed) < len(text) || len(trimmed) > 0 && bytes.IndexByte([]byte(`]}"`), trimmed[len(trimmed)-1]) >= 0
	switch {
	case err == nil || !errors.As(err, &syntax): // a number that is no float64 is no syntax error
		if want := map[bool]State{true: Whole, false: Cut}[closed]; r.State != want || r.State == Whole && r.Values != 1 {
			t.Errorf("%q is %+v, want %s", text, r, want)
		}
	case strings.Contains(err.Error(), "unexpected end"), !closed && int(syntax.Offset) == len(text) && strings.Contains(err.Error(), "' '"): // where the text ends it reads a blank
		if r.State != Cut && (len(trimmed) > 0 || r.State != Empty) {
			t.Errorf("%q is %+v, want cut", text, r)
		}
	case strings.Contains(err.Error(), "after top-level value"):
		// The scanner goes on: several values are right here.
	default:
		if r.State != Broken || r.Offset != syntax.Offset-1 || r.Reason == "" {
			t.Errorf("%q is %+v, want broken at %d: %v", text, r, syntax.Offset-1, err)
		}
	}
	for _, s := range []string{r.Last, r.Piece, r.Pointer, r.LastPointer} {
		if len(s) > 4<<10+3 {
			t.Errorf("a text of %d bytes", len(s))
		}
	}
	if r.LastEnd-r.LastStart <= 4000 && r.LastEnd > 0 && r.Last != string(text[r.LastStart:r.LastEnd]) {
		t.Errorf("%q: last is %q, at %d-%d", text, r.Last, r.LastStart, r.LastEnd)
	}
	if !strings.Contains(r.Piece, " bytes …") && !bytes.HasPrefix(text[r.PieceStart:], []byte(r.Piece)) {
		t.Errorf("%q: piece is %q, at %d", text, r.Piece, r.PieceStart)
	}
}

func TestBroken(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text, err := json.Marshal(contenttest.DrawJSON(t, short, 4))
		expect.Must(t, err)
		i := rapid.IntRange(0, len(text)-1).Draw(t, "at")
		bad := rapid.SampledFrom([]byte("{}[],:\"\\ 0-e.tx\n")).Draw(t, "byte")
		if rapid.Bool().Draw(t, "insert") {
			text = append(text[:i:i], append([]byte{bad}, text[i:]...)...)
		} else {
			text[i] = bad
		}
		checkBroken(t, text)
	})
}

func FuzzChecker(f *testing.F) {
	for _, s := range samples {
		f.Add([]byte(s))
		f.Add([]byte(s[:len(s)*2/3]))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if bytes.HasPrefix(text, []byte(bom)) || len(text) > 4096 {
			return
		}
		checkBroken(t, text)
		whole, _ := position(bytes.NewReader(text))
		pieces, _ := position(iotest.OneByteReader(bytes.NewReader(text)))
		expect.Same(t, pieces, whole, "%q in pieces of a byte", text)
	})
}

func TestLongTextsAreClipped(t *testing.T) {
	long := strings.Repeat("世", 10_000)
	text := `["` + long + `", "` + long + `"`
	for _, size := range []int{1, 100, 3999, 4001, 1 << 20} {
		c := NewChecker()
		for at := 0; at < len(text); at += size {
			_, _ = c.Write([]byte(text[at:min(len(text), at+size)]))
		}
		_, _ = c.Write([]byte(`,{"a`))
		r := c.Close()
		if r.State != Cut || r.Elements != 2 || r.Pointer != "/2" || r.Piece != `,{"a` {
			t.Errorf("%+v", r)
		}
		head, rest, _ := strings.Cut(r.Last, "… ")
		n, tail, _ := strings.Cut(rest, " bytes …")
		left, err := strconv.Atoi(n)
		if err != nil || len(r.Last) > 4<<10 || len(head)+left+len(tail) != len(long)+2 ||
			!strings.HasPrefix(`"`+long, head) || !strings.HasSuffix(long+`"`, tail) || len(head) < 1900 || len(tail) < 1900 {
			t.Errorf("pieces of %d: the last element is %q", size, r.Last)
		}
	}
}

func TestDeepTextsTakeLittle(t *testing.T) {
	deep := strings.Repeat(`{"`+strings.Repeat("k", 5000)+`":[`, 4000)
	var before, now runtime.MemStats
	runtime.ReadMemStats(&before)
	r, err := position(strings.NewReader(deep))
	runtime.ReadMemStats(&now)
	if err != nil || r.State != Cut || len(r.Pointer) > 4<<10+len("…") || !strings.HasSuffix(r.Pointer, "…") {
		t.Errorf("%v %s: a pointer of %d bytes", err, r.State, len(r.Pointer))
	}
	if used := now.TotalAlloc - before.TotalAlloc; used > 24<<20 {
		t.Errorf("%d bytes for %d bytes", used, len(deep))
	}
	r, _ = position(strings.NewReader(strings.Repeat("[", 20_000)))
	if r.State != Broken || r.Offset != 10_000 || r.Reason != "nested over 10000 deep" {
		t.Errorf("%+v", r)
	}
}

func TestCorpusIsWhole(t *testing.T) {
	for name, text := range map[string][]byte{"1MB": corpus.JSON1MB(), "minified": corpus.JSON1MBMinified(), "5MB": corpus.JSON5MB(), "rare": corpus.RareKey9k()} {
		r, err := position(bytes.NewReader(text))
		if err != nil || r.State != Whole || r.Elements < 1000 || r.Last == "" {
			t.Errorf("%s: %v %+v", name, err, r)
		}
		half, _ := position(bytes.NewReader(text[:len(text)/2]))
		if half.State != Cut || half.Elements >= r.Elements || !json.Valid([]byte(half.Last)) ||
			string(text[half.LastStart:half.LastEnd]) != half.Last {
			t.Errorf("half of %s: %+v", name, half)
		}
	}
}

// position reads a text as receipts do.
func position(r io.Reader) (Report, error) {
	c := NewChecker()
	_, err := io.Copy(c, struct{ io.Reader }{r})
	return c.Close(), err
}
