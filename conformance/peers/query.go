//go:build linux

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// grepping counts the matching lines, so both programs scan the whole file. flag is an additional flag for rg; -i also
// sets our ignore_case.
func (b *bench) grepping(in textInput, pattern, flag string, size int64, oneCore bool) setup {
	return on(in, size, func(path string, megabytes float64) (*pair, error) {
		args := map[string]any{
			"source": filepath.Base(path), "pattern": pattern, "show": "count", "ignore_case": flag == "-i",
		}
		peer := []string{"rg", "-j1", "--no-config", "--count", "-e", pattern, path}
		if flag != "" {
			peer = append(peer, flag)
		}
		p := b.toolPair(filepath.Dir(path), "grep", args, peer)
		if oneCore {
			ours, peer, server := p.ours.(*command), p.peer.(*command), p.served.(*served)
			ours.words, peer.words, server.words = onOneCore(ours.words), onOneCore(peer.words), onOneCore(server.words)
		}
		p.same, p.work = sameCount, megabytes
		return p, nil
	})
}

var firstNumber = regexp.MustCompile(`\d+`)

// sameCount compares the first number of each output; an output without a number counts as 0.
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

// querying runs a filter with so few results that both programs print all of them.
func (b *bench) querying(filter string, size int64) setup {
	if b.small {
		size /= 2 // jq takes half a second for 10 MB
	}
	return on(b.hits, size, func(path string, megabytes float64) (*pair, error) {
		return b.filtering(path, filter, false, megabytes, "jq", "-r", filter, path), nil
	})
}

// filtering runs a filter on a file; slurp makes one array of all its values. peer is the command line of jq.
func (b *bench) filtering(path, filter string, slurp bool, work float64, peer ...string) *pair {
	args := map[string]any{"source": filepath.Base(path), "filter": filter, "raw": true, "slurp": slurp}
	p := b.toolPair(filepath.Dir(path), "jq", args, peer, "--jq-memory", "2GiB")
	p.served, p.work, p.same = nil, work, endsWithPeers
	return p
}

// endsWithPeers compares results: our output may start with a line that says how many there are.
func endsWithPeers(ours, peer string) error {
	if !strings.HasSuffix(strings.TrimSpace(ours), strings.TrimSpace(peer)) {
		return fmt.Errorf("%.300q, %.300q", ours, peer)
	}
	return nil
}

// slurping runs a filter with few results on all records as one array.
func (b *bench) slurping(filter, format string, records int64) setup {
	return on(b.records(format), records, func(path string, thousands float64) (*pair, error) {
		peer := map[string][]string{
			ndjson: {"jq", "-rs", filter, path}, jsonArray: {"jq", "-r", filter, path},
			csvTable: {"jq", "-nRr", `[inputs | select(startswith("id") | not) | split(",") | {id: (.[0] | tonumber), a: .[1], v: (.[2] | tonumber)}] | ` + filter,
				path},
		}[format]
		return b.filtering(path, filter, format != jsonArray, thousands, peer...), nil
	})
}

// pointing shows one element of an array by index (negative: from the end), or a value inside it; jq must read the
// whole text. by is the argument of slice: at or records.
func (b *bench) pointing(size int64, by string, index int) setup {
	return on(b.hits, size, func(path string, megabytes float64) (*pair, error) {
		index := index
		if index < 0 {
			text, err := os.ReadFile(path)
			if err != nil {
				return nil, err
			}
			index += bytes.Count(text, []byte("\n")) - 2 // the two brackets are on lines of their own
		}
		value := map[string]string{"at": fmt.Sprintf("/%d/file", index), "records": strconv.Itoa(index)}[by]
		p := b.toolPair(filepath.Dir(path), "slice", map[string]any{"source": filepath.Base(path), by: value},
			[]string{"jq", "-r", fmt.Sprintf(".[%d].file", index), path})
		p.same, p.work = containsPeers, megabytes
		return p, nil
	})
}

func containsPeers(ours, peer string) error {
	peer = strings.TrimSpace(peer)
	if !strings.Contains(ours, peer) || peer == "" {
		return fmt.Errorf("%.300q, %.300q", ours, peer)
	}
	return nil
}

// slicing shows 50 lines at nine tenths of an observation, compared with sed on the same text in a file.
func (b *bench) slicing(size int64) setup {
	return func(ctx context.Context) (*pair, error) {
		path, megabytes, err := b.log(size)
		if err != nil {
			return nil, err
		}
		in, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		defer func() { _ = in.Close() }()
		base := b.funnel(b.work, raisedLimits...)
		cmd := exec.CommandContext(ctx, base[0], append(base[1:], "keep")...)
		cmd.Stdin = in
		out, err := cmd.Output()
		if err != nil {
			return nil, fmt.Errorf("keep: %w", err)
		}
		id := observation.FindString(string(out))
		lines, _, err := receiptTotal(string(out))
		if err != nil || id == "" {
			return nil, fmt.Errorf("keep: %.300q: %w", out, err)
		}
		from, to := lines/10*9, lines/10*9+49
		args := map[string]any{"source": id, "lines": fmt.Sprintf("%d-%d", from, to)}
		peer := []string{"sed", "-n", fmt.Sprintf("%d,%dp;%[2]dq", from, to), path}
		p := b.toolPair(b.work, "slice", args, peer, raisedLimits...)
		p.same, p.work = containsPeers, megabytes
		return p, nil
	}
}

// observation matches the ID of an observation in a receipt.
var observation = regexp.MustCompile(`obs:[0-9a-z]{12}`)

// receiptTotal parses the total of a receipt.
func receiptTotal(receipt string) (lines, chars int64, err error) {
	_, total, _ := strings.Cut(receipt, "total: ")
	_, err = fmt.Sscanf(total, "%d lines, %d chars", &lines, &chars)
	return lines, chars, err
}
