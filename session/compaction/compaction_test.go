package compaction_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/session/compaction"
	"github.com/mcp-funnel/mcp-funnel/session/transcript"
	"github.com/mcp-funnel/mcp-funnel/session/transcript/transcripttest"
	"github.com/mcp-funnel/mcp-funnel/text/tokens"
)

var update = flag.Bool("update", false, "rewrite testdata/five.golden")

// keeper keeps outputs in a real store.
type keeper struct {
	store *observations.Store
	room  int64
	mu    sync.Mutex
	kept  int

	released int
	failAt   int // the Keep that fails; 0: none
}

func newKeeper(t testing.TB) *keeper {
	t.Helper()
	s := expect.Value(observations.OpenStore(observations.Options{Dir: t.TempDir(), MinFree: 1 << 20}))(t)
	t.Cleanup(func() { _ = s.Close() })
	return &keeper{store: s, room: 1 << 40}
}

func (k *keeper) Keep(tool, _, text string) (compaction.Kept, error) {
	k.mu.Lock()
	k.kept++
	fails := k.kept == k.failAt
	k.mu.Unlock()
	if fails {
		return compaction.Kept{}, errors.New("the disk is full")
	}
	r, err := k.store.Record(observations.Provenance{Owner: observations.Local, Tool: tool})
	if err != nil {
		return compaction.Kept{}, err
	}
	if _, err := io.WriteString(r, text); err != nil {
		return compaction.Kept{}, err
	}
	lines := int64(strings.Count(text, "\n") + 1)
	o, err := r.Commit(observations.Stats{Kind: "text", Lines: lines})
	if err != nil {
		return compaction.Kept{}, err
	}
	return compaction.Kept{
		ID: "obs:" + string(o.ID), Kind: "text", Lines: lines, Tokens: int64(count(text)),
		Receipt: "LARGE OUTPUT DETECTED: kept\ntotal: 9 lines, 9 chars, 9 tokens; text; 3 errors in 2 files\n--- head",
	}, nil
}

func (k *keeper) Has(id, sha256 string) bool {
	text, err := k.Read(id)
	return err == nil && fmt.Sprintf("%x", sum256(text)) == sha256
}

var sum256 = sha256.Sum256

func (k *keeper) Read(name string) ([]byte, error) {
	id, err := observations.ParseID(name)
	if err != nil {
		return nil, err
	}
	r, err := k.store.Open(observations.Local, id)
	if err != nil {
		return nil, err
	}
	defer r.Close() //nolint:errcheck // it was only read
	return io.ReadAll(io.NewSectionReader(r, 0, r.Size()))
}

func (k *keeper) Room() (int64, error) { return k.room, nil }

func (k *keeper) Release(string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.released++
}

var counter = tokens.New(tokens.O200k)

func count(s string) int { return counter.Count(s) }

// failer is a test or one round of it.
type failer interface {
	Helper()
	Fatal(...any)
}

// restores checks that a compacted transcript is restored byte for byte.
func restores(t failer, compacted []byte, m *compaction.Map, k compaction.Keeper, want []byte) {
	t.Helper()
	if back, _, err := expand(read(t, compacted), m, k); err != nil || !bytes.Equal(back, want) {
		t.Fatal(err, "equal:", bytes.Equal(back, want))
	}
}

func read(t failer, text []byte) *transcript.Transcript {
	t.Helper()
	out, err := transcript.Read(text)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// pairs returns the ids of calls and of results, in their order.
func pairs(t *transcript.Transcript) string {
	var b strings.Builder
	for _, block := range t.Blocks {
		switch {
		case block.Call:
			b.WriteString("+" + block.ID)
		case block.Result():
			fmt.Fprintf(&b, "-%s%t", block.ID, block.Error)
		}
	}
	return b.String()
}

// TestCompactionKeepsPairs compacts random transcripts in every format: each stays valid and has the same calls and
// results, fits the budget or says that it cannot, is compacted by a second run to the same bytes, and is restored byte
// for byte.
func TestCompactionKeepsPairs(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		format := rapid.SampledFrom(transcripttest.Formats).Draw(rt, "format")
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 1))
		var calls []transcripttest.Call
		for i := range rapid.IntRange(0, 14).Draw(rt, "calls") {
			c := transcripttest.Call{
				ID: fmt.Sprintf(
					"call_%d",
					i,
				), Tool: rapid.SampledFrom([]string{"Read", "Bash"}).Draw(rt, "tool"),
				Args: map[string]any{
					"path": rapid.SampledFrom([]string{"a.go", "b.go", "c.go"}).Draw(rt, "path"),
				},
				Parts:  rapid.Bool().Draw(rt, "parts"),
				Failed: rapid.IntRange(0, 5).Draw(rt, "failed") == 0,
				Result: transcripttest.Text(r, rapid.SampledFrom([]int{0, 40, 3000, 9000}).Draw(rt, "size")),
			}
			calls = append(calls, c)
		}
		if n := len(calls); n > 0 {
			calls[n-1].Open = rapid.Bool().Draw(rt, "open")
		}
		text := transcripttest.Make(format, calls)
		if format == transcript.Claude && rapid.Bool().Draw(rt, "doubled") {
			text = doubled(text)
		}
		before := read(rt, text)
		if before.Format != format &&
			(len(calls) > 0 || format == transcript.Claude || format == transcript.Codex) {
			rt.Fatalf("%s is read as %s", format, before.Format)
		}
		k := newKeeper(t)
		m := &compaction.Map{V: 1}
		o := compaction.Options{
			Budget: rapid.IntRange(1, 20_000).
				Draw(rt, "budget"),
			Keep: rapid.IntRange(-1, 4).Draw(rt, "keep"), Count: count,
			Path: "cat %s",
		}
		out, report, err := compact(before, m, k, o)
		var over *compaction.BudgetError
		if errors.As(err, &over) {
			if over.Least <= o.Budget {
				rt.Fatalf("%d fit into %d: %v", over.Least, o.Budget, err)
			}
			return
		}
		expect.Must(rt, err)
		after := read(rt, out)
		if pairs(after) != pairs(before) || report.After > o.Budget || report.After > report.Before {
			rt.Fatalf("%+v\n%s\n%s", report, pairs(before), pairs(after))
		}
		sent := 0
		for i := range after.Blocks {
			sent += after.Tokens(&after.Blocks[i], count)
		}
		if sent+report.Rest != report.After || report.Most < report.After {
			rt.Fatalf("%d tokens are left, the report says %d", sent, report.After)
		}
		again, _, err := compact(read(rt, text), m, k, o)
		if err != nil || !bytes.Equal(again, out) {
			rt.Fatalf("compacted again: %v, equal %t", err, bytes.Equal(again, out))
		}
		kept := k.kept
		same, second, err := compact(after, m, k, o)
		if err != nil || !bytes.Equal(same, out) || k.kept != kept {
			rt.Fatalf("compacted twice: %v, %+v, equal %t", err, second, bytes.Equal(same, out))
		}
		back, _, err := expand(after, m, k)
		if err != nil || !bytes.Equal(back, text) {
			rt.Fatalf("restored: %v, equal %t", err, bytes.Equal(back, text))
		}
	})
}

// doubled returns lines of which each stands twice.
func doubled(text []byte) []byte {
	var out bytes.Buffer
	for line := range bytes.SplitAfterSeq(text, []byte("\n")) {
		out.Write(line)
		out.Write(line)
	}
	return out.Bytes()
}

// TestDoubledLines checks that a session whose lines stand twice is compacted as one whose lines stand once, in both
// lines, and that it is restored byte for byte.
func TestDoubledLines(t *testing.T) {
	var calls []transcripttest.Call
	for i := range 6 {
		calls = append(calls, transcripttest.Call{
			ID: fmt.Sprint("c", i), Tool: "Bash", Result: strings.Repeat(fmt.Sprint("w", i, " "), 2000),
		})
	}
	once := transcripttest.Make(transcript.Claude, calls)
	o := compaction.Options{Budget: 11_000, Keep: 2, Count: count}
	_, want, err := compact(read(t, once), &compaction.Map{}, newKeeper(t), o)
	expect.Must(t, err)
	text := doubled(once)
	k, m := newKeeper(t), &compaction.Map{}
	out, got, err := compact(read(t, text), m, k, o)
	if err != nil || got.Before != want.Before || got.Replaced != want.Replaced || k.kept != want.Replaced ||
		bytes.Count(out, []byte("read it with slice")) != 2*want.Replaced {
		t.Errorf("%v, %+v, once %+v, %d kept", err, got, want, k.kept)
	}
	same, again, err := compact(read(t, out), m, k, o)
	if err != nil || !bytes.Equal(same, out) || again.Replayed != want.Replaced || again.Gone != 0 {
		t.Errorf("%v, %+v", err, again)
	}
	restores(t, out, m, k, text)
}

// TestOrder checks what goes first, and what stays.
func TestOrder(t *testing.T) {
	big := func(seed uint64) string { return transcripttest.Text(rand.New(rand.NewPCG(seed, 2)), 4000) }
	same := big(9)
	calls := []transcripttest.Call{
		{ID: "old", Tool: "Bash", Args: map[string]any{"n": 1}, Result: big(1)},
		{ID: "failed", Tool: "Bash", Args: map[string]any{"n": 2}, Result: big(2), Failed: true},
		{ID: "superseded", Tool: "Read", Args: map[string]any{"path": "a"}, Result: big(3)},
		{ID: "duplicate", Tool: "Bash", Args: map[string]any{"n": 3}, Result: same},
		{ID: "wanted", Tool: "Fetch", Args: map[string]any{"n": 4}, Result: big(4)},
		{ID: "small", Tool: "Bash", Args: map[string]any{"n": 5}, Result: "ok"},
		{ID: "receipt", Tool: "mcp__f__search", Args: map[string]any{"n": 6},
			Result: "LARGE OUTPUT DETECTED: kept whole as obs:k3v9q2m7x4ab\n" + big(5)},
		{ID: "newer", Tool: "Read", Args: map[string]any{"path": "a"}, Result: big(6)},
		{ID: "last", Tool: "Bash", Args: map[string]any{"n": 7}, Result: same},
	}
	for _, format := range []transcript.Format{transcript.Claude, transcript.Anthropic} {
		text := transcripttest.Make(format, calls)
		tr := read(t, text)
		total := 0
		if tr.Usage > 0 {
			total = transcripttest.Overhead
		}
		for i := range tr.Blocks {
			total += tr.Tokens(&tr.Blocks[i], count)
		}
		least := 0
		replaced := func(budget int) string {
			m := &compaction.Map{}
			_, _, err := compact(read(t, text), m, newKeeper(t), compaction.Options{
				Budget: budget, Keep: 2, KeepTool: []string{"Fetch"}, Count: count,
			})
			if over := (*compaction.BudgetError)(nil); errors.As(err, &over) {
				if len(m.Swaps) > 0 {
					t.Errorf("%d outputs are replaced for a budget that cannot be met", len(m.Swaps))
				}
				least = over.Least
			} else if err != nil {
				t.Fatal(err)
			}
			var ids []string
			for _, s := range m.Swaps {
				ids = append(ids, s.ToolUse)
			}
			return strings.Join(ids, " ")
		}
		if got := replaced(total); got != "" {
			t.Errorf("%s: it fits, and %s is replaced", format, got)
		}
		if got := replaced(total - 1); !strings.HasPrefix("superseded duplicate receipt old", got) ||
			got == "" {
			t.Errorf("%s: first %s", format, got)
		}
		replaced(1)
		expect.Equal(t, replaced(least+300), "superseded duplicate receipt old", "%s: at most", format)
	}
}

// TestPromptCache checks that a transcript that has grown keeps the bytes of earlier compactions, until the budget is
// exceeded again.
func TestPromptCache(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	var calls []transcripttest.Call
	k, m := newKeeper(t), &compaction.Map{}
	var last []byte
	compactions := 0
	for i := range 60 {
		calls = append(calls, transcripttest.Call{
			ID: fmt.Sprint(
				"c",
				i,
			), Tool: "Bash", Args: map[string]any{"n": i}, Result: transcripttest.Text(r, 3000),
		})
		out, report, err := compact(read(t, transcripttest.Make(transcript.Claude, calls)), m, k,
			compaction.Options{Budget: 20_000, Count: count})
		expect.Must(t, err)
		if report.Replaced > 0 {
			compactions++
			if report.BreakEven == 0 || report.Rewritten == 0 {
				t.Errorf("%+v", report)
			}
		} else if end := bytes.LastIndex(last, []byte(`{"type":"of-another-version"`)); end > 0 &&
			!bytes.HasPrefix(out, last[:end]) {
			t.Errorf("call %d changed what was sent before", i)
		}
		last = out
	}
	if compactions < 3 || compactions > 15 {
		t.Errorf("%d compactions in 60 turns", compactions)
	}
}

func TestNoRoom(t *testing.T) {
	text := transcripttest.Make(transcript.Chat, []transcripttest.Call{
		{ID: "a", Tool: "x", Result: strings.Repeat("word ", 5000)}, {ID: "b", Tool: "x", Result: "y"},
	})
	k := newKeeper(t)
	k.room = 1000
	_, _, err := compact(
		read(t, text),
		&compaction.Map{},
		k,
		compaction.Options{Budget: 100, Keep: 1, Count: count},
	)
	if err == nil || !strings.Contains(err.Error(), "nothing was changed") || k.kept != 0 {
		t.Errorf("%v, %d kept", err, k.kept)
	}
}

// TestStoreFails checks that nothing stays kept for a compaction that could not store an output.
func TestStoreFails(t *testing.T) {
	var calls []transcripttest.Call
	for i := range 6 {
		calls = append(calls, transcripttest.Call{
			ID: fmt.Sprint(i), Tool: "x", Result: strings.Repeat(fmt.Sprint("w", i, " "), 2000),
		})
	}
	k, m := newKeeper(t), &compaction.Map{}
	k.failAt = 3
	_, _, err := compact(read(t, transcripttest.Make(transcript.Chat, calls)), m, k, compaction.Options{
		Budget: 500, Keep: -1, Count: count,
	})
	if err == nil || strings.Count(err.Error(), "the disk is full") != 1 || len(m.Swaps) != 0 ||
		k.released != k.kept-1 {
		t.Errorf("%v, %d swaps, %d kept, %d released", err, len(m.Swaps), k.kept, k.released)
	}
}

// TestMapOfAFailure fails at a budget that cannot be met: the map is as it was, though outputs were pointers already,
// and others have moved.
func TestMapOfAFailure(t *testing.T) {
	long := func(i int) string { return strings.Repeat(fmt.Sprint("w", i, " "), 2000) }
	calls := []transcripttest.Call{{ID: "a", Tool: "x", Result: long(1)}, {ID: "b", Tool: "x", Result: long(2)}}
	k, m := newKeeper(t), &compaction.Map{}
	o := compaction.Options{Budget: 2500, Keep: -1, Count: count}
	if _, _, err := compact(read(t, transcripttest.Make(transcript.Chat, calls)), m, k, o); err != nil {
		t.Fatal(err)
	}
	foreign := "[9 tokens, 1 line of text; read it with slice, grep or jq at source obs:k3v9q2m7x4ab]"
	moved := append([]transcripttest.Call{{ID: "0", Tool: "x", Result: foreign}}, calls...)
	before, _ := json.Marshal(m)
	o.Budget = 10
	_, _, err := compact(read(t, transcripttest.Make(transcript.Chat, moved)), m, k, o)
	var over *compaction.BudgetError
	if after, _ := json.Marshal(m); !errors.As(err, &over) || !bytes.Equal(before, after) {
		t.Errorf("%v:\n%s\n%s", err, before, after)
	}
}

// TestOddBytes restores strings that no writer of JSON makes: bytes that are no UTF-8, half a surrogate pair, escapes
// that are not needed.
func TestOddBytes(t *testing.T) {
	plain := transcripttest.Make(transcript.Claude, []transcripttest.Call{
		{ID: "a", Tool: "x", Result: strings.Repeat("word ", 3000), Parts: true}, {ID: "b", Tool: "x", Result: "y"},
	})
	for _, odd := range []string{"w\xffrd", `w\ud800rd`, `w\/rd`, `\u0077ord`, "w\xed\xa0\x80rd"} {
		text := bytes.ReplaceAll(plain, []byte("word"), []byte(odd))
		k, m := newKeeper(t), &compaction.Map{}
		out, _, err := compact(
			read(t, text),
			m,
			k,
			compaction.Options{Budget: 1000, Keep: 1, Count: count},
		)
		expect.Must(t, err)
		written := expect.Value(json.Marshal(m))(t)
		var loaded compaction.Map
		expect.Must(t, json.Unmarshal(written, &loaded))
		restores(t, out, &loaded, k, text)
	}
}

// TestExpandRefusesChanges checks that a transcript that was changed since is not restored by guessing.
func TestExpandRefusesChanges(t *testing.T) {
	text := transcripttest.Make(transcript.Claude, []transcripttest.Call{
		{ID: "a", Tool: "x", Result: strings.Repeat("word ", 5000)}, {ID: "b", Tool: "x", Result: "y"},
	})
	k, m := newKeeper(t), &compaction.Map{}
	out, _, err := compact(
		read(t, text),
		m,
		k,
		compaction.Options{Budget: 1000, Keep: 1, Count: count},
	)
	expect.Must(t, err)
	changed := bytes.Replace(out, []byte("read it with slice"), []byte("read it with a spoon"), 1)
	if _, _, err := expand(read(t, changed), m, k); !errors.Is(err, compaction.ErrChanged) {
		t.Errorf("%v", err)
	}
	m.Swaps[0].Literals[0].Size = 1 << 40
	if _, _, err := expand(read(t, out), m, k); err == nil {
		t.Error("a damaged map restores")
	}
}

func TestPointer(t *testing.T) {
	long := `{"command":"` + strings.Repeat("go test ./... ", 80) + `"}`
	for _, args := range []string{"", "{}", long, "\x1b[31m\n\u202e"} {
		for _, receipt := range []string{"", "x\ntotal: 9 lines, 9 chars, 9 tokens; diff; 3 files, 12 insertions, 4 deletions\n--- head",
			"x\ntotal: 1 line, 9 chars, 2 tokens; text\nbegins: " + strings.Repeat("A sentence. ", 90) + "\n--- head"} {
			k := compaction.Kept{
				ID:      "obs:k3v9q2m7x4ab",
				Kind:    "diff",
				Lines:   1200,
				Tokens:  98_765,
				Receipt: receipt,
			}
			first := compaction.NewPointer(k, "mcp__files__read", args,
				"or: mcp-funnel observations cat obs:k3v9q2m7x4ab", 60, count)
			if n := count(first.Text()); n > 60 || !strings.HasSuffix(first.Text(), "cat obs:k3v9q2m7x4ab]") {
				t.Errorf("first: %d tokens: %q", n, first.Text())
			}
			p := compaction.NewPointer(k, "mcp__files__read", args, "", 60, count)
			if n := count(p.Text()); n > 60 || !strings.Contains(p.Text(), "obs:k3v9q2m7x4ab") ||
				strings.ContainsAny(p.Text(), "\n\x1b\u202e") {
				t.Errorf("%d tokens: %q", n, p.Text())
			}
			if strings.Contains(receipt, "insertions") && len(args) < 20 &&
				!strings.Contains(p.Display, "12 insertions") {
				t.Errorf("%q", p.Display)
			}
		}
	}
}

// TestFiveToolRuns shows a transcript of five calls before and after.
func TestFiveToolRuns(t *testing.T) {
	var calls []transcripttest.Call
	for i := range 5 {
		calls = append(calls, transcripttest.Call{
			ID: fmt.Sprint(
				"call_",
				i,
			), Tool: "Bash", Args: map[string]any{"command": fmt.Sprint("go test ./p", i)},
			Result: strings.Repeat(fmt.Sprintf("ok  \tp%d\t0.1s\n", i), 400),
		})
	}
	m := &compaction.Map{}
	out, report, err := compact(
		read(t, transcripttest.Make(transcript.Chat, calls)),
		m,
		newKeeper(t),
		compaction.Options{Budget: 9000, Keep: 1, Count: count},
	)
	expect.Must(t, err)
	var got struct {
		Messages []struct {
			Role    string `json:"role"`
			Content string `json:"content"`
		} `json:"messages"`
	}
	expect.Must(t, json.Unmarshal(out, &got))
	pointers := 0
	for _, message := range got.Messages {
		if message.Role == "tool" && strings.HasPrefix(message.Content, "[") {
			pointers++
			expect.Contains(t, message.Content, " tokens, 401 lines of text from Bash {\"command\":\"go test ./p")
		}
	}
	shown := regexp.MustCompile(`obs:[0-9a-z]{12}`).ReplaceAll(out, []byte("obs:ID"))
	const golden = "testdata/five.golden"
	if *update {
		expect.Must(t, os.WriteFile(golden, shown, 0o644))
	}
	if want, err := os.ReadFile(golden); err != nil || !bytes.Equal(shown, want) {
		t.Errorf("%v; if it should have changed, run with -update:\n%s", err, shown)
	}
	if pointers != report.Replaced || pointers < 2 || len(got.Messages) != 13 {
		t.Errorf("%d pointers, %d messages, %+v", pointers, len(got.Messages), report)
	}
}

// BenchmarkCompact compacts 500 turns with a result of 4,000 tokens each to 100,000 tokens. times-copy is its time
// divided by that of reading and writing the same file, again/first that of a second compaction by that of the first.
func BenchmarkCompact(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 1))
	var calls []transcripttest.Call
	for i := range 500 {
		calls = append(calls, transcripttest.Call{
			ID: fmt.Sprint(
				"c",
				i,
			), Tool: "Bash", Args: map[string]any{"n": i}, Result: transcripttest.Text(r, 9000),
		})
	}
	text := transcripttest.Make(transcript.Claude, calls)
	b.SetBytes(int64(len(text)))
	file := filepath.Join(b.TempDir(), "session.jsonl")
	var copied, first, again time.Duration
	for b.Loop() {
		start := time.Now()
		expect.Must(b, os.WriteFile(file, text, 0o600))
		expect.Value(os.ReadFile(file))(b)
		copied += time.Since(start)
		m, k := &compaction.Map{}, newKeeper(b)
		for _, spent := range []*time.Duration{&first, &again} {
			start := time.Now()
			if _, _, err := compact(read(b, text), m, k, compaction.Options{
				Budget: 100_000, Count: count,
			}); err != nil {
				b.Fatal(err)
			}
			*spent += time.Since(start)
		}
	}
	b.ReportMetric(first.Seconds()/copied.Seconds(), "times-copy")
	b.ReportMetric(again.Seconds()/first.Seconds(), "again/first")
	b.ReportMetric(first.Seconds()/float64(b.N), "s/first")
}

// compact and expand return all bytes of the transcript.
func compact(
	t *transcript.Transcript, m *compaction.Map, k compaction.Keeper, o compaction.Options,
) ([]byte, compaction.Report, error) {
	out, r, err := compaction.Compact(t, m, k, o)
	if err != nil {
		return nil, r, err
	}
	return transcripttest.All(out), r, nil
}

func expand(t *transcript.Transcript, m *compaction.Map, k compaction.Keeper) ([]byte, compaction.Expanded, error) {
	out, e, err := compaction.Expand(t, m, k)
	if err != nil {
		return nil, e, err
	}
	return transcripttest.All(out), e, nil
}
