package continuation

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The documents of the simulator, by name.
func simulated(r *rand.Rand) map[string][]byte {
	docs := map[string][]byte{}
	add := func(name string, v any) { docs[name], _ = json.Marshal(v) }
	indented := func(name string, v any) { docs[name], _ = json.MarshalIndent(v, "", "  ") }
	indented("sections, indented", sectionDocument(r, 12))
	add("sections, compact", sectionDocument(r, 12))
	indented("long strings", map[string]any{"title": "Report", "chapters": []any{
		map[string]any{"name": "one", "text": prose(r, 400)}, map[string]any{"name": "two", "text": prose(r, 500)},
	}})
	var lines bytes.Buffer
	for i := range 40 {
		fmt.Fprintf(&lines, "{\"id\":%d,\"message\":%q,\"time\":\"12:%02d\"}\n", i, prose(r, 6), i)
	}
	docs["ndjson"] = lines.Bytes()
	var alike, numbers []any
	for i := range 60 {
		alike = append(alike,
			map[string]any{"kind": "row", "name": "item", "ok": true, "note": "same text in every record", "n": i})
	}
	for range 120 {
		numbers = append(numbers, r.IntN(1_000))
	}
	add(bareNumbers, map[string]any{"numbers": numbers})
	indented("look-alikes", map[string]any{"records": alike})
	return docs
}

// bareNumbers is a document in which no habit but the declared one can be joined for sure.
const bareNumbers = "bare numbers"

func sectionDocument(r *rand.Rand, n int) any {
	var list []any
	for i := range n {
		s := map[string]any{"id": fmt.Sprintf("s%d", i)}
		switch i % 5 {
		case 0:
			s["content_type"], s["elements"] = "heading", []any{
				map[string]any{"level": 1, "text": "Überblick " + prose(r, 2)},
			}
		case 1:
			s["content_type"], s["elements"] = "paragraph", []any{
				map[string]any{"text": prose(r, 30)}, map[string]any{"text": prose(r, 50) + "\n\t\"quoted\" text"},
			}
		case 2:
			var items []any
			for range 12 {
				items = append(items, prose(r, 4))
			}
			s["content_type"], s["elements"] = "bullet_list", []any{map[string]any{"items": items}}
		case 3:
			var rows []any
			for j := range 15 {
				rows = append(rows, []any{fmt.Sprintf("2026-03-%02d", j), word1(r), r.IntN(99999), r.Float64() < .5})
			}
			s["content_type"] = "table"
			s["elements"] = []any{map[string]any{"headers": []any{"date", "name", "sum", "ok"}, "rows": rows}}
		default:
			s["content_type"] = "code_block"
			s["elements"] = map[string]any{
				"language": "go",
				"code":     "func f() {\n\treturn \"" + prose(r, 10) + "\"\n}\n// ] }\n",
			}
		}
		list = append(list, s)
	}
	return map[string]any{"title": "Plan", "sections": list}
}

var words = strings.Fields(
	`the a of and to in for with report number quick brown fox jumps over lazy dog Übung naïve résumé
data value list table code section result {brace} [bracket] end, stop. 42 3.14 true null path/to/file "quote" C:\dir`,
)

func word1(r *rand.Rand) string { return words[r.IntN(len(words))] }

func prose(r *rand.Rand, n int) string {
	var s []string
	for range n {
		s = append(s, word1(r))
	}
	return strings.Join(s, " ")
}

// place is where a writer of some habit goes on after a text was cut off.
func place(habit string, doc []byte, cut int, d *Document, r *rand.Rand) int {
	p := d.parser
	switch habit {
	case "declared":
		return int(d.anchor.at)
	case "byte":
		return cut
	case "token":
		switch p.scan.Inside() {
		case "string", "number", "literal":
			return int(p.value)
		case "key":
			return int(p.top().Open)
		}
		return cut
	case "element":
		for depth := len(p.containers) - 1; depth >= 0; depth-- {
			if f := &p.containers[depth]; f.Open >= 0 && (!f.Object || depth == len(p.containers)-1) {
				return int(f.Open)
			}
		}
		return cut
	case "one before":
		f := &p.containers[d.anchor.depth]
		if n := len(f.Last); n > 0 {
			return int(f.Last[n-1])
		}
		return 0
	case "all over":
		return 0
	}
	// some words again
	at := cut
	for n := 3 + r.IntN(6); n > 0 && at > 0; n-- {
		at = bytes.LastIndexByte(doc[:at-1], ' ') + 1
		if at <= 0 {
			return 0
		}
	}
	return at
}

var habits = []string{"declared", "byte", "token", "element", "one before", "all over", "words"}

// TestSimulator cuts documents at random places and goes on as writers of six habits do, and as the answer asks.
func TestSimulator(t *testing.T) {
	rounds, _ := strconv.Atoi(os.Getenv("CONTINUATIONS"))
	if rounds == 0 {
		rounds = 500 // of fewer, 5 % is a matter of chance
	}
	r := rand.New(rand.NewPCG(7, 11))
	count, shown := map[string]*[3]int{}, map[string]int{} // by habit and by document
	var repeated []int                                     // sizes of restart texts
	docs := simulated(r)
	names := slices.Sorted(maps.Keys(docs))
	for _, of := range slices.Concat(habits, names) {
		count[of] = new([3]int)
	}
	for i := range rounds {
		if i%200 == 0 {
			docs = simulated(r)
		}
		name := names[r.IntN(len(names))]
		doc := docs[name]
		cut := 1 + r.IntN(len(doc)-1)
		d := New(Options{})
		d.Add(doc[:cut])
		if d.State() == Whole {
			continue
		}
		repeated = append(repeated, len(d.Restart()))
		for _, habit := range habits {
			from := place(habit, doc, cut, d, r)
			part := slices.Clone(doc[from:])
			if r.IntN(3) == 0 {
				part = []byte("Here is the rest of the document:\n\n```json\n" + string(part) + "\n```\n")
			}
			outcome, res := goOn(d, doc, cut, part)
			count[habit][outcome]++
			count[name][outcome]++
			say := map[int]func(string, ...any){wrong: t.Errorf, refused: t.Logf}[outcome]
			if k := fmt.Sprint(habit, outcome); say != nil && shown[k] < 4 {
				shown[k]++
				say("%s, %s: %s %q after %q, part %q", name, habit, res.Join, res.Reason, tail(doc[:cut]), head(part))
			}
		}
	}
	asked, no := 0, 0
	for _, n := range names {
		if c := count[n]; n != bareNumbers {
			asked, no = asked+c[right]+c[wrong]+c[refused], no+c[refused]
		}
	}
	if no*20 > asked {
		t.Errorf("%d of %d refused outside of bare numbers, at most 5 %%", no, asked)
	}
	if c := count["declared"]; c[refused] > 0 || c[wrong] > 0 {
		t.Errorf("from the declared restart text, right, wrong and refused: %v", *c)
	}
	slices.Sort(repeated)
	t.Logf("restart text: p50 %d, p95 %d characters", repeated[len(repeated)/2], repeated[len(repeated)*95/100])
	for of, c := range count {
		t.Logf("%-20s %v", of, *c)
	}
}

// Outcomes of a part.
const right, wrong, refused = 0, 1, 2

// goOn opens the beginning of a document and adds a part: right if the text is the document then.
func goOn(d *Document, doc []byte, cut int, part []byte) (outcome int, r Result) {
	e := Open(doc[:cut:cut], d.Stored(), Options{})
	switch r = e.Add(part); {
	case r.Join == "":
		return refused, r
	case slices.Equal(unitsOf(e.Text()), unitsOf(doc)):
		return right, r
	}
	return wrong, r
}

func unitsOf(b []byte) []rune { us, _ := units(b, false); return us }
func tail(b []byte) string    { return string(b[max(0, len(b)-60):]) }
func head(b []byte) string    { return string(b[:min(60, len(b))]) }
