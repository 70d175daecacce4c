package jq

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// keysOf are the paths a node reads.
func keysOf(n *node) (all []string) {
	if n == nil {
		return []string{"."}
	}
	for k, child := range n.keys {
		for _, below := range keysOf(child) {
			all = append(all, strings.TrimSuffix(k+"/"+below, "/."))
		}
	}
	slices.Sort(all)
	return all
}

func TestSieveOf(t *testing.T) {
	for _, c := range []struct{ filter, reads string }{
		{"select(.a == 1)", "a"}, {"select(.a == 1 and .b.c > 2) | .d", "a b/c"}, {".a | select(.n) | .b", "a/n"}, {". | select(.a) | select(.b)", "a"},
		{"select(.a) | error", "a"}, {"select(.a) | .[]", "a"}, {"select(.a | not) | {b}", "a"},
		{"select(.a) | .a", ""}, {"select(. == 1)", ""}, {".a", ""}, {"select(.a[])", ""}, {"map(.a) | select(.b)", ""}, {"select(.a), .b", ""},
		{"def f: 1; select(.a) | .b", ""}, {"def select(f): 1; select(.a) | .b", ""}, {".a as $x | select(.b)", ""}, {"select(.a, .b)", ""},
	} {
		p, err := parse(c.filter, nil, "")
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if s := sieveOf(p.query, readsOf(p.query, false)); s != nil {
			got = strings.Join(keysOf(s.node), " ")
		}
		if got != c.reads {
			t.Errorf("%s: looks at %q, want %q", c.filter, got, c.reads)
		}
	}
}

// Whether few or most pass, and through whatever window, a sieve changes nothing; what is dropped is counted among the records.
func TestSievedIsWhole(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, array := range []bool{true, false} {
		for _, most := range []int{2, 9, 1000} {
			var b strings.Builder
			for i := range 3000 {
				value := fmt.Sprintf(`{"id":%d,"n":%d,"sub":{"a":[1,{"n":%d}],"b":"x"},"s":"\u00e9 %d"}`, i, r.IntN(most), i%7, i)
				switch r.IntN(200) {
				case 0:
					value = `{"n":0,"id":1,"n":1}`
				case 1:
					value = `{"n":0,"id":1,"id":2}`
				case 2:
					value = fmt.Sprintf("{\"id\":1,\"n\":%d,\"s\":\"\xff\"}", r.IntN(2))
				case 3:
					value = "null"
				}
				if array && i > 0 {
					b.WriteByte(',')
				}
				b.WriteString(value + "\n")
			}
			text := b.String()
			filters := []string{"select(.n? == 1) | .id", "select(.n == 1) | .id", "select(.n == 1)", "select(type == \"object\") | select(.n > 0) | .sub.a[1]", "select(.sub.b == \"x\" and .n < 2) | [.id, .sub]"}
			if array {
				text = "[" + text + "]"
				for i, f := range filters {
					filters[i] = []string{".[] | " + f, "map(" + f + ") | length", "[.[] | " + f + "]"}[r.IntN(3)]
				}
			}
			for _, filter := range append(filters, "empty") {
				want := wholly(t, job{Filter: filter}, []byte(text))
				for _, window := range []int{0, 500} {
					if diff := differs(filter, asEver(t, job{Filter: filter}, []byte(text), window, false), want); diff != "" {
						t.Errorf("%s, window %d, array %t:\n%.600s", filter, window, array, diff)
					}
				}
			}
		}
	}
}

// The control: a sieve that drops what it should not is seen.
func TestWrongSieveIsSeen(t *testing.T) {
	text := []byte("[" + strings.Repeat(`{"a":1,"n":4},`, 100) + `{"a":2,"n":5}]`)
	j := job{Filter: ".[] | select(.n > 4) | .a", window: 64}
	if !spoiled(t, j, text, func(e *engine) { e.eachSieve.test = func(any) (any, answer) { return nil, noResult } }) {
		t.Error("not seen")
	}
}
