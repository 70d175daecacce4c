//go:build linux

package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
)

const (
	grepSize = 200 << 20
	lineSize = 100 << 20
	jqSize   = 200 << 20
	keepSize = 1 << 30
	keptSize = 150 << 20
	textSize = 500_000

	tiktokenModule = "github.com/pkoukk/tiktoken-go"

	literal   = "deadline exceeded"
	noLiteral = "[0-9]{6}[a-f]{2}[0-9]"

	built   = `reduce .[] as $x ({}; .["k\($x.id)"] = $x.v) | length`
	grouped = `group_by(.a)[] | "\(.[0].a) \(length) \(map(.v) | add)"`

	streamable   = `.[] | select(.line == 4711 and .score > 0.95) | .file`
	materialised = `group_by(.file) | map({file: .[0].file, n: length}) | sort_by(.n) | reverse | .[:3] | .[].file`
)

// rows returns all rows, in the order of the table.
func (b *bench) rows() []row {
	rows := []row{
		{family: "latency", name: "1 MB JSON added: kept, hashed, counted, exact tokens", beside: tiktokenModule,
			bar: 20, beyond: 524, unit: "ms", setup: b.adding(1 << 20)},
		{family: "latency", name: "5 MB JSON added: the same", beside: tiktokenModule,
			bar: 90, beyond: 5 * 524, unit: "ms", setup: b.adding(5 << 20)},
	}
	for class := range strings.FieldsSeq("JSON log prose code diff CJK base64 blanks") {
		rows = append(rows, row{family: "tokens", name: "counting, " + class, beside: tiktokenModule, bar: 0.04,
			setup: b.counting(class, textSize)})
	}
	rows = append(rows,
		row{family: "tokens", name: "from nothing to the first count", beside: tiktokenModule, bar: 1, unit: "ms",
			noisy: true, setup: func(context.Context) (*pair, error) { return b.jobs("init", "init-peer", "-", 0) }},
		row{family: "tokens", name: "1 MB without a break", bar: 1000, unit: "ms", setup: b.unbroken},
		row{family: "tokens", name: "estimate above 16 MB, 95 % of errors", bar: 1, unit: "%", figures: b.estimates},
	)
	for _, p := range []struct {
		name          string
		bar           float64
		pattern, flag string // flag gives rg the meaning of RE2: \w and \b match ASCII only
	}{
		{"a literal, one core", 0.9, literal, ""},
		{"a literal, two cores", 0.6, literal, ""},
		{"no match, one core", 1.6, "zzyzx never", ""},
		{"ignoring case, one core", 1.6, "Deadline Exceeded", "-i"},
		{"alternatives, one core", 1.6, "panic:|OutOfMemory|segfault|deadline exceeded", ""},
		{"literal first, one core", 1.6, "status=5[0-9]{2}", ""},
		{"literal last, one core", 1.6, "[a-zA-Z]+Error", ""},
		{"literal within, one core", 1.6, `\w+ refused \w+`, "--no-unicode"},
		{"line's begin, one core", 1.6, "^2026-11-0[1-3]T03:1", ""},
		{"line's end, one core", 1.6, "took=[0-9]{4}ms$", ""},
		{"whole word, one core", 1.6, `\btimeout\b`, "--no-unicode"},
		{"no literal, one core", 1.6, noLiteral, ""},
		{"Unicode class, one core", 1.6, `\p{Cyrillic}{3}`, ""},
		{"dense: every line, one core", 1.5, "e", ""},
		{"dense: a class in every line, one core", 1.5, "[aeiou]t", ""},
	} {
		rows = append(rows, row{family: "grep", name: "200 MB, " + p.name, beside: "rg", bar: p.bar,
			setup: b.grepping(b.log, p.pattern, p.flag, grepSize, strings.HasSuffix(p.name, "one core"))})
	}
	for _, p := range []struct{ name, pattern string }{
		{"a byte that is nowhere", `[a-z]{4}.{100}[0-9]{4}~`},
		{"a row of characters", `[a-q][^u-z]{13}~[a-z]`},
		{"digits", `[0-9]{17}`},
	} {
		rows = append(rows,
			row{family: "grep", name: "one line of 100 MB, " + p.name, beside: "rg", bar: 1.6,
				setup: b.grepping(b.longLine, p.pattern, "--no-unicode", lineSize, true)},
			row{family: "grep", name: "200 MB, dense states: " + p.name, beside: "rg", bar: 2,
				setup: b.grepping(b.log, p.pattern, "--no-unicode", grepSize, true)})
	}
	for _, pattern := range []string{`[a-q][^u-z]{13}m`, `[a-z ]{6}e.{9}[0-9]s`, `\w{4}.{12}GET`, `.{60}=[0-9]{4}ms`} {
		rows = append(rows, row{family: "grep", name: "200 MB, dense states: " + pattern, beside: "rg", bar: 2,
			setup: b.grepping(b.log, pattern, "--no-unicode", grepSize, true)})
	}
	rows = append(rows, b.listRows()...)
	return append(append(append(rows, b.fileRows()...), b.storeRows()...), b.wireRows()...)
}

// listRows are lists of words and IDs in ordinary log lines, and in texts of the beginnings of these words and IDs, in
// lines and in one line. Of a list whose words share a literal that the text does not have, only that is searched for.
func (b *bench) listRows() (rows []row) {
	for _, kind := range []string{"words", "IDs"} {
		list := listOf(kind, maxList)
		add := func(name, pattern, flag string, in textInput, size int64) {
			rows = append(rows, row{family: "grep", name: name, beside: "rg", bar: 1.5,
				setup: b.grepping(in, pattern, flag, size, true)})
		}
		for _, n := range []int{10, 50, 130, 200, 1000, maxList} {
			if b.small && n != 200 && n != maxList {
				continue // the small form has two minutes for all rows
			}
			name, pattern := fmt.Sprintf(", a list of %d %s", n, kind), strings.Join(list[:n], "|")
			if kind == "IDs" { // the words end with QQ, which the log does not have
				add("200 MB"+name, pattern, "", b.log, grepSize)
			}
			add("8 MB of beginnings"+name, pattern, "", b.beginnings(kind, "\n"), 8<<20)
			add("one line of 100 MB of beginnings"+name, pattern, "", b.beginnings(kind, " "), lineSize)
		}
		if kind == "IDs" {
			continue
		}
		all := strings.Join(list[:200], "|")
		for _, form := range []struct{ name, pattern, flag string }{
			{"ignoring case", all, "-i"},
			{"whole words", `\b(?:` + all + `)\b`, "--no-unicode"},
			{"line's begin", "^(?:" + all + ")", ""},
			{"line's end", "(?:" + all + ")$", ""},
			{"after a prefix", "cart-" + strings.Join(list[:200], "|cart-"), ""},
			{"before a suffix", strings.Join(list[:200], `\.err|`) + `\.err`, ""},
		} {
			add("100 MB of beginnings, a list of 200 words, "+form.name, form.pattern, form.flag,
				b.beginnings(kind, "\n"), lineSize)
		}
	}
	return rows
}

func (b *bench) fileRows() []row {
	const words, class = "return -EINVAL|errors.New", "[a-z]{4}[0-9]{5}"
	tree := func(name string, bar float64, s setup) row {
		return row{family: "tree", name: name, beside: "rg", bar: bar, setup: s}
	}
	rows := []row{
		tree("search, a rare literal", 1.05, b.searching(b.source, b.rareLiteral(), "matches", ".")),
		tree("search, a word in many files, counted", 1.05, b.searching(b.source, words, "counts", ".")),
		tree("search, a class without literal, counted", 1.05, b.searching(b.source, class, "counts", ".")),
		tree("listing, all names kept, as a tree", 0.6, b.listing("tree", ".")),
		tree("listing, all kept as records", 0, b.listing("list", ".")), // sizes and times, which rg does not read
		tree("listing, counted by extension", 0.6, b.listing("count", ".")),
		{family: "tree", name: "listing, differences with git", beside: "git", unit: "files", figures: b.againstGit},
	}
	rg := []string{"rg", "--no-config", "--files"}
	stats := []string{"find", ".", "-type", "f", "-printf", "%s %T@ %p\n"}
	find := func(name string, bar float64, n int, args map[string]any, peer ...string) row {
		args["type"] = "file"
		return row{family: "find", name: name, beside: peer[0], bar: bar, setup: b.finding(n, args, peer...)}
	}
	deep := strings.Repeat("d/", 500)
	rows = append(rows,
		find("200,000 files, stat", 2, 200_000, map[string]any{"show": "stat"}, wordCount...),
		find("200,000 files, records with sizes and times", 1.2, 200_000, map[string]any{}, stats...),
		find("200,000 files, counted by extension with sizes", 1.2, 200_000, map[string]any{"show": "count"}, stats...),
		find("200,000 files, names as a tree", 1.2, 200_000, map[string]any{"show": "tree"}, rg...),
		find("200,000 files, 60 patterns", 1.2, 200_000, map[string]any{"show": "tree", "glob": sixtyPatterns()}, rg...),
		find("a directory 500 deep", 1.2, 2000, map[string]any{"path": deep}, append(rg, deep)...),
	)
	for _, size := range goTrees { // GOROOT is on every machine that builds this program
		source := func() (string, error) { return filepath.Join(b.goroot, size.path), nil }
		for _, q := range []struct{ name, pattern, show string }{
			{"a rare literal", `strings\.TrimSuffix`, "matches"},
			{"a common word, counted", "return", "counts"},
			{"a class, counted", "[A-Z]{3}_[A-Z]{3}[0-9]", "counts"},
		} {
			rows = append(rows, tree("search, Go's source, "+size.name+" files, "+q.name, 1.05,
				b.searching(source, q.pattern, q.show, ".")))
		}
	}
	for _, q := range []struct {
		name, filter string
		bar          float64
	}{
		{"streamable: select by two keys", streamable, 0.35},
		{"streamable: length", "length", 0.35},
		{"not streamable: group_by", materialised, 0.7},
	} {
		rows = append(rows, row{family: "jq", name: "200 MB, " + q.name, beside: "jq", bar: q.bar,
			setup: b.querying(q.filter, jqSize)})
	}
	for _, q := range []struct {
		name, format, filter string
		bar                  float64
		records              int64
	}{
		{"50,000 records, an object built by reduce", ndjson, built, 1, 50_000},
		{"500,000 records, an object built by reduce", ndjson, built, 1, 500_000},
		{"500,000 records, an array built by reduce", ndjson, "reduce .[] as $x ([]; . + [$x.v]) | length", 1, 500_000},
		{"1,000,000 records of NDJSON, group_by", ndjson, grouped, 0.15, 1e6},
		{"1,000,000 records of NDJSON, a sum", ndjson, "map(.v) | add", 0.15, 1e6},
		{"1,000,000 records of NDJSON, the last", ndjson, ".[-1].id", 0.15, 1e6},
		{"1,000,000 records of NDJSON, the first by sort_by", ndjson, "sort_by(.v) | .[:5] | map(.id)[]", 0.15, 1e6},
		{"1,000,000 rows of a table, group_by", csvTable, grouped, 0.15, 1e6},
		{"100 MB of an array in one line, a sum", jsonArray, "[.[].v] | add", 0.15, 100_000_000 / recordSize},
	} {
		rows = append(rows, row{family: "jq", name: q.name, beside: "jq", bar: q.bar,
			setup: b.slurping(q.filter, q.format, q.records)})
	}
	rows = append(rows,
		row{family: "keep", name: "1 GB from a file", beside: "openssl", bar: 1.9, setup: b.keeping(b.log, keepSize, false)},
		row{family: "keep", name: "1 GB from a pipe", beside: "openssl", bar: 1.6, setup: b.keeping(b.log, keepSize, true)},
		row{family: "hook", name: "25 kB, from start to receipt", beside: "cat", unit: "ms", bar: 25,
			setup: b.hooking(25_000)},
		row{family: "hook", name: "30 MB, from start to receipt", beside: "cat", unit: "ms", bar: 6000,
			setup: b.hooking(30_000_000)},
		row{family: "compact", name: "a session of 200 MB, and restored", beside: "jq", bar: 6,
			setup: b.compacting(jqSize)},
		row{family: "slice", name: "50 lines deep in 1 GB", beside: "sed", bar: 0.02, setup: b.slicing(keepSize)},
		row{family: "scan", name: "Go's tree, all files", beside: "xargs", bar: 0.5, setup: b.scanning},
		row{family: "scan", name: "report without a model, beside a scan", bar: 20, setup: b.describing},
	)
	for _, k := range kept {
		rows = append(rows, row{family: "keep", name: "150 MB of " + k.name, beside: "openssl", bar: 2,
			setup: b.keeping(b.kept(k.name), keptSize, false)})
	}
	for _, q := range []struct {
		name, command string
		n             int64
		bar           float64
	}{
		{"200 MB of a repeated line", "yes | head -c %d", 200e6, 1.2},
		{"200 MB of a repeated error", "yes ERROR: connection refused by 10.0.0.1 | head -c %d", 200e6, 1.5},
		{"12 million short numbers", "seq %d", 12e6, 1.2},
		{"100 MB of a log", "cat %s", 100 << 20, 1.2},
	} {
		rows = append(rows, row{family: "run", name: q.name, beside: "openssl", bar: q.bar, setup: b.running(q.command, q.n)})
	}
	rows = append(rows, row{family: "mix", name: "p99 of a small call beside 40 searches, over HTTP", unit: "ms", bar: 300,
		noisy: true, figures: b.mixed},
		row{family: "run", name: "200 commands one after the other, over sh -c", unit: "ms", bar: 12, noisy: true,
			figures: b.echoing},
		row{family: "upstream", name: "10 MB answer, added by wrap beside the same server", unit: "ms", bar: 100,
			figures: b.wrapping})
	for _, what := range []struct{ name, argument string }{{"value", "at"}, {"record", "records"}} {
		for _, end := range []struct {
			name  string
			index int
		}{{"start", 3}, {"end", -3}} {
			rows = append(rows, row{family: "slice", beside: "jq", setup: b.pointing(jqSize, what.argument, end.index),
				name: fmt.Sprintf("a %s near the %s of 200 MB of JSON", what.name, end.name)})
		}
	}
	return rows
}

func (b *bench) wireRows() (rows []row) {
	const product, transport = "mcp-funnel", "its transport alone"
	for _, w := range []struct {
		name, unit  string
		bar, beyond float64
		ours, peer  string
		figure      int
	}{
		{"start → initialize, beside go-sdk", "ms", 10, 4, product, "go-sdk", starting},
		{"start → initialize, beside an empty mcp-go", "ms", 10, 8, product, "mcp-go", starting},
		{"start → initialize, beside node", "ms", 10, 258, product, "server-filesystem", starting},
		{"idle memory, beside go-sdk", "MB", 20, 0, product, "go-sdk", idle},
		{"tools/call p50: read 1 kB, beside go-sdk", "µs", 110, 70, product, "go-sdk", read50},
		{"tools/call p99: read 1 kB, beside go-sdk", "µs", 400, 470, product, "go-sdk", read99},
		{"tools/call p50: echo by the transport alone, beside go-sdk", "µs", 110, 70, transport, "go-sdk", echo50},
		{"tools/call p99: echo by the transport alone, beside go-sdk", "µs", 400, 470, transport, "go-sdk", echo99},
	} {
		rows = append(rows, row{family: "wire", name: w.name, bar: w.bar, beyond: w.beyond, unit: w.unit,
			noisy: w.figure == read99 || w.figure == echo99, figures: b.onWire(w.ours, w.peer, w.figure)})
	}
	return append(rows,
		row{family: "wire", name: "tools/call p50: added by wrap, beside the same server", unit: "µs", bar: 500,
			noisy: true, figures: b.addedByWrap(read50)},
		row{family: "wire", name: "tools/call p99: added by wrap, beside the same server", unit: "µs", bar: 3000,
			noisy: true, figures: b.addedByWrap(read99)},
		row{family: "wire", name: "idle memory of wrap, beside go-sdk", unit: "MB", bar: 20,
			figures: b.onWire(wrappedServer, "go-sdk", idle)})
}
