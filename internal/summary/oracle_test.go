package summary

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/mcp-funnel/mcp-funnel/conformance/corpus"
	"github.com/mcp-funnel/mcp-funnel/conformance/peer"
	"github.com/mcp-funnel/mcp-funnel/internal/content"
)

// output runs a program to compare with.
func output(t *testing.T, stdin []byte, name string, args ...string) string {
	t.Helper()
	c := exec.CommandContext(t.Context(), peer.Find(t, name), args...)
	c.Stdin = bytes.NewReader(stdin)
	c.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "LC_ALL=C")
	var errs bytes.Buffer
	c.Stderr = &errs
	out, err := c.Output()
	if err != nil && (c.ProcessState == nil || c.ProcessState.ExitCode() > 1) {
		t.Fatalf("%s %q: %v\n%s", name, args, err, errs.String())
	}
	return string(out)
}

func recordsOf(t testing.TB, k content.Kind, text []byte) (n int64, err error) {
	t.Helper()
	r, _, err := content.Decode(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	err = content.Records(context.Background(), r, k, func(int64, content.Span) bool { n++; return true })
	return n, err
}

func finish(k content.Kind, text []byte) Summary {
	d := digestAs(k, text)
	_, _ = d.Write(text)
	return d.Close()
}

// TestRecordsAgree: slice takes records by the numbers that are told.
func TestRecordsAgree(t *testing.T) {
	for name, text := range cases(t) {
		s := digest(name, text)
		if s.Records < 0 {
			continue
		}
		if n, err := recordsOf(t, s.Kind, text); n != s.Records {
			t.Errorf("%s: %d records, content has %d (%v)", name, s.Records, n, err)
		}
	}
}

func TestRecordsAgreeAny(t *testing.T) {
	scraps := rapid.SampledFrom([]string{"a", ",", ";", "\t", `"`, `""`, "\n", "\r\n", "\r", " ", "é", "1,2\n", "\"x\ny\",", "@@ -1,2 +1,2 @@\n", "@@ -1 +1 @@ f\n", "@@@ -1 -1 +1,2 @@@\n",
		"--- a/x\n", "+++ b/x\n", "diff --git a/x b/x\n", "+x\n", "-x\n", " x\n", "++x\n", "- x\n", "\\ No newline\n", "[", "]", "{}", `{"a":1}`, "12"})
	rapid.Check(t, func(t *rapid.T) {
		text := []byte(strings.Join(rapid.SliceOfN(scraps, 0, 60).Draw(t, "text"), ""))
		for _, k := range []content.Kind{content.Table, content.Diff} {
			s := finish(k, text)
			var n int64
			_ = content.Records(context.Background(), bytes.NewReader(text), k, func(int64, content.Span) bool { n++; return true })
			if s.Records != n {
				t.Fatalf("%s: %d records, content has %d in %q", k, s.Records, n, text)
			}
		}
	})
}

var stat = regexp.MustCompile(`^(\d+) files?, (\d+) hunks?, \+(\d+) −(\d+)$`)

func statOf(t *testing.T, s Summary) (files, added, removed int) {
	t.Helper()
	m := stat.FindStringSubmatch(s.Total[len(s.Total)-1])
	if m == nil {
		t.Fatalf("total: %q", s.Total)
	}
	files, _ = strconv.Atoi(m[1])
	added, _ = strconv.Atoi(m[3])
	removed, _ = strconv.Atoi(m[4])
	return files, added, removed
}

// TestDiffAgainstGit: files and lines as git apply counts them; also where lines look like headers.
func TestDiffAgainstGit(t *testing.T) {
	dir := t.TempDir()
	compare := func(name string, text []byte) {
		files, added, removed := 0, 0, 0
		for line := range strings.Lines(output(t, text, "git", "-C", dir, "apply", "--numstat", "-")) {
			var a, r int
			if n, _ := fmt.Sscanf(line, "%d %d", &a, &r); n == 2 {
				added += a
				removed += r
			}
			files++
		}
		f, a, r := statOf(t, finish(content.Diff, text))
		if f != files || a != added || r != removed {
			t.Errorf("%s: %d files, +%d −%d; git: %d files, +%d −%d", name, f, a, r, files, added, removed)
		}
	}
	all := cases(t)
	for _, name := range []string{"git.diff", "mail.diff", "corpus-novel.diff"} {
		compare(name, all[name])
	}
	r := rand.New(rand.NewPCG(3, 5))
	words := []string{"-- select", "++ x", "--- a/y", "+++ b/y", "@@ -1 +1 @@", "diff --git a/q b/q", "", " ", "\\ No newline", "line", "x", "other", "Binary files a and b differ", "rename to z"}
	for i := range 12 {
		var old, changed strings.Builder
		for range 120 {
			w := words[r.IntN(len(words))] + "\n"
			if r.IntN(8) > 0 {
				old.WriteString(w)
			}
			if r.IntN(8) > 0 {
				changed.WriteString(w)
			}
		}
		a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
		for p, text := range map[string]string{a: old.String(), b: strings.TrimSuffix(changed.String(), "\n")} {
			if err := os.WriteFile(p, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		compare(fmt.Sprintf("random %d", i), []byte(output(t, nil, "git", "diff", "--no-index", "--src-prefix=a/", "--dst-prefix=b/", a, b)))
	}
}

// TestDiffCutAnywhere: a diff that ends anywhere is counted as far as it goes, and says so inside a hunk.
func TestDiffCutAnywhere(t *testing.T) {
	text := cases(t)["git.diff"]
	told := 0
	for n := range text {
		s := finish(content.Diff, text[:n])
		if got, _ := recordsOf(t, content.Diff, text[:n]); got != s.Records {
			t.Fatalf("cut at %d: %d hunks, content has %d", n, s.Records, got)
		}
		if len(s.Says) > 0 && strings.HasPrefix(s.Says[0], "breaks off inside hunk ") {
			told++
		}
	}
	if told < 50 || told > len(text)/2 {
		t.Errorf("%d of %d cuts stand inside a hunk", told, len(text))
	}
}

// TestTableAgainstCSV: rows and columns as encoding/csv reads them.
func TestTableAgainstCSV(t *testing.T) {
	all := cases(t)
	for _, name := range []string{"corpus-20k.csv", "quoted.csv"} {
		rows, err := csv.NewReader(bytes.NewReader(all[name])).ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		d := digestAs(content.Table, all[name])
		_, _ = d.Write(all[name])
		table := d.reader.(*unmarked).reader.(*table)
		s := d.Close()
		if s.Records != int64(len(rows)-1) || table.wide != len(rows[0]) {
			t.Errorf("%s: %d rows of %d, encoding/csv has %d of %d", name, s.Records, table.wide, len(rows)-1, len(rows[0]))
		}
		for i, c := range table.columns {
			distinct := map[string]bool{}
			empty, numbers := int64(0), int64(0)
			lo, hi, sum := 0.0, 0.0, 0.0
			for _, row := range rows[1:] {
				v, err := strconv.ParseFloat(row[i], 64)
				switch {
				case row[i] == "":
					empty++
				case err == nil:
					if numbers == 0 || v < lo {
						lo = v
					}
					if numbers == 0 || v > hi {
						hi = v
					}
					numbers++
					sum += v
				case row[i] != "true" && row[i] != "false":
					distinct[row[i]] = true
				}
			}
			if c.name != rows[0][i] || c.nulls != empty {
				t.Errorf("%s, column %d: %q with %d empty, want %q with %d", name, i, c.name, c.nulls, rows[0][i], empty)
			}
			if numbers > 0 && (c.number.n != numbers || c.number.lo != lo || c.number.hi != hi || c.number.sum != sum) {
				t.Errorf("%s, column %q: %d numbers %v to %v, sum %v; want %d, %v to %v, sum %v", name, c.name, c.number.n, c.number.lo, c.number.hi, c.number.sum, numbers, lo, hi, sum)
			}
			if len(distinct) > 0 && !c.many && len(c.distinct) != len(distinct) {
				t.Errorf("%s, column %q: %d distinct, want %d", name, c.name, len(c.distinct), len(distinct))
			}
		}
	}
}

// TestShapeAgainstJQ counts keys with jq.
func TestShapeAgainstJQ(t *testing.T) {
	text := corpus.RareKey9k()
	d := digestAs(content.NDJSON, text)
	_, _ = d.Write(text)
	root := d.reader.(*document).scan.shape.root.object
	var want map[string]int64
	if err := json.Unmarshal([]byte(output(t, text, "jq", "-cs", "[.[]|keys[]]|group_by(.)|map({(.[0]):length})|add")), &want); err != nil {
		t.Fatal(err)
	}
	if len(want) != len(root.fields) {
		t.Errorf("%d keys, jq has %d", len(root.fields), len(want))
	}
	for _, f := range root.fields {
		if f.n != want[f.name] {
			t.Errorf("%s: %d, jq has %d", f.name, f.n, want[f.name])
		}
	}
	if got := output(t, corpus.JSON5MB(), "jq", "length"); strings.TrimSpace(got) != number(finish(content.JSON, corpus.JSON5MB()).Records) {
		t.Errorf("jq: %s elements", got)
	}
}

// naive is the shape by way of encoding/json: path → what stands there.
func naive(at string, v any, seen map[string]int) {
	switch v := v.(type) {
	case nil:
		seen[at+" null"]++
	case bool:
		seen[at+" "+strconv.FormatBool(v)]++
	case float64:
		seen[at+" number"]++
	case string:
		seen[at+" string"]++
	case []any:
		seen[at+" array"]++
		seen[at+" elements"] += len(v)
		for _, e := range v {
			naive(at+"[]", e, seen)
		}
	case map[string]any:
		seen[at+" object"]++
		for k, e := range v {
			seen[at+"."+k+" present"]++
			naive(at+"."+k, e, seen)
		}
	}
}

func flatten(at string, n *node, seen map[string]int) {
	put := func(what string, n int64) {
		if n > 0 {
			seen[at+" "+what] = int(n)
		}
	}
	put("null", n.nulls)
	put("true", n.yes)
	put("false", n.no)
	if n.text != nil {
		put("string", n.text.n)
	}
	if n.number != nil {
		put("number", n.number.n)
	}
	if a := n.array; a != nil {
		put("array", a.n)
		put("elements", a.total)
		if a.total == 0 {
			seen[at+" elements"] = 0
		}
		flatten(at+"[]", &a.elem, seen)
	}
	if o := n.object; o != nil {
		put("object", o.n)
		for _, f := range o.fields {
			seen[at+"."+f.name+" present"] = int(f.n)
			flatten(at+"."+f.name, &f.node, seen)
		}
	}
}

func anyValue() *rapid.Generator[any] {
	leaf := rapid.OneOf(rapid.Just[any](nil), rapid.Bool().AsAny(), rapid.IntRange(-5, 5).AsAny(), rapid.Float64().AsAny(),
		rapid.SampledFrom([]string{"", "a", "b", "é\n\"", "2026-11-20", "long long long long long long long long long long long"}).AsAny())
	key := rapid.SampledFrom([]string{"a", "b", "file", "é", `q"`, "x y", "n/~"})
	v := leaf
	for range 3 {
		inner := v
		v = rapid.OneOf(leaf, rapid.SliceOfN(inner, 0, 4).AsAny(), rapid.MapOfN(key, inner, 0, 4).AsAny())
	}
	return v
}

// TestShapeAgainstNaive: every count of a shape, on any JSON.
func TestShapeAgainstNaive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.SliceOfN(anyValue(), 0, 12).Draw(t, "value")
		text, err := json.Marshal(v)
		if err != nil {
			t.Skip(err)
		}
		if rapid.Bool().Draw(t, "indented") {
			var b bytes.Buffer
			_ = json.Indent(&b, text, "", "  ")
			text = b.Bytes()
		}
		var plain any
		_ = json.Unmarshal(text, &plain)
		want := map[string]int{}
		naive("", plain, want)
		d := digestAs(content.JSON, text)
		_, _ = d.Write(text)
		got := map[string]int{}
		flatten("", &d.reader.(*document).scan.shape.root, got)
		if fmt.Sprint(want) != fmt.Sprint(got) { // fmt sorts maps
			t.Fatalf("%s\nwant %v\ngot  %v", text, want, got)
		}
	})
}

// cutAsRead says in what a summary tells of a break otherwise than content, by which slice goes.
func cutAsRead(t *testing.T, k content.Kind, text []byte, s Summary) string {
	n, err := recordsOf(t, k, text)
	var syntax *content.SyntaxError
	switch {
	case s.Records >= 0 && s.Records != n:
		return fmt.Sprintf("%d records, content has %d", s.Records, n)
	case !errors.As(err, &syntax):
		if s.Cut == nil {
			return ""
		}
	case s.Cut != nil && syntax.Cut && s.Cut.Offset == syntax.Offset && strings.HasSuffix(syntax.Reason, " "+s.Cut.Inside):
		return ""
	}
	return fmt.Sprintf("%+v, content says %v", s.Cut, err)
}

// TestCutNumbers: what a number or literal says that the text ends with is in no count and no range.
func TestCutNumbers(t *testing.T) {
	var numbers, objects, lines strings.Builder
	numbers.WriteString("[5000")
	objects.WriteString(`[{"price":5000}`)
	for i := range 899 {
		fmt.Fprintf(&numbers, ",%d", 5001+i)
		fmt.Fprintf(&objects, `,{"price":%d}`, 5001+i)
		fmt.Fprintf(&lines, "{\"price\":%d}\n", 5001+i)
	}
	for text, want := range map[string]string{
		numbers.String() + ",5":            "900 complete elements; [900] number 5000…5899",
		numbers.String() + ",false":        "900 complete elements; [900] number 5000…5899",
		objects.String() + `,{"price":5`:   "900 complete elements; [900] {price: number 5000…5899}",
		lines.String() + "5":               "899 complete records; [899] {price: number 5001…5899}",
		lines.String() + `{"price":5`:      "899 complete records; [899] {price: number 5001…5899}",
		lines.String() + "\n{\"price\":tr": "899 complete records; [899] {price: number 5001…5899}",
	} {
		s := digest("", []byte(text))
		if got := strings.Join(append(s.Total, s.Shapes[0]), "; "); got != want {
			t.Errorf("…%s: %q, want %q", text[len(text)-12:], got, want)
		}
	}
}

// TestPointersAreThoseOfSlice: a pointer of the summary stands in one line, in which slice takes it back.
func TestPointersAreThoseOfSlice(t *testing.T) {
	s := digest("", []byte("{\"x\\ny\":["+strings.Repeat(`{"id":1},`, 300)+`{"id`))
	const at = `/x\x0ay`
	said := strings.Join(slices.Concat(s.Total, s.Says, s.Body), "\n")
	for _, want := range []string{"300 elements at " + at, "inside key at " + at + "/300", "last complete: " + at + "/299", "at " + at + "/0: "} {
		if !strings.Contains(said, want) {
			t.Errorf("no %q in %s", want, said)
		}
	}
}

// TestCutAnywhere: JSON that ends anywhere says where, and counts what was complete.
func TestCutAnywhere(t *testing.T) {
	text := []byte(`[{"file":"a","n":[1,2,{"x":null}]},{"file":"b","n":[]},-1.5e3, true,` + "\n" + ` {"file":"b\"c","n":[true,"é"],"rare":1}]`)
	for n := 1; n < len(text); n++ {
		s := finish(content.JSON, text[:n])
		if diff := cutAsRead(t, content.JSON, text[:n], s); diff != "" {
			t.Errorf("cut at %d: %s", n, diff)
		}
		if s.Cut == nil || len(s.Says) == 0 || !strings.HasPrefix(s.Says[0], "breaks off at byte "+number(int64(n))+",") {
			t.Fatalf("cut at %d: %v %q", n, s.Cut, s.Says)
		}
		for _, shape := range s.Shapes {
			if strings.Contains(shape, "file?") || strings.Contains(shape, "n?") {
				t.Errorf("cut at %d: a key is called rare because the text ends: %s", n, shape)
			}
		}
	}
	if s := finish(content.JSON, text); s.Cut != nil || len(s.Says) > 0 {
		t.Errorf("whole: %v %q", s.Cut, s.Says)
	}
}

// TestLevelsAgainstGrep: levels as grep counts them, where they stand in one place.
func TestLevelsAgainstGrep(t *testing.T) {
	text := corpus.PanicLog()
	d := digestAs(content.Log, text)
	_, _ = d.Write(text)
	logs := d.reader.(*unmarked).reader.(*logs)
	for lv, word := range map[level]string{info: " INFO ", debug: " DEBUG ", warn: " WARN "} {
		if want := strings.TrimSpace(output(t, text, "grep", "-c", word)); number(logs.levels[lv]) != want {
			t.Errorf("%s: %d, grep has %s", levelNames[lv], logs.levels[lv], want)
		}
	}
	s := d.Close()
	if want := fmt.Sprintf("lines %d-", corpus.PanicLine); !strings.HasPrefix(s.Says[0], want) || !strings.Contains(s.Says[0], "panic: runtime error: index out of range [7] with length 3") {
		t.Errorf("the panic of line %d is not said first: %q", corpus.PanicLine, s.Says)
	}
	if got, want := number(logs.rows.number), strings.Fields(output(t, text, "wc", "-l"))[0]; got != want {
		t.Errorf("%s lines, wc has %s", got, want)
	}
	var sum int64
	for _, c := range logs.templates.all {
		sum += c.n
	}
	if sum != logs.templates.lines {
		t.Errorf("the templates have %d lines of %d", sum, logs.templates.lines)
	}
}

func TestLevels(t *testing.T) {
	for line, want := range map[string]level{
		"2026-11-20T14:30:22Z ERROR disk full":                      failure,
		"2026-11-20 14:30:22,123 - app - WARNING - slow":            warn,
		"2026/11/20 14:30:22 [error] 12#0: open() failed":           failure,
		"Nov 20 14:30:22 host app[1]: Error: no such file":          failure,
		"Error: no such file":                                       failure,
		"main.c:12:3: error: expected ';'":                          failure,
		"main.c:12:3: warning: unused":                              warn,
		"error[E0308]: mismatched types":                            failure,
		`time=2026-11-20T14:30:22Z level=error msg=x`:               failure,
		`{"ts":1,"level":"warn"}`:                                   warn,
		"[INFO] started":                                            info,
		"INFO retry after ERROR":                                    info,
		"no ERROR-42 here":                                          noLevel,
		"errors were not found":                                     noLevel,
		"the error is mine":                                         noLevel,
		"2026-11-20 14:30:22 info  all is well":                     info,
		"E1120 14:30:22.123456 1 server.go:12] boom":                failure,
		"[    1.234567] usb 1-1: new device":                        noLevel,
		"14:30:22.123 FATAL out":                                    fatal,
		"--- FAIL: TestX (0.00s)":                                   failure,
		"not ok 3 - adds":                                           failure,
		"npm ERR! code 1":                                           failure,
		"FAILURES are not counted by FAIL":                          noLevel,
		"1732112233.123 DEBUG x":                                    debug,
		"[2026-11-20 14:30:22.000] [CRITICAL] meltdown":             fatal,
		"2026-11-20T14:30:22.123456789+01:00\tTRACE\tenter":         trace,
		"20-Nov-2026 14:30:22.123 SEVERE [main] org.apache.X":       fatal,
		"[20/Nov/2026:14:30:22 +0000] NOTICE listening":             notice,
		"2026-11-20T14:30:22Z \"GET /ERROR HTTP/1.1\" 200":          noLevel,
		"(2026-11-20 14:30:22) ALERT: x":                            fatal,
		"<3>Error: is not what this is: a priority, then a message": noLevel,
	} {
		l := newLog("")
		l.write([]byte(line + "\n"))
		got := noLevel
		for lv := levels - 1; lv > noLevel; lv-- {
			if l.levels[lv] > 0 {
				got = lv
			}
		}
		if got != want {
			t.Errorf("%q: %s, want %s", line, levelNames[got], levelNames[want])
		}
	}
}

// TestFilesAgainstNaive: matches, files and the top, in order and out of it, and with more files than are remembered.
func TestFilesAgainstNaive(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	for _, c := range []struct {
		files, n int
		sorted   bool
	}{{10, 1000, true}, {10, 1000, false}, {20_000, 60_000, true}, {20_000, 60_000, false}} {
		names := make([]string, c.n)
		for i := range names {
			f := r.IntN(c.files)
			if r.IntN(4) == 0 {
				f = r.IntN(c.files/10 + 1)
			}
			names[i] = fmt.Sprintf("dir/%05d.go", f)
		}
		if c.sorted {
			slices.Sort(names)
		}
		counts := map[string]int{}
		var b strings.Builder
		for i, name := range names {
			counts[name]++
			fmt.Fprintf(&b, `{"line":%d,"file":%q}`+"\n", i, name)
		}
		s := finish(content.NDJSON, []byte(b.String()))
		if s.Matches != int64(c.n) || s.Files != int64(len(counts)) {
			t.Errorf("%+v: %d matches in %d files, want %d", c, s.Matches, s.Files, len(counts))
		}
		if c.files > fileNames && !c.sorted {
			if strings.HasPrefix(s.Body[0], "top:") {
				t.Errorf("%+v: a top of what was not all counted: %s", c, s.Body[0])
			}
			continue
		}
		all := make([]string, 0, len(counts))
		for name := range counts {
			all = append(all, name)
		}
		sort.Slice(all, func(i, j int) bool {
			if counts[all[i]] != counts[all[j]] {
				return counts[all[i]] > counts[all[j]]
			}
			return all[i] < all[j]
		})
		want := "top: "
		for i, name := range all[:topFiles] {
			if i > 0 {
				want += ", "
			}
			want += fmt.Sprintf("%s %d", name, counts[name])
		}
		if s.Body[0] != want {
			t.Errorf("%+v:\n%s\nwant\n%s", c, s.Body[0], want)
		}
	}
}

// TestTemplates: lines printed with known patterns are counted by them.
func TestTemplates(t *testing.T) {
	l := newLog("")
	r := rand.New(rand.NewPCG(1, 1))
	users := []string{"alice", "bob", "carol", "dave", "erin"}
	var logins, jobs int64
	for i := range 20_000 {
		at := fmt.Sprintf("2026-11-20T10:%02d:%02d.%03dZ", i/600%60, i/10%60, i%1000)
		line := fmt.Sprintf("%s INFO job %d of queue-%d done in %dms", at, i, r.IntN(9), r.IntN(999))
		if r.IntN(3) == 0 {
			line = fmt.Sprintf("%s INFO user %s logged in from 10.0.%d.%d via web", at, users[r.IntN(len(users))], r.IntN(255), r.IntN(255))
			logins++
		} else {
			jobs++
		}
		if i == 12_345 {
			line = at + " WARN clock went backwards by 3s"
			jobs--
		}
		l.write([]byte(line + "\n"))
	}
	var s Summary
	l.close(&s)
	want := []string{
		number(jobs) + "× INFO job <*> of queue-<*> done in <*>",
		number(logins) + "× INFO user <*> logged in from <*> via web",
	}
	for i, w := range want {
		if i >= len(s.Body) || !strings.HasPrefix(s.Body[i], w) {
			t.Errorf("want %q in\n%s", w, strings.Join(s.Body, "\n"))
		}
	}
	if !slices.ContainsFunc(s.Says, func(l string) bool { return strings.HasPrefix(l, "stands out, line 12346: WARN clock went") }) {
		t.Errorf("the odd line is not told: %q", s.Says)
	}
}
