//go:build linux

package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
)

const (
	jqSize = 200 << 20

	streamable   = `.[] | select(.line == 4711 and .score > 0.95) | .file`
	materialised = `group_by(.file) | map({file: .[0].file, n: length}) | sort_by(.n) | reverse | .[:3] | .[].file`
)

func jqRows(b *bench) []row {
	return []row{
		{family: "jq", name: "200 MB, streamable: select by two keys", beside: "jq", bar: 0.35, setup: b.querying(streamable, jqSize)},
		{family: "jq", name: "200 MB, streamable: length", beside: "jq", bar: 0.35, setup: b.querying(`length`, jqSize)},
		{family: "jq", name: "200 MB, not streamable: group_by", beside: "jq", bar: 0.7,
			setup: b.querying(materialised, jqSize)},
	}
}

// querying has so few results that both print all of them.
func (b *bench) querying(filter string, size int64) func(context.Context) (*duel, error) {
	return func(context.Context) (*duel, error) {
		size := b.scaled(size)
		if b.small {
			size /= 2 // jq takes half a second for 10 MB
		}
		path, err := b.hits(size)
		if err != nil {
			return nil, err
		}
		base := b.funnel(filepath.Dir(path), "--jq-memory", "2GiB")
		return &duel{
			ours: &command{b: b, words: append(base, called("jq", map[string]any{"source": filepath.Base(path), "filter": filter, "raw": true})...)},
			peer: &command{b: b, words: []string{"jq", "-r", filter, path}},
			same: func(ours, peer string) error {
				// Beside the results ours may have a line that says how many there are.
				if !strings.HasSuffix(strings.TrimSpace(ours), strings.TrimSpace(peer)) {
					return fmt.Errorf("%.300q, %.300q", ours, peer)
				}
				return nil
			},
			work: float64(size) / (1 << 20),
		}, nil
	}
}
