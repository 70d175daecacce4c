package compaction_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/session/compaction"
	"github.com/mcp-funnel/mcp-funnel/session/transcript"
	"github.com/mcp-funnel/mcp-funnel/session/transcript/transcripttest"
)

// outputs returns calls with results of random text.
func outputs(n int) (calls []transcripttest.Call) {
	r := rand.New(rand.NewPCG(7, 7))
	for i := range n {
		calls = append(calls, transcripttest.Call{
			ID: fmt.Sprint(
				"c",
				i,
			), Tool: "Bash", Args: map[string]any{"n": i}, Result: transcripttest.Text(r, 4000),
		})
	}
	return calls
}

// TestChangedTranscripts compacts a transcript, and then one that differs from it: both are restored byte for byte,
// with one map.
func TestChangedTranscripts(t *testing.T) {
	for _, format := range transcripttest.Formats {
		plain := outputs(8)
		for name, change := range map[string]func(k *keeper, calls []transcripttest.Call) []transcripttest.Call{
			"the same": func(_ *keeper, calls []transcripttest.Call) []transcripttest.Call { return calls },
			"a call before": func(_ *keeper, calls []transcripttest.Call) []transcripttest.Call {
				first := transcripttest.Call{ID: "first", Tool: "Bash", Result: strings.Repeat("first ", 3000)}
				return append([]transcripttest.Call{first}, calls...)
			},
			"a call less": func(_ *keeper, calls []transcripttest.Call) []transcripttest.Call { return calls[1:] },
			"another result": func(_ *keeper, calls []transcripttest.Call) []transcripttest.Call {
				calls[1].Result = strings.Repeat("changed ", 3000)
				return calls
			},
			"the first twice": func(_ *keeper, calls []transcripttest.Call) []transcripttest.Call {
				return append(calls, calls[0], transcripttest.Call{ID: "z", Tool: "x", Result: "y"})
			},
			"more": func(_ *keeper, calls []transcripttest.Call) []transcripttest.Call {
				return append(calls, transcripttest.Call{ID: "z", Tool: "x", Result: strings.Repeat("more ", 9000)})
			},
			"an output is gone": func(k *keeper, calls []transcripttest.Call) []transcripttest.Call {
				expect.Must(t, k.store.Remove(observations.Local, list(t, k)[0]))
				return calls
			},
		} {
			t.Run(string(format)+"/"+name, func(t *testing.T) {
				k, m := newKeeper(t), &compaction.Map{V: 1}
				o := compaction.Options{Budget: 3000, Keep: 1, Count: count, Path: "cat %s"}
				text := transcripttest.Make(format, plain)
				out, _, err := compact(read(t, text), m, k, o)
				expect.Must(t, err)
				changed := transcripttest.Make(format, change(k, append([]transcripttest.Call(nil), plain...)))
				o.Keep = -1
				second, report, err := compact(read(t, changed), m, k, o)
				expect.Must(t, err)
				if report.Replayed < 5 {
					t.Errorf("%+v", report)
				}
				expect.OK(t, m.Check())
				for compacted, want := range map[string][]byte{string(out): text, string(second): changed} {
					restores(t, []byte(compacted), m, k, want)
				}
				again, _, err := compact(read(t, changed), m, k, o)
				if err != nil || !bytes.Equal(again, second) {
					t.Errorf("the changed one again: %v, equal %t", err, bytes.Equal(again, second))
				}
			})
		}
	}
}

// list returns the observations of a keeper.
func list(t *testing.T, k *keeper) (ids []observations.ID) {
	t.Helper()
	all := expect.Value(k.store.List(observations.Local, false))(t)
	for _, o := range all {
		ids = append(ids, o.ID)
	}
	return ids
}

// TestPointersWithoutMap checks that a pointer that the map lacks is reported, and none of the tool's texts about one.
func TestPointersWithoutMap(t *testing.T) {
	calls := outputs(4)
	k, m := newKeeper(t), &compaction.Map{V: 1}
	o := compaction.Options{Budget: 2000, Keep: 1, Count: count}
	out, _, err := compact(read(t, transcripttest.Make(transcript.Chat, calls)), m, k, o)
	expect.Must(t, err)
	back, e, err := expand(read(t, out), &compaction.Map{}, k)
	if err != nil || len(e.Left) != len(m.Swaps) || e.Restored != 0 || !bytes.Equal(back, out) {
		t.Errorf("%v, %+v", err, e)
	}
	part := &compaction.Map{Swaps: m.Swaps[:1]}
	if _, e, err = expand(read(t, out), part, k); err != nil || len(e.Left) != len(m.Swaps)-1 ||
		e.Restored == 0 {
		t.Errorf("a part of the map: %v, %+v", err, e)
	}
	calls[0].Result = "the file says: " + m.Swaps[0].Pointer.Text()
	text := transcripttest.Make(transcript.Chat, calls[:1])
	if _, e, err = expand(read(t, text), &compaction.Map{}, k); err != nil || len(e.Left) != 0 {
		t.Errorf("a text about a pointer: %v, %+v", err, e)
	}
}

// TestDamagedMaps checks that a map that was changed by hand is refused, and that none restores other bytes.
func TestDamagedMaps(t *testing.T) {
	k := newKeeper(t)
	compacted := func() ([]byte, *compaction.Map) {
		m := &compaction.Map{V: 1}
		out, _, err := compact(read(t, transcripttest.Make(transcript.Claude, outputs(4))), m, k,
			compaction.Options{Budget: 2500, Keep: 1, Count: count})
		expect.Must(t, err)
		return out, m
	}
	for name, damage := range map[string]func(m *compaction.Map){
		"by":          func(m *compaction.Map) { m.Swaps[0].Literals[0].By = `"x","y":1` },
		"by no JSON":  func(m *compaction.Map) { m.Swaps[0].Literals[0].By = "x" },
		"no places":   func(m *compaction.Map) { m.Swaps[0].Literals = nil },
		"below 0":     func(m *compaction.Map) { m.Swaps[0].Literals[0].Line = -1 },
		"place twice": func(m *compaction.Map) { m.Swaps[0].Literals = append(m.Swaps[0].Literals, m.Swaps[0].Literals[0]) },
		"observation": func(m *compaction.Map) { m.Swaps[0].Observation = m.Swaps[1].Observation },
		"pointer":     func(m *compaction.Map) { m.Swaps[0].Pointer.Rehydrate = "x\ny" },
	} {
		_, m := compacted()
		expect.Must(t, m.Check())
		if damage(m); m.Check() == nil {
			t.Errorf("%s is accepted", name)
		}
	}
	for name, damage := range map[string]func(m *compaction.Map){
		"size": func(m *compaction.Map) { m.Swaps[0].Literals[0].Size-- },
		"from": func(m *compaction.Map) { m.Swaps[0].Literals[0].From = 1 << 62 },
		"raw":  func(m *compaction.Map) { m.Swaps[0].Literals[0].Form = "raw" },
		"sha":  func(m *compaction.Map) { m.Swaps[0].SHA256 = m.Swaps[1].SHA256 },
		"other observation": func(m *compaction.Map) {
			m.Swaps[0].Observation, m.Swaps[1].Observation = m.Swaps[1].Observation, m.Swaps[0].Observation
		},
	} {
		out, m := compacted()
		damage(m)
		if _, _, err := expand(read(t, out), m, k); err == nil {
			t.Errorf("%s restores", name)
		}
	}
	out, m := compacted()
	m.Swaps = append(m.Swaps, m.Swaps...)
	restores(t, out, m, k, transcripttest.Make(transcript.Claude, outputs(4))) // each swap twice
	again, _, err := compact(read(t, transcripttest.Make(transcript.Claude, outputs(4))), m, k,
		compaction.Options{Budget: 2500, Keep: 1, Count: count})
	expect.OK(t, err, "each swap twice, compacted again")
	expect.Equal(t, string(again), string(out), "each swap twice, compacted again")
}

// TestBudgetErrorNamesWhatRemains checks each cause by itself.
func TestBudgetErrorNamesWhatRemains(t *testing.T) {
	big := strings.Repeat("word ", 3000)
	one := func(result string, failed bool) []transcripttest.Call {
		return []transcripttest.Call{{ID: "a", Tool: "x", Result: result, Failed: failed}}
	}
	for want, k := range map[string]struct {
		calls []transcripttest.Call
		o     compaction.Options
	}{
		"results that failed 3001":     {one(big, true), compaction.Options{Keep: -1}},
		"the last results 3001":        {one(big, false), compaction.Options{}},
		"results of kept tools 3001":   {one(big, false), compaction.Options{Keep: -1, KeepTool: []string{"x"}}},
		"small results 100, messages ": {one(strings.Repeat("w ", 99), false), compaction.Options{Keep: -1}},
		"messages ":                    {nil, compaction.Options{}},
		"; raise the budget, or let":   {nil, compaction.Options{}},
	} {
		k.o.Budget, k.o.Count = 1, count
		_, _, err := compact(
			read(t, transcripttest.Make(transcript.Claude, k.calls)),
			&compaction.Map{},
			newKeeper(t),
			k.o,
		)
		var over *compaction.BudgetError
		if !errors.As(err, &over) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// TestMaskedPointer checks that a secret of a call's arguments is in no pointer, whole or in part.
func TestMaskedPointer(t *testing.T) {
	calls := outputs(3)
	calls[0].Args = map[string]any{"command": "login --key SECRETSECRETSECRET"}
	m := &compaction.Map{}
	out, _, err := compact(read(t, transcripttest.Make(transcript.Chat, calls)), m, newKeeper(t),
		compaction.Options{Budget: 2500, Keep: 1, Count: count, Mask: func(s string) string {
			return strings.ReplaceAll(s, "SECRETSECRETSECRET", "[masked]")
		}})
	expect.Must(t, err)
	if p := m.Swaps[0].Pointer.Text(); strings.Contains(p, "SECRET") || !strings.Contains(p, "[masked]") ||
		bytes.Count(out, []byte("SECRETSECRETSECRET")) != 1 { // in the call itself
		t.Errorf("%s", p)
	}
}

// TestDamagedObservations changes a stored output: a transcript that is compacted again is restored all the same, and
// one that does not need the output needs no observation.
func TestDamagedObservations(t *testing.T) {
	k, m := newKeeper(t), &compaction.Map{V: 1}
	o := compaction.Options{Budget: 3000, Keep: 1, Count: count}
	text := transcripttest.Make(transcript.Claude, outputs(8))
	if _, _, err := compact(read(t, text), m, k, o); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(k.store.Dir(), "observations", "Bash_*"))
	if err != nil || len(files) != len(m.Swaps) {
		t.Fatal(files, err)
	}
	for _, f := range files[:3] {
		b := expect.Value(os.ReadFile(f))(t)
		b[5] ^= 1
		expect.Must(t, os.WriteFile(f, b, 0o600))
	}
	o.Budget = 4500 // fewer outputs have to go than the first time
	second, report, err := compact(read(t, text), m, k, o)
	expect.Must(t, err, "%+v", report)
	expect.MustEqual(t, report.Gone, 3, "%+v", report)
	restores(t, second, m, k, text)
}

// TestPointersAsOutputs checks that an output that was a pointer before is not taken for one that cannot be restored.
func TestPointersAsOutputs(t *testing.T) {
	k, other := newKeeper(t), &compaction.Map{V: 1}
	o := compaction.Options{Budget: 3000, Keep: 1, Count: count}
	text, _, err := compact(read(t, transcripttest.Make(transcript.Chat, outputs(8))), other, k, o)
	expect.Must(t, err)
	m := &compaction.Map{V: 1}
	o.Budget, o.Keep = 1500, -1
	out, report, err := compact(read(t, text), m, k, o)
	if err != nil || report.Foreign == 0 || report.Replaced == 0 {
		t.Fatalf("%+v, %v", report, err)
	}
	back, e, err := expand(read(t, out), m, k)
	if err != nil || !bytes.Equal(back, text) || len(e.Left) > 0 {
		t.Errorf("%v, %+v, equal %t", err, e, bytes.Equal(back, text))
	}
}

// TestTightBudget checks that pointers become shorter where that lets a transcript fit, and that nothing is stored for
// a budget that the shortest ones exceed.
func TestTightBudget(t *testing.T) {
	text := transcripttest.Make(transcript.Chat, outputs(40))
	fits := func(budget int) (compaction.Report, *keeper, error) {
		k := newKeeper(t)
		o := compaction.Options{Budget: budget, Keep: -1, Count: count}
		_, r, err := compact(read(t, text), &compaction.Map{}, k, o)
		return r, k, err
	}
	wide, _, err := fits(8_000)
	expect.Must(t, err)
	tight := wide.After - 40*5
	if r, _, err := fits(tight); err != nil || r.After > tight || r.Replaced != 40 {
		t.Errorf("%d tokens, %d with short pointers: %+v, %v", wide.After, tight, r, err)
	}
	over := (*compaction.BudgetError)(nil)
	if _, k, err := fits(40 * 10); !errors.As(err, &over) || k.kept > 0 {
		t.Errorf("%d outputs were stored, and then %v", k.kept, err)
	}
}

// TestChangedWhileRead checks that a transcript that is cut or changed under its reader is an error.
func TestChangedWhileRead(t *testing.T) {
	text := transcripttest.Make(transcript.Claude, outputs(8))
	path := filepath.Join(t.TempDir(), "session.jsonl")
	for name, change := range map[string][]byte{
		"cut":     text[:len(text)/2],
		"changed": bytes.ReplaceAll(text, []byte(`"content":"`), []byte(`"content":1 `)),
	} {
		expect.Must(t, os.WriteFile(path, text, 0o600))
		f := expect.Value(os.Open(path))(t)
		defer f.Close() //nolint:errcheck // it was only read
		tr := expect.Value(transcript.ReadFrom(io.NewSectionReader(f, 0, int64(len(text)))))(t)
		expect.Must(t, os.WriteFile(path, change, 0o600))
		o := compaction.Options{Budget: 2500, Count: count}
		if _, _, err := compact(tr, &compaction.Map{}, newKeeper(t), o); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// TestSharedCopy has two results in one line whose copies are one string: it is replaced once, and restored.
func TestSharedCopy(t *testing.T) {
	text := strings.Repeat("the same output of two calls\n", 400)
	quoted := expect.Value(json.Marshal(text))(t)
	use := `{"type":"assistant","uuid":"u%d","sessionId":"s","message":{"role":"assistant","content":[{"type":"tool_use",` +
		`"id":"t%d","name":"Bash","input":{"n":%d}}]}}` + "\n"
	result := `{"type":"tool_result","tool_use_id":"t%d","content":%s}`
	session := []byte(fmt.Sprintf(use, 0, 0, 0) + fmt.Sprintf(use, 1, 1, 1) +
		`{"type":"user","uuid":"u2","sessionId":"s","message":{"role":"user","content":[` +
		fmt.Sprintf(result, 0, quoted) + "," + fmt.Sprintf(result, 1, quoted) + `]},"toolUseResult":{"stdout":` +
		string(quoted) + "}}\n")
	m, k := &compaction.Map{}, newKeeper(t)
	out, r, err := compact(read(t, session), m, k, compaction.Options{Budget: 1500, Keep: -1, Count: count})
	expect.Must(t, err, "%+v", r)
	expect.MustEqual(t, r.Replaced, 2, "%+v", r)
	restores(t, out, m, k, session)
}

// TestPythonDelete checks that a text with the character DEL, as Python writes it, needs no string in the map.
func TestPythonDelete(t *testing.T) {
	calls := outputs(3)
	calls[0].Result = strings.Repeat("a\x7fb\n", 900)
	text := bytes.ReplaceAll(transcripttest.Make(transcript.Chat, calls), []byte("\x7f"), []byte(`\u007f`))
	m, k := &compaction.Map{}, newKeeper(t)
	out, _, err := compact(read(t, text), m, k, compaction.Options{Budget: 2500, Keep: 1, Count: count})
	expect.Must(t, err)
	for _, s := range m.Swaps {
		if s.ToolUse == calls[0].ID && s.Literals[0].Form == "raw" {
			t.Errorf("%s is in the map itself", s.ToolUse)
		}
	}
	restores(t, out, m, k, text)
}
