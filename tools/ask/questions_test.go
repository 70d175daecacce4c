package ask

import (
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	texts "github.com/mcp-funnel/mcp-funnel/conformance/corpus"
	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/conformance/promise"
	"github.com/mcp-funnel/mcp-funnel/system/tree"
	"github.com/mcp-funnel/mcp-funnel/tools"
	"github.com/mcp-funnel/mcp-funnel/tools/source"
)

// TestQuestions asks for the passages that answer the questions of the corpus, one passage a file: all trees at full
// size, else those besides Go's source. It logs the share that is among the first five, and MRR@10, by tree and kind.
func TestQuestions(t *testing.T) {
	dir, all := t.TempDir(), texts.Questions(t)
	dirs := map[string]string{}
	for _, name := range texts.QuestionTrees(t, dir) {
		dirs[name] = filepath.Join(dir, name)
	}
	if promise.Full() {
		out, err := exec.CommandContext(t.Context(), "go", "env", "GOROOT").Output()
		expect.Must(t, err)
		dirs["go"] = filepath.Join(strings.TrimSpace(string(out)), "src")
	}
	type score struct{ n, inFive, reciprocal float64 }
	scores := map[string]*score{}
	for name, dir := range dirs {
		root, err := tree.Open(dir)
		expect.Must(t, err)
		q := &question{
			k: New(Options{Slice: 1 << 40}), ctx: t.Context(), args: Args{Path: "."},
			in:       tools.Input{Sources: source.Set{Roots: []*tree.Root{root}}},
			progress: func(int64, int64, string) {},
		}
		q.k.options.Store = t.TempDir()
		expect.Must(t, q.gather())
		expect.Must(t, q.refresh())
		for _, one := range all {
			if one.Tree != name {
				continue
			}
			rank := q.rankOf(t, one)
			for _, of := range []string{one.Kind, fmt.Sprintf("%-10s %s", name, one.Kind)} {
				s := scores[of]
				if s == nil {
					s = &score{}
					scores[of] = s
				}
				s.n++
				if rank > 0 {
					s.reciprocal += 1 / float64(rank)
				}
				if rank > 0 && rank <= 5 {
					s.inFive++
				}
			}
		}
		q.close()
		expect.Must(t, root.Close())
	}
	for _, of := range slices.Sorted(maps.Keys(scores)) {
		s := scores[of]
		t.Logf("%-24s %3.0f questions: %3.0f %% in five, MRR@10 %.3f", of, s.n, 100*s.inFive/s.n, s.reciprocal/s.n)
	}
	if s := scores["natural"]; s.inFive < promise.Size(0.85, 0.7)*s.n {
		t.Errorf("%.0f of %.0f natural questions are answered by one of the first five passages", s.inFive, s.n)
	}
}

// rankOf returns the rank among ten files of the first passage that answers a question, from 1, or 0.
func (q *question) rankOf(t *testing.T, one texts.Question) int {
	t.Helper()
	q.text, q.readAs = one.Question, one.Question
	query, err := q.query(termsOf(one.Question))
	expect.Must(t, err)
	found, err := q.passages(query, candidates)
	expect.Must(t, err)
	var seen []string
	for _, p := range found {
		if slices.Contains(seen, p.Path) {
			continue
		}
		if seen = append(seen, p.Path); len(seen) > 10 {
			break
		}
		if slices.ContainsFunc(one.Gold, func(a texts.Answer) bool {
			last := p.Line + strings.Count(p.text, "\n")
			return p.Path == a.File && (strings.Contains(p.text, a.Has) || p.Line <= a.To+3 && last >= a.From-3)
		}) {
			return len(seen)
		}
	}
	return 0
}
