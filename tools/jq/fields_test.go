package jq

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// An answer says that most records lack a field only if the filter reads the field.
func TestFieldsThatMostRecordsLack(t *testing.T) {
	var log, long strings.Builder
	for i := range 400 {
		switch {
		case i < 82:
			fmt.Fprintf(&log, "2026-05-18T10:00:00Z INFO request %d\n", i)
		default:
			fmt.Fprintf(&log, "2026-05-18T10:00:00Z request %d\n", i)
		}
		fmt.Fprintf(&long, "2026-05-18T10:00:00Z request %d %s\n", i, strings.Repeat("x", 500))
	}
	for _, way := range ways {
		for _, c := range []struct{ text, filter, want string }{
			{log.String(), `select(.level=="error")`, "318 of 400 records have no level"},
			{log.String(), `map(select(.level=="error"))|length`, "318 of 400 records have no level"},
			{log.String(), `[.time,{level}]`, "318 of 400 records have no level"},
			{log.String(), `. as {level: $l} | $l`, "318 of 400 records have no level"},
			{log.String(), `select(has("level"))|empty`, "318 of 400 records have no level"},
			{log.String(), `select(.time > "2027")`, ""},
			{log.String(), `{level: .text}|empty`, ""},
			{log.String(), `select(.text == "level")`, ""},
			{long.String(), `select(.level=="error")`, "400 of 400 records have no level"},
			{"words\nwords\n", `select(.time > "2026")`, "2 of 2 records have no time"},
		} {
			r, err := run(t, way.tool, c.text, m{"filter": c.filter, "slurp": strings.HasPrefix(c.filter, "map(")})
			said := slices.ContainsFunc(r.notes, func(n string) bool { return strings.HasSuffix(n, c.want) })
			any := slices.ContainsFunc(r.notes, func(n string) bool { return strings.Contains(n, " no ") && n != "no results" })
			if err != nil || c.want != "" && !said || c.want == "" && any {
				t.Errorf("%s, %s: %v %q, want %q", way.name, c.filter, err, r.notes, c.want)
			}
		}
	}
}
