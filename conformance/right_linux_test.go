package conformance

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/corpus"
	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/conformance/peers/peer"
	"github.com/mcp-funnel/mcp-funnel/conformance/promise"
)

// likeness is one question put to us and to the program that people know.
type likeness struct {
	tool string
	args map[string]any
	peer string
	with []string // its arguments; it runs in the root
}

// pageLine begins a page that is not all.
var pageLine = regexp.MustCompile(`^showing (none|\d+-\d+) of (\d+|\?)`)

// shown is one page, taken apart.
type shownPage struct {
	rows   []string
	next   *likeness // the call that it names; nil: there is none
	partly string    // what it says of itself that is not complete
	failed bool
}

// pageOf takes an answer apart as its reader has to.
func pageOf(a answer) (p shownPage, err error) {
	p.failed = a.failed
	headed := false
	for _, block := range a.blocks {
		head, rest, _ := strings.Cut(block, "\n")
		switch {
		case pageLine.MatchString(head):
			headed = !strings.HasPrefix(head, "showing none")
			if strings.Contains(head, "cut in its middle") || strings.Contains(head, "of ?") {
				p.partly = head
			}
			if _, call, more := strings.Cut(head, "; next: "); more {
				tool, args, _ := strings.Cut(call, " ")
				p.next = &likeness{tool: tool}
				if err := json.Unmarshal([]byte(args), &p.next.args); err != nil {
					return p, fmt.Errorf("the next call cannot be read: %w: %s", err, head)
				}
			} else {
				p.partly += " " // a part was asked for, or there is no way on
			}
			for line := range strings.Lines(rest) {
				p.partly += line
			}
		case strings.HasPrefix(block, "note: "):
			p.partly += block
		case a.failed:
			p.partly += block
		case block != "" || headed: // a page of one blank line is a blank block
			rows := strings.Split(block, "\n")
			if last := len(rows) - 1; last > 0 && strings.HasPrefix(rows[last], "note: ") { // below whole rows
				rows = rows[:last]
			}
			p.rows = append(p.rows, rows...)
		}
	}
	if headed && len(p.rows) == 0 { // one blank line
		p.rows = []string{""}
	}
	return p, nil
}

// walk asks, and follows each page to the next until there is none. spoil is nil but in the control.
func (l likeness) walk(s *stdioClient, spoil func([]string) []string) (all shownPage, pages int, err error) {
	for next := &l; next != nil; {
		a, err := s.call(next.tool, next.args)
		if err != nil {
			return all, pages, err
		}
		p, err := pageOf(a)
		if err != nil {
			return all, pages, err
		}
		if spoil != nil && len(p.rows) > 0 {
			p.rows = spoil(p.rows)
		}
		if pages++; pages > 3000 {
			return all, pages, errors.New("the pages never end")
		}
		all.rows = append(all.rows, p.rows...)
		all.failed = all.failed || p.failed
		if next = p.next; next == nil || strings.Contains(p.partly, "cut in its middle") {
			all.partly += p.partly
		}
	}
	return all, pages, nil
}

var keptWhole = regexp.MustCompile(`^(?:LARGE OUTPUT DETECTED: kept whole|SAVED) as (obs:\w+)`)

// hits asks a search, and gives file:line:text of all it found, from the answer or, where it was kept, from there.
func (l likeness) hits(s *stdioClient, spoil func([]string) []string) (all shownPage, pages int, err error) {
	a, err := s.call(l.tool, l.args)
	if err != nil {
		return all, 0, err
	}
	if m := keptWhole.FindStringSubmatch(a.text()); m != nil {
		args := map[string]any{"source": m[1], "filter": `"\(.file):\(.line):\(.text)"`, "raw": true}
		return likeness{tool: "jq", args: args}.walk(s, spoil)
	}
	all, err = pageOf(a)
	file := ""
	rows := all.rows
	all.rows = nil
	for _, row := range rows {
		if in, ok := strings.CutPrefix(row, "  "); ok {
			number, text, _ := strings.Cut(in, ": ")
			all.rows = append(all.rows, file+":"+number+":"+text)
		} else {
			file = row
		}
	}
	if spoil != nil && len(all.rows) > 0 {
		all.rows = spoil(all.rows)
	}
	return all, 1, err
}

// told is what the peer says.
func (l likeness) told(t testing.TB, root string) (rows []string, failed bool) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), peer.Find(t, l.peer), l.with...)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8")
	out, err := cmd.Output()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	lines := bufio.NewReader(bytes.NewReader(out))
	for {
		line, err := lines.ReadString('\n')
		if line != "" {
			rows = append(rows, strings.TrimSuffix(line, "\n"))
		}
		if errors.Is(err, io.EOF) {
			return rows, exit != nil && (l.peer == "jq" || exit.ExitCode() > 1)
		}
	}
}

// verdict says what is wrong with an answer, "" where it is right; one that differs and says that it is not complete
// is partial.
func (l likeness) verdict(
	t testing.TB, s *stdioClient, root string, spoil func([]string) []string,
) (wrong string, partial bool, pages int) {
	t.Helper()
	want, failed := l.told(t, root)
	var got shownPage
	var err error
	if l.tool == "search" {
		got, pages, err = l.hits(s, spoil)
		for i := range want {
			want[i] = strings.TrimPrefix(want[i], "./")
		}
		slices.Sort(want)
		slices.Sort(got.rows)
	} else {
		got, pages, err = l.walk(s, spoil)
	}
	switch {
	case err != nil:
		return err.Error(), false, pages
	case got.failed != failed:
		return fmt.Sprintf("it failed: %t (%.200s), and %s: %t", got.failed, got.partly, l.peer, failed), false, pages
	case failed: // both say so; what came before it stands in another order in the two
		return "", false, pages
	case slices.Equal(got.rows, l.spelt(want)):
		return "", false, pages
	case strings.TrimSpace(got.partly) != "" && !strings.HasPrefix(got.partly, "note: no"):
		return "", true, pages
	}
	at := 0
	for at < len(got.rows) && at < len(want) && got.rows[at] == l.spelt(want[at : at+1])[0] {
		at++
	}
	line := func(rows []string) string {
		if at < len(rows) {
			return rows[at]
		}
		return "(nothing)"
	}
	return fmt.Sprintf(
		"%d rows, %d of %s; the first that differs, %d: %.100q, not %.100q", len(got.rows), len(want), l.peer, at,
		line(got.rows), line(want),
	), false, pages
}

// spelt is what a peer says as we word it: grep has no blank behind the number of a line.
func (l likeness) spelt(rows []string) []string {
	if l.peer != "grep" {
		return rows
	}
	out := make([]string, len(rows))
	for i, row := range rows {
		number, text, _ := strings.Cut(row, ":")
		out[i] = number + ": " + text
	}
	return out
}

// rightRoot has real texts and generated ones.
func rightRoot(t testing.TB, random *rand.Rand) (root string, texts, jsons []string) {
	t.Helper()
	root = t.TempDir()
	put := func(to *[]string, name, text string) {
		write(t, filepath.Join(root, name), text)
		if to != nil {
			*to = append(*to, name)
		}
	}
	part := func(b []byte, n int) string { // whole lines of \n
		text := strings.ReplaceAll(strings.TrimPrefix(string(b), "\ufeff"), "\r", "")
		lines := strings.SplitAfter(text, "\n")
		return strings.Join(lines[:min(n, len(lines))], "")
	}
	put(&texts, "war.txt", part(corpus.WarAndPeace(), promise.Size(500, 1500)))
	put(&texts, "panic.log", part(corpus.PanicLog(), promise.Size(300, 1000)))
	put(&texts, "table.csv", part(corpus.CSV20k(), promise.Size(300, 600)))
	source := peer.GoSource(t)
	for _, name := range promise.Size([]string{"errors/wrap.go", "sort/search.go"}, []string{
		"strings/builder.go", "sort/sort.go", "strings/replace.go",
	}) {
		b := expect.Value(os.ReadFile(filepath.Join(source, name)))(t)
		put(&texts, "go/"+name, string(b))
	}
	words := strings.Fields("alpha beta gamma delta error warning naïve 世界 0 42 3.14 x=1 (a) [b] {c} end. café Straße")
	for i := range 4 {
		var b strings.Builder
		for n := range 400 {
			for range random.IntN(9) {
				b.WriteString(words[random.IntN(len(words))] + " ")
			}
			if n < 399 || i%2 == 0 { // some without a last newline
				b.WriteByte('\n')
			}
		}
		put(&texts, fmt.Sprintf("made/%d.txt", i), b.String())
	}
	put(nil, "made/.gitignore", "*.log\n")
	put(nil, "made/x.log", "alpha ignored\n")
	put(nil, ".hidden/x.txt", "alpha hidden\n")
	put(nil, ".git/HEAD", "ref: refs/heads/main\n")

	put(&jsons, "null.json", "null")
	put(&jsons, "mixed.json", `[null,true,false,0,-1,2.5,"a","B c","",[],[1],{},{"a":1}]`)
	put(&jsons, "object.json", `{"a":"x","b":{"c":[1,2,{"d":null}]},"e":{},"id":-7,"n":5,"s":"caf\u00e9 \"q\" \\ <&>"}`)
	var list, nd []string
	for i := range 300 {
		one := fmt.Sprintf(
			`{"id":%d,"k":%q,"n":%d,"t":[%d,%q]}`, i, words[random.IntN(len(words))], random.IntN(50), random.IntN(1000),
			words[random.IntN(len(words))],
		)
		list, nd = append(list, one), append(nd, one)
	}
	put(&jsons, "list.json", "["+strings.Join(list, ",\n")+"]")
	put(&jsons, "records.ndjson", strings.Join(nd, "\n")+"\n")
	put(&jsons, "numbers.json", "["+strings.TrimSuffix(strings.Repeat("3,1,2,10,-5,0,2.5,100000,", 20), ",")+"]")
	put(&jsons, "words.json", `["foo bar","Foo","a,b,c","","x\ty","日本語","a.b.c"]`)
	put(&jsons, "nested.json", "["+strings.Repeat("[1,[2,[3,[4]]],", 40)+"0"+strings.Repeat("]", 40)+"]")
	put(&jsons, "empty.json", "[]")
	return root, texts, jsons
}

// differences between jq and gojq that are known: by filter, with the reason.
func rightDifferences(t testing.TB) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, d := range corpus.Rows[struct{ Filter, Reason string }](t, "right/differences.ndjson") {
		all[d.Filter] = d.Reason
	}
	return all
}

// likenesses are all questions: each text with each pattern or range, each JSON with each filter.
func likenesses(t testing.TB, random *rand.Rand, root string, texts, jsons []string) (all []likeness) {
	t.Helper()
	patterns := []string{
		"alpha", "err(or)?", "^$", "^[A-Z]", "[0-9]+", "[.]$", "a.*b.*c", "(foo|bar|the) ", `\bfunc\b`, "世界", "é", "[^ -~]",
		"x{0,2}y", "e", "nosuchthinganywhere", "^.{80,}$", `[(\[{]`, `\s$`, "Prince|Princess", "T[a-z]+ ",
	}
	for _, text := range texts {
		b := expect.Value(os.ReadFile(filepath.Join(root, text)))(t)
		own := strings.Fields(string(b))
		lines := strings.Count(string(b), "\n")
		grep := func(pattern string, args map[string]any, flags ...string) {
			args["source"], args["pattern"] = text, pattern
			all = append(all, likeness{"grep", args, "grep", append(flags, "-n", "-a", "-e", pattern, text)})
		}
		for _, p := range patterns {
			grep(p, map[string]any{}, "-P")
			grep(p, map[string]any{"ignore_case": true}, "-P", "-i")
			grep(p, map[string]any{"invert": true}, "-P", "-v")
		}
		for range 30 { // words that stand in it
			grep(own[random.IntN(len(own))], map[string]any{"literal": true}, "-F")
		}
		sed := func(lines, script string) {
			all = append(all, likeness{
				"slice", map[string]any{"source": text, "lines": lines}, "sed", []string{"-n", script, text},
			})
		}
		sed("1-", "p")
		sed("-1", "$p")
		for range 40 {
			from := 1 + random.IntN(lines)
			to := min(from+random.IntN(lines), lines)
			sed(fmt.Sprintf("%d-%d", from, to), fmt.Sprintf("%d,%dp", from, to))
			sed(fmt.Sprint(from), fmt.Sprintf("%dp", from))
		}
	}
	for _, dir := range []string{"go", "made", "."} {
		for _, p := range patterns {
			if !strings.Contains(p, `\s`) { // whose rows end in blanks that no layout shows
				all = append(all,
					likeness{
						"search", map[string]any{"path": dir, "pattern": p}, "rg",
						[]string{"-n", "--no-heading", "--with-filename", "--no-config", "-e", p, dir},
					},
					likeness{
						"search", map[string]any{"path": dir, "pattern": p, "ignore_case": true}, "rg",
						[]string{"-n", "-i", "--no-heading", "--with-filename", "--no-config", "-e", p, dir},
					})
			}
		}
	}
	known := rightDifferences(t)
	for _, p := range corpus.Rows[struct{ Filter string }](t, "right/programs.ndjson") {
		if known[p.Filter] != "" {
			continue
		}
		for _, source := range jsons {
			all = append(all,
				likeness{"jq", map[string]any{"source": source, "filter": p.Filter}, "jq", []string{"-S", "-c", p.Filter, source}},
				likeness{
					"jq", map[string]any{"source": source, "filter": p.Filter, "slurp": true}, "jq",
					[]string{"-S", "-c", "-s", p.Filter, source},
				})
		}
	}
	return all
}

func TestS25RightOrSaid(t *testing.T) {
	drivesOnly(t)
	t.Parallel()
	seed := promise.Size(uint64(badSeed), rand.Uint64())
	random := rand.New(rand.NewPCG(seed, 25))
	root, texts, jsons := rightRoot(t, random)
	all := likenesses(t, random, root, texts, jsons)
	most := promise.Size(300, len(all))
	if testing.Short() && !promise.Full() {
		most = 60
	}
	var some []likeness
	for i := range most { // each k-th, so that all kinds are in
		some = append(some, all[i*len(all)/most])
	}
	s := serveStdio(t, root, "--page-tokens", promise.Size("800", "2000"))
	pages, partial, failures := compareAll(t, s, root, some, nil)
	report(t, failures)

	// The control: the same questions, where each page loses its last row on the way.
	few := some
	if len(few) > 30 {
		few = few[:30]
	}
	_, _, control := compareAll(t, s, root, few, func(rows []string) []string { return rows[:len(rows)-1] })
	promise.Keptf(t, promise.Proof{Promise: "S25", Cases: len(some), Failures: len(failures), Control: len(control)},
		"of %d comparisons with grep, rg, sed and jq there are (seed %d); %d pages walked; %d answers were said to be incomplete, and were; %d filters differ as listed; the control found %d of %d",
		len(all), seed, pages, partial, len(rightDifferences(t)), len(control), len(few))
}

// compareAll puts all questions, two at a time.
func compareAll(
	t *testing.T, s *stdioClient, root string, all []likeness, spoil func([]string) []string,
) (pages, partial int, failures []string) {
	var mu sync.Mutex
	concurrently(2, all, func(l likeness) {
		wrong, said, n := l.verdict(t, s, root, spoil)
		mu.Lock()
		defer mu.Unlock()
		pages += n
		if said {
			partial++
		}
		if wrong != "" {
			failures = append(failures, fmt.Sprintf("%s %v: %s", l.tool, l.args, wrong))
		}
	})
	return pages, partial, failures
}
