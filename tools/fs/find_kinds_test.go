package fs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/text/tokens"
	"github.com/mcp-funnel/mcp-funnel/tools"
	"github.com/mcp-funnel/mcp-funnel/tools/toolstest"
)

// TestFindKinds: a row names a file or the files of one form, its kind, its records, and a shape with examples.
func TestFindKinds(t *testing.T) {
	dir := t.TempDir()
	files := map[string]string{
		"app.log": strings.Repeat("2026-05-18T10:00:00Z INFO done path=/a took=12ms\n", 9) +
			"2026-05-18T11:30:00Z WARN slow path=/a took=900ms\n",
		"day/x1.log": "2026-05-18 10:00:00 INFO a n=1\n2026-05-18 10:00:05 INFO a n=2\n",
		"day/x2.log": "2026-05-19 08:00:00 INFO a n=1\n2026-05-19 09:00:00 INFO a n=2\n",
		"day/x3.log": "2026-05-17 09:00:00 INFO a n=1\n2026-05-17 08:00:00 INFO a n=2\n",
		"pods.yaml":  "kind: List\nitems:\n- name: web\n- name: db\n",
		"rows.csv":   "id,took\n1,123ms\n2,5ms\n",
		"wide.csv":   "\xff\xfei\x00d\x00,\x00n\x00\n\x001\x00,\x002\x00\n\x003\x00,\x004\x00\n\x00",
		"data.bin":   "\x00\x01\x02\xff\x00\x00",
		"bad.toml":   "a = \nb = 1\n",
		"sub/a.go":   "package a\n",
		"sub/b/b.go": "package b\n\nvar x = 1\n",
		"empty":      "",
		"bin/tool":   "#!/usr/bin/env python3\n",
		"bin/job":    "#!/bin/sh\n",
	}
	for i := range 412 {
		files[fmt.Sprintf("ev/2026-%03d.ndjson", i)] = fmt.Sprintf("{\"id\":%d,\"took\":\"%dms\"}\n{\"id\":0,\"took\":\"1ms\"}\n", i, i)
	}
	plant(t, dir, files)
	a := &answer{counts: map[string]float64{}, parts: map[string]*bytes.Buffer{}}
	o200k := tokens.New(tokens.O200k)
	err := Find().Run(t.Context(), tools.Input{
		Args: json.RawMessage(`{"show":"kinds"}`), Sources: toolstest.Roots(t, dir),
		NewTokenCounter: func() tools.TokenCounter { return &counted{of: o200k} },
	}, a)
	expect.Must(t, err)
	got := a.String()
	for _, want := range []string{
		`app.log: log, 491 bytes, 10 lines; 2026-05-18T10:00:00Z … 11:30:00Z; {path: "/a", took: "12ms", took_ms: 12}`,
		`day/x*.log: 3 files, log, 186 bytes, 6 lines; 2026-05-17 08:00:00 … 2026-05-19 09:00:00; {n: 1}`,
		`pods.yaml: yaml, 41 bytes, 1 record; {kind: "List", items: [] {name: "web"}}`,
		`rows.csv: table, 22 bytes, 2 records; {id: 1, took: "123ms"}`,
		`wide.csv: table, 28 bytes, 2 records; utf-16le; {id: 1, n: 2}`,
		`data.bin: binary, 6 bytes; application/octet-stream`,
		`bad.toml: toml, 11 bytes, 0 records; it is not valid TOML: line 1, column 5`,
		`ev/2026-*.ndjson: 412 files, ndjson, 19.1 KiB, 824 records; {id: 0, took: "0ms"}`,
		`sub/**/*.go: 2 files, Go, 31 bytes, 4 lines`,
		`empty: text, 0 bytes`,
		`bin/tool: Python, 23 bytes, 1 line`,
		`bin/job: Shell, 10 bytes, 1 line`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no row %s in\n%s", want, got)
		}
	}
	for line := range strings.Lines(got) {
		if n := o200k.Count(line); n > kindTokens {
			t.Errorf("%d tokens: %s", n, line)
		}
	}
	if want := "12 forms of 426 files"; !strings.Contains(strings.Join(a.notes, "; "), want) {
		t.Errorf("notes %q, want %q", a.notes, want)
	}
}

// counted counts the tokens of what is written to it.
type counted struct {
	bytes.Buffer
	of *tokens.Counter
}

func (c *counted) Total() (int64, float64) { return int64(c.of.Count(c.String())), 0 }
