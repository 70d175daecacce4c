//go:build linux

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// scanned returns the tree that scans are measured on: Go's, or in the small form its commands.
func (b *bench) scanned() string {
	if b.small {
		return filepath.Join(b.goroot, "src", "cmd")
	}
	return b.goroot
}

// scanning compares a scan of all files with reading them by cat and counting newlines by wc. The scan counts a last
// line without one, too: at most one more a file.
func (b *bench) scanning(context.Context) (*pair, error) {
	dir := b.scanned()
	ours := &command{b: b, words: append(b.funnel(dir), "scan", "--all", "--json"), dir: dir}
	peer := &command{b: b, words: []string{"sh", "-c", "find . -type f -print0 | xargs -0 cat | wc -l"}, dir: dir}
	return &pair{ours: ours, peer: peer, work: 1, same: func(ours, peer string) error {
		var r struct{ Lines, Files int64 }
		if err := json.Unmarshal([]byte(ours), &r); err != nil {
			return fmt.Errorf("%w: %.300q", err, ours)
		}
		newlines, err := strconv.ParseInt(strings.TrimSpace(peer), 10, 64)
		if err == nil && (r.Lines < newlines || r.Lines > newlines+r.Files) {
			err = fmt.Errorf("%d lines of %d files with %d newlines", r.Lines, r.Files, newlines)
		}
		return err
	}}, nil
}

// describing compares the first report of an investigation, without a model, with a scan of the same files.
func (b *bench) describing(context.Context) (*pair, error) {
	dir, store := filepath.Join(b.goroot, "src"), filepath.Join(b.work, "investigated")
	if b.small {
		dir = b.scanned()
	}
	ours := &command{b: b, words: append(b.funnel(dir), "--store", store, "investigate", "--json"), dir: dir,
		after: func() error { return os.RemoveAll(filepath.Join(store, "investigations")) }}
	peer := &command{b: b, words: append(b.funnel(dir), "scan", "--json"), dir: dir}
	return &pair{ours: ours, peer: peer, work: 1, same: func(ours, peer string) error {
		var report struct{ Coverage struct{ Files int64 } }
		var scan struct{ Files int64 }
		if err := json.Unmarshal([]byte(ours), &report); err != nil {
			return fmt.Errorf("%w: %.300q", err, ours)
		}
		if err := json.Unmarshal([]byte(peer), &scan); err != nil {
			return fmt.Errorf("%w: %.300q", err, peer)
		}
		return sameCount(fmt.Sprint(report.Coverage.Files), fmt.Sprint(scan.Files))
	}}, nil
}
