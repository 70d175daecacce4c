package savings

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// question is asked of one output and answered by a fixed script of calls.
type question struct {
	source, text string
	calls        []call
	want         []string // all of these occur in the last answer; computed from the generator's own data
}

type call struct {
	tool string
	args map[string]any
}

// fixture writes the outputs of a size and asks their questions.
type fixture struct {
	dir       string
	scale     int // 10 is full size
	random    *rand.Rand
	outputs   map[string]string // whole text by source
	questions []question
}

func newFixture(t *testing.T, scale int) *fixture {
	f := &fixture{
		dir: t.TempDir(), scale: scale, random: rand.New(rand.NewPCG(7, 11)), outputs: map[string]string{},
	}
	for _, make := range []func(*fixture){
		serviceLog, apiDump, geoJSON, orders, changes, testEvents, history, goSource,
	} {
		make(f)
	}
	for name, text := range f.outputs {
		if name == "src" {
			continue
		}
		if err := os.WriteFile(filepath.Join(f.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return f
}

func (f *fixture) pick(of ...string) string { return of[f.random.IntN(len(of))] }

func (f *fixture) hex(n int) string {
	var b strings.Builder
	for range n {
		fmt.Fprintf(&b, "%x", f.random.IntN(16))
	}
	return b.String()
}

func (f *fixture) ask(source, text string, want []string, calls ...call) {
	f.questions = append(f.questions, question{source, text, calls, want})
}

func jq(source, filter string) call {
	return call{"jq", map[string]any{"source": source, "filter": filter, "slurp": true, "raw": true}}
}

func groups(source, pattern string) call {
	return call{"grep", map[string]any{"source": source, "pattern": pattern, "show": "groups"}}
}

func count(source, pattern string) call {
	return call{"grep", map[string]any{"source": source, "pattern": pattern, "show": "count"}}
}

// most returns the key with the highest count, the first in order of names where several have it.
func most(counts map[string]int) (key string) {
	for k, n := range counts {
		if key == "" || n > counts[key] || n == counts[key] && k < key {
			key = k
		}
	}
	return key
}

var start = time.Date(2026, 3, 2, 8, 0, 0, 0, time.UTC)
