package jq

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestASelectionWithoutResultsExplainsItself compares what is said of a filter that finds nothing.
func TestASelectionWithoutResultsExplainsItself(t *testing.T) {
	var b strings.Builder
	b.WriteString("[")
	for i := range 400 {
		status, reason := "ok", "x"
		if i < 23 {
			status = "failed"
		}
		if i%2 > 0 {
			reason = "declined"
		}
		fmt.Fprintf(&b, `%s{"status":%q,"reason":%q,"code":"%d","user":{"name":"u%d"},"tags":[{"k":1}],"odd \"name":1}`,
			map[bool]string{true: "", false: ","}[i == 0], status, reason, 400+i%5, i)
		b.WriteString("\n")
	}
	array := b.String() + "]"
	ndjson := strings.ReplaceAll(strings.Trim(b.String(), "[\n"), "\n,", "\n") + "\n"
	for _, way := range ways {
		for _, c := range []struct{ text, filter, want string }{
			{ndjson, `select(.status=="failed" and .reasn=="declared")`,
				`.status == "failed": 23 of 400 → .reasn == "declared": 0; no record has reasn; near: reason`},
			{ndjson, `select(.status=="failed") | select(.code == 401) | .user`,
				`.status == "failed": 23 of 400 → .code == 401: 0; code is string in 400`},
			{ndjson, `select((.status=="failed" and .code=="401") and (.x or .y))`,
				`.status == "failed": 23 of 400 → .code == "401": 5 → .x or .y: 0; no record has x; they have ` +
					`code, odd "name, reason, status, tags, user; no record has y; they have ` +
					`code, odd "name, reason, status, tags, user`},
			{ndjson, `select(.user.nam=="u1")`, `.user.nam == "u1": 0 of 400; no record has user.nam; near: name`},
			{ndjson, `select(has("stat"))`, `has("stat"): 0 of 400; no record has stat; near: status`},
			{ndjson, `select(.["odd \"nam"])`, `.["odd \"nam"]: 0 of 400; no record has odd "nam; near: odd "name`},
			{ndjson, `select(.status=="ok") | .user.none | select(. != null)`,
				`.status == "ok": 377 of 400; what follows in the filter gives nothing for these`},
			{ndjson, `.tags[] | select(.k == 2)`, `.k == 2: 0 of 400; k is number in 400`},
			{ndjson, `select(any(.tags[]; .v == 1))`, `any(.tags[]; .v == 1): 0 of 400`},
			{ndjson, `select(.code == $c)`, `.code == $c: 0 of 400; code is string in 400`},
			{array, `.[] | select(.code==401)`, `.code == 401: 0 of 400; code is string in 400`},
			{array, `map(select(.code==401))`, `.code == 401: 0 of 400; code is string in 400`},
			{array, `[.[] | select(.code==401)] | length`, `.code == 401: 0 of 400; code is string in 400`},
			{"a;b\n1;x\n2;\n", `select(.a > 5)`, `.a > 5: 0 of 2; a is number in 2`},
			{ndjson, `select(.status=="ok") | .user.name`, ""},
			{ndjson, `empty`, ""},
			{array, `length | select(. > 400)`, ". > 400: 0 of 1"},
			{array, `. as $all | .[] | select(.code == 401)`, ""},
			{array, `map(.code) | length | select(. > 400)`, ". > 400: 0 of 1"},
		} {
			r, err := run(t, way.tool, c.text, m{"filter": c.filter, "args": map[string]any{"c": 401}})
			said := slices.DeleteFunc(r.notes, func(n string) bool { return n == "no results" })
			if err != nil || strings.Join(said, "|") != c.want {
				t.Errorf("%s, %s: %v\n%q, want\n%q", way.name, c.filter, err, said, c.want)
			}
		}
		r, err := run(t, way.tool, ndjson, m{"filter": "map(select(.reasn)) | length", "slurp": true})
		const want = ".reasn: 0 of 400; no record has reasn; near: reason"
		if err != nil || joined(r.rows) != "0" || !slices.Contains(r.notes, want) {
			t.Errorf("%s, slurp: %v, %v %q", way.name, err, r.rows, r.notes)
		}
	}
	long := strings.Repeat(`{"a":"`+strings.Repeat("x", 1<<20)+`"}`+"\n", 65)
	if r, err := run(t, ways[0].tool, long, m{"filter": "select(.b)"}); err != nil || len(r.notes) != 1 {
		t.Errorf("over 64 MB: %v %q", err, r.notes)
	}
}
