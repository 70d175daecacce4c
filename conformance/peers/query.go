//go:build linux

package main

import (
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

const (
	grepSize = 200 << 20
	jqSize   = 200 << 20

	streamable   = `.[] | select(.line == 4711 and .score > 0.95) | .file`
	materialised = `group_by(.file) | map({file: .[0].file, n: length}) | sort_by(.n) | reverse | .[:3] | .[].file`
)

// looked is a pattern with the rg flags that give it the same meaning as in RE2.
type looked struct {
	name, pattern string
	flags         []string // for rg; -i also sets our ignore_case
}

// ascii makes rg read \w and \b as ASCII, like RE2.
var ascii = []string{"--no-unicode"}

var (
	literal   = looked{name: "literal", pattern: "deadline exceeded"}
	noLiteral = looked{name: "no literal", pattern: "[0-9]{6}[a-f]{2}[0-9]"}
	everyLine = looked{name: "every line", pattern: "e"}
)

func grepRows(b *bench) []row {
	rows := []row{
		{family: "grep", name: "200 MB, a literal, one core", beside: "rg", bar: 0.9, setup: b.grepping(literal, grepSize, true)},
		{family: "grep", name: "200 MB, a literal, two cores", beside: "rg", bar: 0.6, setup: b.grepping(
			literal, grepSize, false,
		)},
	}
	for _, c := range []looked{ // kinds of patterns for which matchers have special cases
		{name: "no match", pattern: "zzyzx never"},
		{name: "ignoring case", pattern: "Deadline Exceeded", flags: []string{"-i"}},
		{name: "alternatives", pattern: "panic:|OutOfMemory|segfault|deadline exceeded"},
		{name: "literal first", pattern: "status=5[0-9]{2}"},
		{name: "literal last", pattern: "[a-zA-Z]+Error"},
		{name: "literal within", pattern: `\w+ refused \w+`, flags: ascii},
		{name: "line's begin", pattern: "^2026-11-0[1-3]T03:1"},
		{name: "line's end", pattern: "took=[0-9]{4}ms$"},
		{name: "whole word", pattern: `\btimeout\b`, flags: ascii},
		noLiteral,
		{name: "Unicode class", pattern: `\p{Cyrillic}{3}`},
	} {
		rows = append(
			rows,
			row{
				family: "grep", name: "200 MB, " + c.name + ", one core", beside: "rg", bar: 1.6,
				setup: b.grepping(c, grepSize, true),
			},
		)
	}
	for _, c := range []looked{everyLine, {name: "a class in every line", pattern: "[aeiou]t"}} {
		rows = append(
			rows,
			row{
				family: "grep", name: "200 MB, dense: " + c.name + ", one core", beside: "rg", bar: 1.5,
				setup: b.grepping(c, grepSize, true),
			},
		)
	}
	return rows
}

// grepping counts the matching lines, so both programs scan the whole file.
func (b *bench) grepping(c looked, size int64, pinned bool) setup {
	return func(context.Context) (*duel, error) {
		path, err := b.log(b.scaled(size))
		if err != nil {
			return nil, err
		}
		args := map[string]any{
			"source": filepath.Base(path), "pattern": c.pattern, "show": "count",
			"ignore_case": len(c.flags) > 0 && c.flags[0] == "-i",
		}
		peer := append(append([]string{"rg", "-j1", "--no-config", "--count"}, c.flags...), "-e", c.pattern, path)
		dir := filepath.Dir(path)
		d := b.toolDuel(b.funnel(dir), dir, "grep", args, peer)
		d.ours.(*command).pinned, d.peer.(*command).pinned, d.served.(*served).pinned = pinned, pinned, pinned
		d.same, d.work = sameCount, float64(b.scaled(size))/(1<<20)
		return d, nil
	}
}

var firstNumber = regexp.MustCompile(`\d+`)

// sameCount compares the first number of each output; a count of 0 is an error.
func sameCount(ours, peer string) error {
	a, _ := strconv.Atoi(firstNumber.FindString(ours))
	c, _ := strconv.Atoi(firstNumber.FindString(peer))
	if strings.HasPrefix(ours, "no match") {
		a = 0
	}
	if a != c {
		return fmt.Errorf("%d and %d: %.200q, %.200q", a, c, ours, peer)
	}
	return nil
}

func jqRows(b *bench) []row {
	return []row{
		{family: "jq", name: "200 MB, streamable: select by two keys", beside: "jq", bar: 0.35, setup: b.querying(streamable, jqSize)},
		{family: "jq", name: "200 MB, streamable: length", beside: "jq", bar: 0.35, setup: b.querying(`length`, jqSize)},
		{family: "jq", name: "200 MB, not streamable: group_by", beside: "jq", bar: 0.7, setup: b.querying(materialised, jqSize)},
	}
}

// querying runs a filter with so few results that both programs print all of them.
func (b *bench) querying(filter string, size int64) setup {
	return func(context.Context) (*duel, error) {
		size := b.scaled(size)
		if b.small {
			size /= 2 // jq takes half a second for 10 MB
		}
		path, err := b.hits(size)
		if err != nil {
			return nil, err
		}
		dir := filepath.Dir(path)
		d := b.toolDuel(
			b.funnel(dir, "--jq-memory", "2GiB"), dir, "jq",
			map[string]any{"source": filepath.Base(path), "filter": filter, "raw": true}, []string{"jq", "-r", filter, path},
		)
		d.served, d.work = nil, float64(size)/(1<<20)
		d.same = func(ours, peer string) error {
			// Our output may start with a line that says how many results there are.
			if !strings.HasSuffix(strings.TrimSpace(ours), strings.TrimSpace(peer)) {
				return fmt.Errorf("%.300q, %.300q", ours, peer)
			}
			return nil
		}
		return d, nil
	}
}
