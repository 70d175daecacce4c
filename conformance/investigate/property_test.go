package investigate_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/conformance/promise"
	"github.com/mcp-funnel/mcp-funnel/tools/investigate"
)

// grow makes a random tree and returns its directories.
func grow(t testing.TB, r *rand.Rand, dir string, size int) (dirs []string) {
	dirs = []string{"."}
	for len(dirs) < size {
		dirs = append(dirs, path.Join(dirs[r.IntN(len(dirs))], fmt.Sprintf("d%d", len(dirs))))
	}
	files := map[string]string{}
	for _, d := range dirs {
		for i := range 1 + r.IntN(3) {
			files[path.Join(d, fmt.Sprintf("f%d.go", i))] = fmt.Sprintf("package p\n\nvar v%d = %d\n", i, r.IntN(1e9))
		}
	}
	write(t, dir, files)
	return dirs
}

// edit changes one thing in a directory, and returns the directories whose own content it changed.
func edit(t testing.TB, r *rand.Rand, dir, at string) {
	t.Helper()
	p := filepath.Join(dir, at, "f0.go")
	var err error
	switch r.IntN(4) {
	case 0: // the same size
		var text []byte
		if text, err = os.ReadFile(p); err == nil {
			text[len(text)-2] ^= 1
			err = os.WriteFile(p, text, 0o600)
		}
	case 1:
		err = os.WriteFile(p, []byte(fmt.Sprintf("package p // %d\n", r.IntN(1e9))), 0o600)
	case 2:
		err = os.WriteFile(filepath.Join(dir, at, fmt.Sprintf("new%d.go", r.IntN(1e9))), []byte("package p\n"), 0o600)
	default:
		err = os.Rename(p, filepath.Join(dir, at, fmt.Sprintf("moved%d.go", r.IntN(1e9))))
		if os.IsNotExist(err) {
			err = os.WriteFile(p, []byte("package q\n"), 0o600)
		}
	}
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
}

// TestStaleness edits random trees: exactly the touched directories and those above them are due again, and only their
// entries are written again.
func TestStaleness(t *testing.T) {
	edits := promise.Size(60, 1000)
	r := rand.New(rand.NewPCG(3, 4))
	for done := 0; done < edits; {
		dir := t.TempDir()
		dirs := grow(t, r, dir, 3+r.IntN(25))
		b := in(t, dir)
		b.finished("About %s.")
		for range 1 + r.IntN(4) {
			want, before := map[string]bool{}, map[string]string{}
			for _, d := range dirs {
				before[d] = listing(t, filepath.Join(dir, d))
			}
			for range 1 + r.IntN(3) {
				edit(t, r, dir, dirs[r.IntN(len(dirs))])
				done++
			}
			for _, d := range dirs {
				for p := d; before[d] != listing(t, filepath.Join(dir, d)); p = path.Dir(p) {
					if want[p] = true; p == "." {
						break
					}
				}
			}
			v := expect.Value(b.i.Verify(t.Context(), b.caller(), ""))(t)
			var touched []string
			for p := range want {
				touched = append(touched, p)
			}
			slices.Sort(touched)
			if !slices.Equal(v.Stale, touched) {
				t.Fatalf("due: %q, touched: %q", v.Stale, touched)
			}
			written := stamps(t, b)
			b.finished("Again %s.")
			for p, at := range stamps(t, b) {
				if was, ok := written[p]; ok && (at != was) != want[p] {
					t.Fatalf("%s: written again is %v, touched %v", p, at != was, want[p])
				}
			}
		}
	}
}

// listing is the names and contents of a directory's files.
func listing(t testing.TB, dir string) string {
	entries := expect.Value(os.ReadDir(dir))(t)
	var all strings.Builder
	for _, e := range entries {
		text, _ := os.ReadFile(filepath.Join(dir, e.Name())) // a directory has none
		fmt.Fprintf(&all, "%s %q\n", e.Name(), text)
	}
	return all.String()
}

// stamps returns when each entry of a directory was written.
func stamps(t testing.TB, b *bench) map[string]string {
	t.Helper()
	names := expect.Value(filepath.Glob(filepath.Join(b.store.Dir(), "investigations", "*", "dirs", "*.json")))(t)
	all := map[string]string{}
	for _, n := range names {
		var e struct {
			Relative string `json:"relative_path"`
			At       string `json:"cached_at"`
		}
		raw, err := os.ReadFile(n)
		if err == nil {
			err = json.Unmarshal(raw, &e)
		}
		expect.Must(t, err)
		all[e.Relative] = e.At
	}
	return all
}

// TestManyAtOnce has eight callers answer orders at once: each order is answered once, each directory by one of them.
func TestManyAtOnce(t *testing.T) {
	b := in(t, many(t, 24))
	_, o := b.investigate(nil)
	_, begun := b.answer(o, o.note(""))
	var mu sync.Mutex
	by, got := map[string]int{}, make([]int, 8)
	var group sync.WaitGroup
	for who := range got {
		group.Go(func() {
			var o order
			if who == 0 {
				o = begun
			}
			for idle := 0; idle < 300; {
				text := ""
				if o.Order == "" {
					if text, o = b.investigate(nil); o.Order == "" {
						if strings.HasPrefix(text, "done") {
							return
						}
						idle++
						continue
					}
				}
				mu.Lock()
				got[who]++
				for _, d := range o.Dirs {
					by[d.Path]++
				}
				mu.Unlock()
				id := o.Order
				text, o = b.investigate(object{"order": id, "note": o.note("About %s.")})
				if strings.HasPrefix(text, "error") {
					t.Errorf("%s: %s", id, text)
					return
				}
			}
			t.Error("a caller starved")
		})
	}
	group.Wait()
	for d, n := range by {
		if n != 1 {
			t.Errorf("%s was given out %d times", d, n)
		}
	}
	v := b.verify()
	if !v.Holds() || v.Entries != 25 {
		t.Errorf("%+v", v)
	}
	expect.Equal(t, len(by), 25, "directories were given out")
	r := b.report("")
	expect.Lacks(t, r.Partial, "files alone")
}

// TestOrdersFit measures the texts of orders over the toolchain's source.
func TestOrdersFit(t *testing.T) {
	dir := filepath.Join(goroot(t), "src", "net")
	if promise.Full() {
		dir = filepath.Join(goroot(t), "src")
	}
	b := in(t, dir)
	text, o := b.investigate(nil)
	var sizes []int
	for o.Order != "" {
		_, text, _ = strings.Cut(text, "WORK ORDER")
		n := b.counter.Count(text)
		if sizes = append(sizes, n); n > 1000 {
			t.Errorf("%d tokens: %s", n, text)
		}
		note := o.note("The directory %s holds sources that do a part of the work. Their names say which.")
		text, o = b.answer(o, note)
	}
	slices.Sort(sizes)
	p95 := sizes[len(sizes)*95/100]
	t.Logf("%d orders: p50 %d, p95 %d, max %d tokens", len(sizes), sizes[len(sizes)/2], p95, sizes[len(sizes)-1])
	if p95 > 700 {
		t.Errorf("p95 is %d tokens, at most 700", p95)
	}
}

// TestNothingInvented reads back every path, quote, count and line of a report that no model wrote.
func TestNothingInvented(t *testing.T) {
	dir := filepath.Join(goroot(t), "src", "net")
	b := in(t, dir)
	out := expect.Value(b.i.Run(t.Context(), b.caller(), investigate.Args{}, nil))(t)
	checkReport(t, b, out.Report, 5, 10)
	if v := b.verify(); !v.Holds() || v.Citations < 5 {
		t.Errorf("%+v", v)
	}
}

var (
	citation = regexp.MustCompile(`(?m)^(\S+):(\d+)(?:-(\d+))? “([^”]+)”`)
	counts   = regexp.MustCompile(`(?m)^(\d+) files? \(.*?\), .*?, (\d+) lines?\.$`)
)

// checkReport compares what a mechanical report says with the tree. It must have so many quotes and sections at least.
func checkReport(t *testing.T, b *bench, r investigate.Report, leastQuotes, leastSections int) {
	t.Helper()
	quotes, sections := 0, 0
	for _, part := range strings.Split("\n"+r.Detailed, "\n## ")[1:] {
		p, text, _ := strings.Cut(part, "\n")
		sections++
		names, err := os.ReadDir(filepath.Join(b.dir, p))
		if err != nil {
			t.Errorf("%s: %v", p, err)
			continue
		}
		for _, m := range citation.FindAllStringSubmatch(text, -1) {
			quotes++
			raw, err := os.ReadFile(filepath.Join(b.dir, p, m[1]))
			if err != nil {
				t.Errorf("%s: %v", p, err)
				continue
			}
			lines := strings.Split(string(raw), "\n")
			from, _ := strconv.Atoi(m[2])
			to := from
			if m[3] != "" {
				to, _ = strconv.Atoi(m[3])
			}
			there := strings.Join(strings.Fields(strings.Join(lines[from-1:min(to, len(lines))], " ")), " ")
			expect.Contains(t, there, m[4])
		}
		if m := counts.FindStringSubmatch(text); m != nil {
			files, lines := 0, 0
			for _, n := range names {
				if n.Type().IsRegular() && !strings.HasPrefix(n.Name(), ".") {
					files++
					raw, _ := os.ReadFile(filepath.Join(b.dir, p, n.Name()))
					lines += strings.Count(string(raw), "\n")
					if len(raw) > 0 && raw[len(raw)-1] != '\n' {
						lines++
					}
				}
			}
			if m[1] != strconv.Itoa(files) || m[2] != strconv.Itoa(lines) {
				t.Errorf("%s: %q; it has %d files with %d lines", p, m[0], files, lines)
			}
		}
	}
	if quotes < leastQuotes || sections < leastSections {
		t.Errorf("only %d quotes in %d sections", quotes, sections)
	}
}
