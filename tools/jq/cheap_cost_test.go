package jq

import (
	"context"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/conformance/promise"
)

// What a filter that runs in this process may take, on any text that is small enough for it.
const (
	cheapMemory = 64 << 20         // bytes of heap over what was there: 30 × maxWeight
	cheapTime   = 10 * time.Second // on a busy machine; on an idle one they all end within a second
)

// adversaries are filters that take much of little, as far as the rule lets them: %d is made as large as it allows.
var adversaries = []string{
	".", "..", ".[]", "[.[]]", "[.[] | [.]]", "[.[] | {a: ., b: .}]", "[.[] | tostring]", "[.[] | tojson | tojson | tojson]", "tojson | tojson | tojson | tojson", "[.[] | @json] | @json", "tojson | explode", "tojson | explode | implode", "tojson | explode | map(tostring)",
	"to_entries | to_entries", "[.[] | to_entries?]", "with_entries(.value |= [.])", "[.[] | with_entries(.key |= .)?]", "map([., ., ., .])", "map([., .]) | map([., .])", "map(. as $x | [$x, $x])", "[range(%d)]", "[range(%d) | [.]]", "[range(%d) | {a: .}]", "[range(%d) | tostring]", "[.[] | range(%d)]", "[limit(%d; .[])]",
	"sort", "sort_by(.)", "sort_by(tojson)", "group_by(.)", "group_by(tojson) | map(length)", "unique", "unique_by(tojson)", "min_by(tojson)", "reverse | sort", "[.[] | tojson] | sort", "map(tojson) | unique", "tojson | split(\"\")", "tojson | split(\",\") | sort", "tojson | split(\"\") | join(\"--\")", "tojson | [splits(\",\")]", "tojson | indices(\"1\")", "tojson | indices(\"\")", "[.[] | tojson] | join(\",\")",
	"tojson | test(\"a\")", "map(tojson | test(\"(a|b)*c\"))", "tojson | test(\"(.*)(.*)(.*)z\")", "tojson | test(\"[^,]*,[^,]*z\"; \"g\")", "map(contains([1]))?", ". as $x | map(contains($x))?", "contains(.)", "inside(.)", "tojson | contains(\"1,1\")", "IN(.[])", "map(IN(1, 2, 3))", ". - .", ". + . + . + .", "[.[] + 1]?", "map(. == 1)", ". == .", "[. == (.[] | .)]",
	"flatten", "flatten | sort", "map(flatten?)", "add", "[.[] | add?]", "tojson + tojson", "tojson * 3", "3 * tojson", "tojson / \",\"", "@csv?", "map(@csv?)", "@base64 | @base64 | @base64", "@uri | @uri", "tojson | @uri | @uri", "@html | @html", "tojson | ascii_upcase | ascii_downcase | ltrimstr(\"[\")", "[.[] | todate?]", "map(fromjson?)", "tojson | fromjson | tojson | fromjson", "del(.[])", "del(.[0], .[1])", ".[] |= [.]", ".[] += 1", ".[] |= tojson", "map_values([.])", "map_values(tojson)", "[.[]? | .[]? | .[]?]", "first(.[]), last(.[])", "any(.[]; . == 0), all(.[]; . == 1)", "if . == . then . else . end", "\"\\(.)\\(.)\\(.)\"", "[\"\\(.[])\"]", "map(\"\\(.) \\(.)\")", "from_entries?", "[.[] | {key: tojson, value: .}] | from_entries", "keys", "map(keys?)", "tojson | utf8bytelength", "[.[:100][] | .]", ".[:1000] | map(.[:1000]?)",
}

// small texts that are dear in their own ways.
func dearTexts() map[string]string {
	fill := func(begin, piece, end string) string {
		return begin + strings.Repeat(piece, (smallText-len(begin)-len(end))/len(piece)) + end
	}
	var keys strings.Builder
	for i := 0; keys.Len() < smallText-40; i++ {
		fmt.Fprintf(&keys, "\"%d\":%d,", i, i%7)
	}
	return map[string]string{
		"numbers": fill("[0", ",1", "]"), "empty arrays": fill("[0", ",[]", "]"), "pairs": fill("[0", ",[1,2]", "]"), "objects": fill("[0", `,{"a":1}`, "]"), "one string": fill(`"`, "a,", `"`), "quotes": fill(`"`, `\"`, `"`), "control characters": fill(`"`, `\u0001`, `"`),
		"strings": fill(`["x"`, `,"a"`, "]"), "keys": "{" + keys.String() + `"z":0}`, "values": fill("0", " 1", ""), "deep": strings.Repeat("[", 5000) + strings.Repeat("]", 5000), "wide characters": fill(`["x"`, `,"日本"`, "]"), "digits": fill("[0", ",123456789012345678901234567890", "]"),
	}
}

// cost runs a filter in this process, cheap or not, and says what it took.
func cost(t *testing.T, p *program, text string) (heap uint64, took time.Duration) {
	t.Helper()
	code, err := p.compile(p.query)
	if err != nil {
		return 0, 0
	}
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	before := m.HeapAlloc
	ctx, cancel := context.WithTimeout(t.Context(), 2*cheapTime)
	defer cancel()
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			runtime.ReadMemStats(&m)
			heap = max(heap, m.HeapAlloc-min(m.HeapAlloc, before))
			select {
			case <-stop:
				return
			case <-time.After(2 * time.Millisecond):
			}
		}
	}()
	begun := time.Now()
	d := newDecoder(strings.NewReader(text))
	for {
		v, err := d.next(nil)
		if err != nil {
			break
		}
		results := code.RunWithContext(ctx, v, p.values...)
		for {
			v, ok := results.Next()
			if _, failed := v.(error); !ok || failed {
				break
			}
		}
	}
	took = time.Since(begun)
	close(stop)
	<-done
	return heap, took
}

// No filter that is taken for cheap is dear on any small text, however both were chosen.
func TestCheapIsCheap(t *testing.T) {
	promise.OrdinaryRun(t)
	tried, taken := 0, 0
	var most uint64
	var longest time.Duration
	n := 0
	every := promise.Size(5, 1)
	texts := dearTexts()
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		text := texts[name]
		if len(text) > smallText {
			t.Fatalf("%s: %d bytes", name, len(text))
		}
		for _, filter := range adversaries {
			if n++; n%every != 0 {
				continue
			}
			for _, size := range []int{10_000, 1000, 100, 1} { // the largest that is taken
				filled := strings.ReplaceAll(filter, "%d", fmt.Sprint(size))
				p, err := parse(filled, nil, "in")
				if err != nil {
					t.Fatalf("%s: %v", filled, err)
				}
				tried++
				if ok, _ := p.cheap([]byte(text), job{}); !ok {
					if filled == filter {
						break
					}
					continue
				}
				taken++
				heap, took := cost(t, p, text)
				most, longest = max(most, heap), max(longest, took)
				if heap > cheapMemory || took > cheapTime {
					t.Errorf("%s on %s is taken for cheap, and took %d MiB and %s", filled, name, heap>>20, took)
				}
				break
			}
		}
	}
	t.Logf("%d of %d taken for cheap; the dearest took %d MiB, the longest %s", taken, tried, most>>20, longest.Round(time.Millisecond))
	if taken == 0 {
		t.Error("none was taken for cheap: nothing was tried")
	}

	// The control: a filter that the rule refuses does take more.
	p, err := parse("[range(8000000)] | length", nil, "in")
	if err != nil {
		t.Fatal(err)
	}
	if ok, _ := p.cheap([]byte("null"), job{}); ok {
		t.Error("a range of eight millions is taken for cheap")
	}
	if heap, _ := cost(t, p, "null"); heap <= cheapMemory {
		t.Errorf("the control took only %d MiB: nothing is measured", heap>>20)
	}
}
