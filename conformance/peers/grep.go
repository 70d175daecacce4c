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

const grepSize = 200 << 20

// looked is a pattern that means the same to RE2 and to rg with these flags.
type looked struct {
	name, pattern string
	fold          bool
	flags         []string // of rg
}

// ascii has rg read \w and \b as RE2 does.
var ascii = []string{"--no-unicode"}

// classes are the kinds of patterns that matchers treat in ways of their own.
var classes = []looked{
	{name: "no match", pattern: "zzyzx never"},
	{name: "ignoring case", pattern: "Deadline Exceeded", fold: true},
	{name: "alternatives", pattern: "panic:|OutOfMemory|segfault|deadline exceeded"},
	{name: "literal first", pattern: "status=5[0-9]{2}"},
	{name: "literal last", pattern: "[a-zA-Z]+Error"},
	{name: "literal within", pattern: `\w+ refused \w+`, flags: ascii},
	{name: "line's begin", pattern: "^2026-11-0[1-3]T03:1"},
	{name: "line's end", pattern: "took=[0-9]{4}ms$"},
	{name: "whole word", pattern: `\btimeout\b`, flags: ascii},
	noLiteral,
	{name: "Unicode class", pattern: `\p{Cyrillic}{3}`},
}

var (
	literal   = looked{name: "literal", pattern: "deadline exceeded"}
	noLiteral = looked{name: "no literal", pattern: "[0-9]{6}[a-f]{2}[0-9]"}
	everyLine = looked{name: "every line", pattern: "e"}
)

func grepRows(b *bench) []row {
	rows := []row{
		{family: "grep", name: "200 MB, a literal, one core", beside: "rg", bar: 0.9, setup: b.grepping(literal, grepSize, true)},
		{family: "grep", name: "200 MB, a literal, two cores", beside: "rg", bar: 0.6, setup: b.grepping(literal, grepSize, false)},
	}
	for _, c := range classes {
		rows = append(rows, row{family: "grep", name: "200 MB, " + c.name + ", one core", beside: "rg", bar: 1.6, setup: b.grepping(c, grepSize, true)})
	}
	for _, c := range []looked{everyLine, {name: "a class in every line", pattern: "[aeiou]t"}} {
		rows = append(rows, row{family: "grep", name: "200 MB, dense: " + c.name + ", one core", beside: "rg", bar: 1.5, setup: b.grepping(c, grepSize, true)})
	}
	return rows
}

// grepping counts the lines that match: the whole file is scanned by both.
func (b *bench) grepping(c looked, size int64, pinned bool) func(context.Context) (*duel, error) {
	return func(context.Context) (*duel, error) {
		path, err := b.log(b.scaled(size))
		if err != nil {
			return nil, err
		}
		args := map[string]any{"source": filepath.Base(path), "pattern": c.pattern, "show": "count", "ignore_case": c.fold}
		peer := append([]string{"rg", "-j1", "--no-config", "--count"}, c.flags...)
		if c.fold {
			peer = append(peer, "-i")
		}
		base := b.funnel(filepath.Dir(path))
		return &duel{
			ours:   &command{b: b, words: append(base, called("grep", args)...), pinned: pinned},
			served: &served{words: base, tool: "grep", args: args, pinned: pinned},
			peer:   &command{b: b, words: append(peer, "-e", c.pattern, path), pinned: pinned},
			same:   sameCount, work: float64(b.scaled(size)) / (1 << 20),
		}, nil
	}
}

var firstNumber = regexp.MustCompile(`\d+`)

// sameCount compares the first numbers; none is 0.
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
