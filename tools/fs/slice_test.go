package fs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/mcp-funnel/mcp-funnel/conformance/corpus"
	"github.com/mcp-funnel/mcp-funnel/conformance/peers/peer"
	"github.com/mcp-funnel/mcp-funnel/tools"
	"github.com/mcp-funnel/mcp-funnel/tools/source"
	"github.com/mcp-funnel/mcp-funnel/tools/toolstest"
)

// shapes are texts with the line ends that go wrong.
func shapes() map[string]string {
	var long strings.Builder
	for i := range 30_000 {
		fmt.Fprintf(&long, "line %d, 第%d行\n", i+1, i+1)
	}
	return map[string]string{
		"plain.txt":     "one\ntwo\nthree\nfour\n",
		"unended.txt":   "one\ntwo\nthree",
		"crlf.txt":      "one\r\ntwo\r\n\r\nfour\r\n",
		"blank.txt":     "\n\n\nx\n\n",
		"one.txt":       "just one",
		"newline.txt":   "\n",
		"cjk.txt":       "战争与和平\n第一部\n第一章\n",
		"cr.txt":        "a\rb\nc\r\n\rd\n",
		"invalid.txt":   "a\xffb\n\xe4\xb8\nok\n",
		"long.txt":      long.String(),
		"longlines.txt": strings.Repeat("x", 200_000) + "\n" + strings.Repeat("世", 70_000) + "\nend\n",
	}
}

func TestSliceLinesAgreeWithSed(t *testing.T) {
	sed := peer.Find(t, "sed")
	files := shapes()
	src, ids := shelf(t, files)
	for name, text := range files {
		lines := strings.Count(text, "\n")
		if !strings.HasSuffix(text, "\n") {
			lines++
		}
		for _, r := range [][2]int{{1, 1}, {1, 2}, {2, 3}, {3, 3}, {lines, lines}, {lines - 1, lines}, {1, lines}, {lines/2 +
			1, lines/2 + 40}, {lines, lines + 5}} {
			if r[0] < 1 || r[0] > lines || r[1] < r[0] {
				continue
			}
			c := exec.CommandContext(t.Context(), sed, "-n", fmt.Sprintf("%d,%dp", r[0], r[1]))
			c.Env = []string{"LC_ALL=C"}
			c.Stdin = strings.NewReader(text)
			want, err := c.Output()
			if err != nil {
				t.Fatal(err)
			}
			for _, source := range []string{name, ids[name]} {
				args := []string{fmt.Sprintf(`{"source":%q,"lines":"%d-%d"}`, source, r[0], r[1])}
				if r[1] == lines {
					args = append(
						args, fmt.Sprintf(`{"source":%q,"lines":"%d-"}`, source, r[0]),
						fmt.Sprintf(`{"source":%q,"lines":"-%d"}`, source, lines-r[0]+1),
					)
				}
				if r[0] == r[1] {
					args = append(args, fmt.Sprintf(`{"source":%q,"lines":"%d"}`, source, r[0]))
				}
				for _, a := range args {
					s := cut(t, src, a)
					got := s.text() + "\n"
					plain := strings.ReplaceAll(string(want), "\r\n", "\n")
					if !strings.HasSuffix(plain, "\n") {
						plain += "\n"
					}
					if got != plain || s.first != int64(r[0]) || s.total != int64(lines) {
						t.Errorf("%s %s: rows %d of %d\n%.300q, sed:\n%.300q", name, a, s.first, s.total, got, plain)
					}
				}
			}
		}
	}
}

// reading follows the next calls and puts the rows together.
func reading(t testing.TB, src source.Set, args string, room int) (rows []string, calls int) {
	t.Helper()
	for calls = 1; ; calls++ {
		s := &sheet{room: room}
		if err := s.run(src, args); err != nil {
			t.Fatalf("slice %s: %v", args, err)
		}
		rows = append(rows, s.rows...)
		if s.next == nil {
			return rows, calls
		}
		b, err := json.Marshal(s.next.Args)
		if err != nil || s.next.Tool != "slice" || string(b) == args || calls > 100_000 {
			t.Fatalf("after %s comes %s %s %v", args, s.next.Tool, b, err)
		}
		args = string(b)
	}
}

// Whatever the page holds, the calls it names show all of it, each byte once.
func TestSlicePagesShowAllOfIt(t *testing.T) {
	files := shapes()
	src, ids := shelf(t, files)
	for name, text := range files {
		for _, source := range []string{name, ids[name]} {
			for _, unit := range []string{"lines", "chars", "bytes"} {
				for _, room := range []int{17_000, 40_000, wide} {
					from := map[string]string{"lines": "1-", "chars": "0-", "bytes": "0-"}[unit]
					rows, _ := reading(t, src, fmt.Sprintf(`{"source":%q,%q:%q}`, source, unit, from), room)
					got, want := strings.Join(rows, ""), text
					if unit == "lines" {
						got, want = strings.Join(rows, "\n"), strings.TrimSuffix(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
					}
					if got != want {
						t.Errorf("%s by %s on pages of %d: %d bytes, want %d", source, unit, room, len(got), len(want))
					}
				}
			}
		}
	}
}

func TestSliceCharsAndBytes(t *testing.T) {
	text := "aé世😀b\ncd\xffe\n"
	runes := []rune(text)
	big := strings.Repeat("x世", 100_000) + "\nTHE END"
	src, ids := shelf(t, map[string]string{"t": text, "big": big})
	bigRunes := []rune(big)
	for _, source := range []string{"t", ids["t"]} {
		for from := range runes {
			for to := from; to < len(runes); to++ {
				s := cut(t, src, fmt.Sprintf(`{"source":%q,"chars":"%d-%d"}`, source, from, to))
				start, end := len(cutRunes(text, from)), len(cutRunes(text, to+1))
				if got, want := s.text(), text[start:end]; got != want ||
					s.reach != fmt.Sprintf("chars %d-%d of %d", from, to, len(runes)) {
					t.Errorf("chars %d-%d are %q, want %q: %s", from, to, got, want, s.reach)
				}
			}
		}
		for from := range len(text) {
			for to := from; to < len(text); to++ {
				s := cut(t, src, fmt.Sprintf(`{"source":%q,"bytes":"%d-%d"}`, source, from, to))
				if got, want := s.text(), text[from:to+1]; got != want ||
					s.reach != fmt.Sprintf("bytes %d-%d of %d", from, to, len(text)) {
					t.Errorf("bytes %d-%d are %q, want %q: %s", from, to, got, want, s.reach)
				}
			}
		}
	}
	for _, source := range []string{"big", ids["big"]} {
		for _, r := range [][2]int{{0, 9}, {99_998, 100_004}, {150_001, 150_009}, {199_995, 200_007}} {
			s := cut(t, src, fmt.Sprintf(`{"source":%q,"chars":"%d-%d"}`, source, r[0], r[1]))
			if got, want := s.text(), string(bigRunes[r[0]:r[1]+1]); got != want {
				t.Errorf("%s chars %v are %q, want %q", source, r, got, want)
			}
		}
		s := cut(t, src, fmt.Sprintf(`{"source":%q,"chars":"-7"}`, source))
		if s.text() != "THE END" {
			t.Errorf("the last chars are %q", s.text())
		}
		s = cut(t, src, fmt.Sprintf(`{"source":%q,"bytes":"-7"}`, source))
		if s.text() != "THE END" {
			t.Errorf("the last bytes are %q", s.text())
		}
	}
}

// charBytes is how long each char is.
func charBytes(s string) (sizes []int) {
	for len(s) > 0 {
		_, n := utf8.DecodeRuneInString(s)
		sizes = append(sizes, n)
		s = s[n:]
	}
	return sizes
}

func TestSliceOfOneEnormousLine(t *testing.T) {
	line := strings.Repeat(`{"id":1,"text":"some words"},`, 300_000) // 8.7 MB
	src, ids := shelf(t, map[string]string{"l.json": "[" + line + "0]"})
	for _, source := range []string{"l.json", ids["l.json"]} {
		var before, now runtime.MemStats
		runtime.ReadMemStats(&before)
		s := &sheet{room: 16_000}
		if err := s.run(src, fmt.Sprintf(`{"source":%q,"lines":"1"}`, source)); err != nil {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&now)
		if used := now.TotalAlloc - before.TotalAlloc; used > 12<<20 {
			t.Errorf("%d bytes for one line", used)
		}
		if len(s.rows) != 1 || len(s.rows[0]) > 2*tools.MaxRowEdge+40 || len(s.notes) != 0 {
			t.Fatalf("rows %.100q notes %q", s.rows, s.notes)
		}
		head, rest, _ := strings.Cut(s.rows[0], "… ")
		var left int
		if _, err := fmt.Sscanf(rest, "%d chars …", &left); err != nil {
			t.Fatal(err)
		}
		_, tail, _ := strings.Cut(rest, " chars …")
		if left+len(head)+len(tail) != len(line)+3 || !strings.HasSuffix(tail, `},0]`) {
			t.Errorf("%d chars left out between %d and %d of %d", left, len(head), len(tail), len(line)+3)
		}
		if want, all := fmt.Sprintf("0-%d", len(line)+2), s.more[0].Args.(sliceArgs); all.Source != source ||
			all.Bytes != want {
			t.Errorf("the whole row is %+v, want bytes %s", all, want)
		}
		// A part in its middle, at once.
		s = cut(t, src, fmt.Sprintf(`{"source":%q,"bytes":"4000001-4000028"}`, source))
		if want := line[4000000:4000028]; s.text() != want {
			t.Errorf("%q, want %q", s.text(), want)
		}
		s = cut(t, src, fmt.Sprintf(`{"source":%q,"records":"200000"}`, source))
		if s.text() != `{"id":1,"text":"some words"}` {
			t.Errorf("%q", s.text())
		}
		s = cut(t, src, fmt.Sprintf(`{"source":%q,"at":"/299999/text"}`, source))
		if s.text() != `"some words"` {
			t.Errorf("%q", s.text())
		}
	}
}

func TestSliceRowsOverAPageNameTheWholeRow(t *testing.T) {
	text := "short\n" + strings.Repeat("x", 50_000) + "\nlast\n"
	src, _ := shelf(t, map[string]string{"t": text})
	s := &sheet{room: 10_000}
	if err := s.run(src, `{"source":"t","lines":"2-3"}`); err != nil {
		t.Fatal(err)
	}
	if !s.clipped || len(s.rows) != 1 || s.next == nil || s.next.Args.(sliceArgs).Lines != "3" {
		t.Fatalf("%d rows, next %+v", len(s.rows), s.next)
	}
	if a := s.more[0].Args.(sliceArgs); a.Bytes != "6-50005" {
		t.Errorf("the whole row is %+v", a)
	}
}

func TestSliceBinary(t *testing.T) {
	data := corpus.Random(1000)
	src, ids := shelf(t, map[string]string{"b.bin": string(data)})
	for _, source := range []string{"b.bin", ids["b.bin"]} {
		s := cut(t, src, fmt.Sprintf(`{"source":%q,"bytes":"0-"}`, source))
		t.Run("as xxd shows "+source, func(t *testing.T) {
			c := exec.CommandContext(t.Context(), peer.Find(t, "xxd"))
			c.Stdin = bytes.NewReader(data)
			want, err := c.Output()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(strings.TrimSuffix(string(want), "\n"), s.text()); diff != "" {
				t.Error(diff)
			}
		})
		s = cut(t, src, fmt.Sprintf(`{"source":%q,"bytes":"998-1005"}`, source))
		if want := string(hexRow(998, data[998:])); s.text() != want || len(s.notes) != 1 {
			t.Errorf("%q %q, want %q", s.text(), s.notes, want)
		}
		rows, calls := reading(t, src, fmt.Sprintf(`{"source":%q,"bytes":"0-"}`, source), 1000)
		if len(rows) != 63 || calls < 4 {
			t.Errorf("%d rows in %d calls", len(rows), calls)
		}
		for _, unit := range []string{"lines", "chars", "records", "at"} {
			err := (&sheet{room: wide}).run(src, fmt.Sprintf(`{"source":%q,%q:"1"}`, source, unit))
			if err == nil || !strings.Contains(err.Error(), "is binary, 1000 bytes") {
				t.Errorf("%s of a binary: %v", unit, err)
			}
		}
	}
}

func TestSliceDecodes(t *testing.T) {
	var lines, table, list strings.Builder
	table.WriteString("id,name\n")
	list.WriteString("[\n")
	for i := range 20_000 {
		fmt.Fprintf(&lines, "Zeile %d: Größe\r\n", i+1)
		fmt.Fprintf(&table, "%d,Größe\n", i)
		fmt.Fprintf(&list, "{\"i\":%d,\"s\":\"Größe\"},\n", i)
	}
	list.WriteString("0]")
	files := map[string]string{
		"w.txt": utf16le(lines.String()), "l.txt": latin1(lines.String()), "b.txt": "\xef\xbb\xbf" + lines.String(),
		"w.csv": utf16le(table.String()), "w.json": utf16le(list.String()),
	}
	encoded := map[string][]string{"w.txt": {"w.txt: decoded from utf-16le"}, "l.txt": {"l.txt: decoded from latin-1"}}
	src, _ := shelf(t, files)
	for _, f := range []string{"w.txt", "l.txt", "b.txt"} {
		for args, want := range map[string]string{
			`"lines":"1"`: "Zeile 1: Größe", `"lines":"19999-"`: "Zeile 19999: Größe\nZeile 20000: Größe", `"lines":"-1"`: "Zeile 20000: Größe",
			`"chars":"9-13"`: "Größe", `"bytes":"0-11"`: "Zeile 1: Gr\xc3", `"chars":"-7"`: "Größe\r\n",
		} {
			s := cut(t, src, `{"source":"`+f+`",`+args+`}`)
			if got := strings.TrimPrefix(s.text(), "\n"); got != want {
				t.Errorf("%s %s: %q, want %q", f, args, got, want)
			}
			notes := encoded[f]
			if strings.HasPrefix(args, `"bytes"`) {
				notes = append(
					[]string{
						fmt.Sprintf(
							"bytes count the text as UTF-8, without a byte order mark; the stored file has %d bytes", len(files[f]),
						),
					},
					notes...,
				)
			}
			if !slices.Equal(s.notes, notes) {
				t.Errorf("%s %s: notes %q", f, args, s.notes)
			}
		}
	}
	s := &sheet{room: 500}
	if err := s.run(src, `{"source":"w.csv","records":"15000-"}`); err != nil || s.rows[0] != "id,name\n15000,Größe" ||
		s.rows[1] != "15001,Größe" || s.next == nil || s.total != 20_000 {
		t.Errorf("%v %q of %d", err, s.rows, s.total)
	}
	if s = cut(t, src, `{"source":"w.json","at":"/12345/s"}`); s.text() != `"Größe"` {
		t.Errorf("%q", s.text())
	}
}

func latin1(s string) string {
	var b []byte
	for _, r := range s {
		b = append(b, byte(r))
	}
	return string(b)
}

// Any range of any text is what a slow reading of it gives, on a file and on an observation.
func TestSliceProperties(t *testing.T) {
	texts := map[string]string{}
	letters := []rune("ab\n\n\r世😀 ")
	gen := rapid.StringOfN(rapid.RuneFrom(letters), 1, 300, -1)
	for i := range 20 {
		texts[fmt.Sprintf("%d.txt", i)] = gen.Example(i)
	}
	src, ids := shelf(t, texts)
	rapid.Check(t, func(t *rapid.T) {
		name := fmt.Sprintf("%d.txt", rapid.IntRange(0, 19).Draw(t, "text"))
		text := texts[name]
		source := name
		if rapid.Bool().Draw(t, "kept") {
			source = ids[name]
		}
		lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
		a := rapid.IntRange(1, len(lines)).Draw(t, "from")
		b := rapid.IntRange(a, len(lines)+2).Draw(t, "to")
		s := &sheet{room: wide}
		if err := s.run(src, fmt.Sprintf(`{"source":%q,"lines":"%d-%d"}`, source, a, b)); err != nil {
			t.Fatal(err)
		}
		for i, row := range s.rows {
			want := lines[a-1+i]
			if a+i < len(lines) || strings.HasSuffix(text, "\n") {
				want = strings.TrimSuffix(want, "\r")
			}
			if row != want {
				t.Fatalf("line %d is %q, want %q", a+i, row, want)
			}
		}
		if len(s.rows) != min(b, len(lines))-a+1 {
			t.Fatalf("%d rows for %d-%d of %d", len(s.rows), a, b, len(lines))
		}
		runes := []rune(text)
		a = rapid.IntRange(0, len(runes)-1).Draw(t, "from char")
		b = rapid.IntRange(a, len(runes)-1).Draw(t, "to char")
		s = &sheet{room: wide}
		if err := s.run(src, fmt.Sprintf(`{"source":%q,"chars":"%d-%d"}`, source, a, b)); err != nil {
			t.Fatal(err)
		}
		if want := string(runes[a : b+1]); s.text() != want {
			t.Fatalf("chars %d-%d of %q are %q, want %q", a, b, text, s.text(), want)
		}
	})
}

// The start of any part of an observation, named by line, char, byte or record, is one call away.
func TestSliceReachesAnyPartOfTheNovel(t *testing.T) {
	novel := strings.TrimPrefix(string(corpus.WarAndPeace()), "\ufeff") // with a byte order mark there is no index
	src, ids := shelf(t, map[string]string{"wp.txt": novel})
	lines := strings.Split(novel, "\n")
	if strings.HasSuffix(novel, "\n") {
		lines = lines[:len(lines)-1]
	}
	for _, n := range []int{1, 1000, 33_333, len(lines) - 1} {
		s := &sheet{room: 16_000}
		if err := s.run(src, fmt.Sprintf(`{"source":%q,"lines":"%d-"}`, ids["wp.txt"], n)); err != nil {
			t.Fatal(err)
		}
		if s.rows[0] != strings.TrimSuffix(lines[n-1], "\r") || s.first != int64(n) || s.total != int64(len(lines)) {
			t.Errorf("line %d is %q, %d of %d", n, s.rows[0], s.first, s.total)
		}
	}
}

func TestSliceIsCheapToList(t *testing.T) {
	tool := Slice()
	b, err := json.Marshal(map[string]any{"name": tool.Name, "title": tool.Title, "description": tool.Description, "inputSchema": tool.Schema,
		"annotations": map[string]any{"readOnlyHint": true, "openWorldHint": false}})
	if err != nil {
		t.Fatal(err)
	}
	if len(b) > 900 { // about 190 tokens
		t.Errorf("%d bytes as listed: %s", len(b), b)
	}
}

func FuzzSliceRange(f *testing.F) {
	for _, s := range []string{"5", "5-9", "5-", "-9", "0", "9-5", "99999999999999999999-", " 1 - 2 ", "--"} {
		f.Add(s)
	}
	dir := f.TempDir()
	text := "one\ntwo\r\n世界\n\xff" + strings.Repeat("long ", 100)
	if err := os.WriteFile(filepath.Join(dir, "t"), []byte(text), 0o600); err != nil {
		f.Fatal(err)
	}
	src := toolstest.Roots(f, dir)
	f.Fuzz(func(t *testing.T, given string) {
		r, err := parseRange("bytes", given)
		if err != nil {
			if len(err.Error()) > 500 {
				t.Errorf("an error of %d bytes", len(err.Error()))
			}
			return
		}
		if again, err := parseRange("bytes", r.String()); err != nil || again != r {
			t.Errorf("%q is %+v, written %s, and that is %+v %v", given, r, r, again, err)
		}
		for _, unit := range []string{"lines", "chars", "bytes"} {
			s := &sheet{room: 300}
			err := s.run(src, arguments(t, "source", "t", unit, r.String()))
			if err == nil && len(s.rows) == 0 {
				t.Errorf("%s %s: no rows and no error", unit, r)
			}
		}
	})
}
