//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/mcp-funnel/mcp-funnel/observations"
)

func (b *bench) storeRows() []row {
	return []row{
		{family: "store", name: "search of 20,000 observations", beside: "rg", bar: 1.5, setup: b.searchingStore},
		{family: "store", name: "completion among 20,000 observations", beside: "ls", bar: 50, unit: "ms",
			setup: b.completing},
		{family: "store", name: "prune of 20,000 observations", beside: "find", bar: 3000, unit: "ms",
			setup: b.pruning},
	}
}

// storeOf makes a store of 20,000 observations of about 3 KB, all unused for two hours.
func (b *bench) storeOf(name string) (dir string, n int, err error) {
	if n = 20_000; b.small {
		n /= 20
	}
	dir = filepath.Join(b.work, name)
	old := func() time.Time { return time.Now().Add(-2 * time.Hour) }
	s, err := observations.OpenStore(observations.Options{Dir: dir, MinFree: -1, Now: old})
	if err != nil {
		return "", 0, err
	}
	for i := range n {
		r, err := s.Record(observations.Provenance{
			Owner: observations.Local, Tool: "read", Args: fmt.Appendf(nil, `{"source":"src/%d.go"}`, i),
		})
		if err != nil {
			return "", 0, err
		}
		for j := range 30 + i%60 {
			line := fmt.Sprintf("%d: line %d of a text with words, status=%d\n", i, j, (7*i+j)%600)
			if j == 20 && i%100 == 0 {
				line = literal + "\n"
			}
			if _, err := r.Write([]byte(line)); err != nil {
				return "", 0, err
			}
		}
		seen := observations.Stats{Kind: "text", Ext: "txt", Receipt: strings.Repeat("LARGE OUTPUT ", 60)}
		if _, err := r.Commit(seen); err != nil {
			return "", 0, err
		}
	}
	return dir, n, s.Close()
}

// searchingStore counts the lines with a literal in all observations, beside ripgrep in their data files. The server
// reads the sidecars in its first call, a process of its own in each.
func (b *bench) searchingStore(context.Context) (*pair, error) {
	dir, n, err := b.storeOf("searched")
	if err != nil {
		return nil, err
	}
	args := map[string]any{"pattern": literal, "path": "obs:", "show": "counts"}
	peer := []string{"rg", "--no-config", "--count", "-g", "read_*.txt", "-e", literal, filepath.Join(dir, "observations")}
	p := b.toolPair(b.work, "search", args, peer, "--store", dir)
	p.work = float64(n)
	p.same = func(ours, peer string) error {
		total := totalMatches.FindString(ours)
		if total == "" { // few are shown whole, each by its name
			total = fmt.Sprint(len(observation.FindAllString(ours, -1)))
		}
		return sameCount(total, fmt.Sprint(strings.Count(peer, "\n")))
	}
	return p, nil
}

// completing completes the empty name, in a call of a server that has answered one.
func (b *bench) completing(context.Context) (*pair, error) {
	dir, n, err := b.storeOf("completed")
	if err != nil {
		return nil, err
	}
	ours := &served{words: b.funnel(b.work, "--store", dir), method: "completion/complete", args: map[string]any{
		"ref":      map[string]any{"type": "ref/resource", "uri": "observation://{id}"},
		"argument": map[string]any{"name": "id", "value": ""},
	}}
	peer := &command{b: b, words: []string{"ls", filepath.Join(dir, "observations")}}
	return &pair{ours: ours, peer: peer, work: float64(n), same: func(ours, peer string) error {
		var answer struct {
			Result struct{ Completion struct{ Total int } }
		}
		if err := json.Unmarshal([]byte(ours), &answer); err != nil {
			return err
		}
		return sameCount(fmt.Sprint(answer.Result.Completion.Total), fmt.Sprint(strings.Count(peer, ".txt\n")))
	}}, nil
}

// pruning removes all observations because of their age, beside find that deletes all their files. Both get a new copy
// before each run.
func (b *bench) pruning(ctx context.Context) (*pair, error) {
	dir, n, err := b.storeOf("pruned")
	if err != nil {
		return nil, err
	}
	fresh := func(name string) func() error {
		return func() error {
			to := filepath.Join(b.work, name)
			err := os.RemoveAll(to)
			return errors.Join(err, exec.CommandContext(ctx, "cp", "-rp", dir, to).Run())
		}
	}
	mine, theirs := fresh("pruned-1"), fresh("pruned-2")
	words := append(b.funnel(b.work), "--store", filepath.Join(b.work, "pruned-1"), "--max-age", "1h",
		"observations", "prune")
	peer := []string{"find", filepath.Join(b.work, "pruned-2", "observations"), "-type", "f", "-print", "-delete"}
	return &pair{
		ours: &command{b: b, words: words, after: mine}, peer: &command{b: b, words: peer, after: theirs},
		work: float64(n), same: func(ours, peer string) error {
			return sameCount(ours, fmt.Sprint(strings.Count(peer, ".txt\n")))
		},
	}, errors.Join(mine(), theirs())
}
