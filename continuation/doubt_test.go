package continuation

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

// TestDoubtfulJoins joins the parts in testdata/join: the text is the one that was meant, or the part is refused.
func TestDoubtfulJoins(t *testing.T) {
	for name, joined := range map[string]bool{
		"olc-b1": false, "tw-grid": false, "tw-b": false, "per": false, "ws": true,
	} {
		read := func(file string) []byte {
			b, err := os.ReadFile(filepath.Join("testdata", "join", name, file))
			expect.Must(t, err)
			return b
		}
		d := New(Options{})
		d.Add(read("0.txt"))
		restart, _ := units([]byte(d.Restart()), false)
		if !d.occursOnce(restart) {
			t.Errorf("%s: the restart text %s does not occur once", name, d.Restart())
		}
		r := d.Add(read("1.txt"))
		if (r.Join != "") != joined || joined && !slices.Equal(unitsOf(d.Text()), unitsOf(read("meant.txt"))) {
			t.Errorf("%s: %+v %s", name, r, d.Text())
		}
	}
}

// twins returns documents in which elements are equal or nearly so.
func twins(r *rand.Rand) map[string][]byte {
	docs := map[string][]byte{}
	add := func(name string, v any) {
		b, _ := json.Marshal(v)
		docs[name] = b
		b, _ = json.MarshalIndent(v, "", " ")
		docs[name+", indented"] = b
	}
	list := func(n int, one func(i int) any) (all []any) {
		for i := range n {
			all = append(all, one(i))
		}
		return all
	}
	pick := func(some ...any) any { return some[r.IntN(len(some))] }
	add("grid", map[string]any{"grid": list(12, func(int) any {
		return list(7, func(int) any { return pick(0, 0, 0, 0, 0, 0, 0, 1, 2) })
	})})
	add("stock", list(14, func(int) any {
		return map[string]any{"sku": pick("A-100", "A-101"), "qty": pick(1, 1, 1, 2), "note": "as above"}
	}))
	add("turns", map[string]any{"turns": list(16, func(int) any {
		return pick([]any{"left", "10 m"}, []any{"right", "20 m"}, []any{"left", "10 m"}, []any{"stop", "0 m"})
	})})
	add("lines", map[string]any{"lines": list(20, func(int) any {
		return pick("", "    return nil", "}", "", "if err != nil {", "some words of it")
	})})
	add("postings", map[string]any{"postings": list(12, func(i int) any {
		date := fmt.Sprintf("20%02d-%02d-12", i+20, r.IntN(12))
		return []any{date, prose(r, 5), float64(r.IntN(99999)) / 100, pick(true, false)}
	})})
	add("items", map[string]any{"items": list(12, func(int) any { return map[string]any{"text": prose(r, 8)} })})
	add("records", list(12, func(i int) any {
		return map[string]any{"kind": "row", "name": "item", "note": "same text in every record", "n": i}
	}))
	add("sections", sectionDocument(r, 9))
	return docs
}

// placesBefore returns where a writer may begin again: at values and names of the last few elements, and in words.
func placesBefore(doc []byte, cut int) (places []int) {
	for at := cut; at > 0 && at > cut-200; at-- {
		if b := doc[at-1]; b == ' ' || b == ',' || b == '[' || b == '{' || b == ':' || at == cut {
			places = append(places, at)
		}
	}
	return append(places, 0)
}

// changed returns a part with another word in its first n bytes; false if there is none to change.
func changed(part []byte, n int, r *rand.Rand) ([]byte, bool) {
	var at []int
	for i := surely + 4; i < n-4; i++ {
		if isLower(part[i-1 : i+4]) {
			at = append(at, i)
		}
	}
	if len(at) == 0 {
		return nil, false
	}
	i := at[r.IntN(len(at))]
	return slices.Concat(part[:i], []byte("zyx"), part[i+3:]), true
}

func isLower(b []byte) bool {
	return !bytes.ContainsFunc(b, func(r rune) bool { return r < 'a' || r > 'z' })
}

// TestDoubt goes on from many places, word for word, and with one word changed as writers of several habits do: no
// element is lost or doubled. Of a change in the first words nobody can say that it is none.
func TestDoubt(t *testing.T) {
	count := map[string]*[2][3]int{} // outcomes of parts that are word for word, and of changed ones
	r := rand.New(rand.NewPCG(17, 7))
	rounds, _ := strconv.Atoi(os.Getenv("CONTINUATIONS"))
	for range max(1, rounds/500) {
		docs := twins(r)
		for _, name := range slices.Sorted(maps.Keys(docs)) {
			doc := docs[name]
			c := count[name]
			if c == nil {
				c = new([2][3]int)
				count[name] = c
			}
			shown := 0
			try := func(cut int, d *Document, part []byte, of int) {
				outcome, res := goOn(d, doc, cut, part)
				if c[of][outcome]++; outcome == wrong && shown < 5 {
					shown++
					t.Errorf("%s: %s after %q, part %q", name, res.Join, tail(doc[:cut]), part[:min(len(part), 200)])
				}
			}
			for cut := len(doc) / 3; cut < len(doc)-1; cut += 1 + r.IntN(150) {
				d := New(Options{})
				d.Add(doc[:cut])
				for _, from := range placesBefore(doc, cut) {
					part := doc[from:] // one that begins with the restart text goes on from there
					begins := from != int(d.anchor.at) && d.repeats(d.anchor.at, d.anchor.inside, part)
					if r.IntN(4) == 0 && !begins {
						try(cut, d, part, 0)
					}
				}
				for _, habit := range habits {
					from := place(habit, doc, cut, d, r)
					if other, ok := changed(doc[from:], cut-from, r); ok {
						try(cut, d, other, 1)
					}
				}
			}
		}
	}
	for name, c := range count {
		t.Logf("%-20s %v", name, *c)
	}
}

// TestWordChanged replaces a word of what a part repeats by another one that the document may have, at any place: the
// part is refused, or what was there stays. Of two words in a string nobody can say which of them is another.
func TestWordChanged(t *testing.T) {
	nouns := strings.Fields("pilot cargo barge customs crane berth harbor ledger captain tug anchor rope")
	r := rand.New(rand.NewPCG(99, 1))
	noun := func() string { return nouns[r.IntN(len(nouns))] }
	sentence := func() string {
		verbs := []string{"signs", "checks", "weighs", "moves", "loads", "pays"}
		return fmt.Sprintf("Our %s %s %d %s.", noun(), verbs[r.IntN(len(verbs))], r.IntN(300), noun())
	}
	tried, few := 0, 0
	for round := range 12 {
		var list []any
		for i := range 3 + r.IntN(9) {
			list = append(list, []any{
				[]any{fmt.Sprintf("20%02d-0%d-12", 20+r.IntN(30), 1+r.IntN(9)), sentence(), float64(r.IntN(90000)) / 100},
				map[string]any{"text": sentence()}, sentence(),
				map[string]any{"id": i, "name": noun(), "note": sentence() + " " + sentence()},
			}[round%4])
		}
		doc, _ := json.Marshal(map[string]any{"entries": list})
		for cut := 30; cut < len(doc)-1; cut += 1 + r.IntN(9) {
			d := New(Options{})
			d.Add(doc[:cut])
			for _, habit := range habits {
				from := place(habit, doc, cut, d, r)
				words := slices.DeleteFunc(wordPlaces.FindAllIndex(doc[from:], -1), func(w []int) bool {
					return from+w[1] >= cut
				})
				if len(words) == 0 {
					continue
				}
				w, other := words[r.IntN(len(words))], noun()
				if old := string(doc[from+w[0] : from+w[1]]); old == other {
					continue
				}
				outcome, res := goOn(d, doc, cut, slices.Concat(doc[from:from+w[0]], []byte(other), doc[from+w[1]:]))
				tried++
				switch {
				case outcome != wrong:
				case habit == "words":
					few++
				default:
					t.Errorf("%s, %q at %d: %s after %q, part %q", habit, other, w[0], res.Join, tail(doc[:cut]), head(doc[from:]))
				}
			}
		}
	}
	if t.Logf("%d parts, %d of few words", tried, few); few*200 > tried {
		t.Errorf("%d of %d parts that repeat few words were joined wrong", few, tried)
	}
}

var wordPlaces = regexp.MustCompile(`\b[A-Za-z]{3,}\b`)
