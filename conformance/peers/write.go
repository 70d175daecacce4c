//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

const keepSize = 1 << 30

func keepRows(b *bench) []row {
	return []row{
		{family: "keep", name: "1 GB from a file", beside: "openssl", bar: 1.9, setup: b.keeping(keepSize, false)},
		{family: "keep", name: "1 GB from a pipe", beside: "openssl", bar: 1.6, setup: b.keeping(keepSize, true)},
	}
}

// raised raises the store's limits so that it does not truncate or evict the input.
var raised = []string{"--max-observation", "4GiB", "--quota", "16GiB"}

// keeping compares storing the input as an observation with a copy and a digest by `tee copy | openssl dgst -sha256`.
// The files of each run are deleted before the kernel starts to write them to disk. Both must compute the same
// SHA-256.
func (b *bench) keeping(size int64, piped bool) func(context.Context) (*duel, error) {
	return func(context.Context) (*duel, error) {
		if _, err := program("openssl"); err != nil {
			return nil, err
		}
		path, err := b.log(b.scaled(size))
		if err != nil {
			return nil, err
		}
		// The root is a directory next to the store: keep does not read it.
		store, digest := filepath.Join(b.work, "kept"), ""
		base := append(b.funnel(b.work), raised...)
		base = append(base, "--store", store, "keep")
		ours := &command{b: b, words: base, stdin: path, after: func() (err error) {
			digest, err = digestIn(store)
			return errors.Join(err, os.RemoveAll(store))
		}}
		target := filepath.Join(b.work, "copy")
		peer := &command{
			b: b, words: []string{"sh", "-c", `tee "$0" | openssl dgst -sha256`, target}, stdin: path,
			after: func() error { return os.Remove(target) },
		}
		if piped {
			for _, c := range []*command{ours, peer} {
				c.words = append([]string{"sh", "-c", `cat | "$@"`, "sh"}, c.words...)
			}
		}
		return &duel{ours: ours, peer: peer, work: float64(b.scaled(size)) / (1 << 20), same: func(ours, peer string) error {
			i, err := os.Stat(path)
			if err != nil {
				return err
			}
			if !strings.Contains(ours, "kept whole as obs:") {
				return fmt.Errorf("not kept: %.300q", ours)
			}
			if !strings.HasSuffix(strings.TrimSpace(peer), " "+digest) {
				return fmt.Errorf("openssl printed %.300q, the observation's SHA-256 is %q", peer, digest)
			}
			return sameTotalOf(ours, i.Size())
		}}, nil
	}
}

// digestIn returns the SHA-256 in the sidecar of the only observation of a store.
func digestIn(store string) (string, error) {
	files, err := filepath.Glob(filepath.Join(store, "observations", "*.json"))
	if err != nil {
		return "", err
	}
	if len(files) != 1 {
		return "", fmt.Errorf("%d sidecars in %s, want 1", len(files), store)
	}
	text, err := os.ReadFile(files[0])
	if err != nil {
		return "", err
	}
	var sidecar struct {
		SHA256 string `json:"sha256"`
	}
	err = json.Unmarshal(text, &sidecar)
	return sidecar.SHA256, err
}

// sameTotalOf returns an error if the receipt's number of characters cannot be that of a text of size bytes.
func sameTotalOf(receipt string, size int64) error {
	_, total, _ := strings.Cut(receipt, "total: ")
	var lines, chars int64
	if _, err := fmt.Sscanf(total, "%d lines, %d chars", &lines, &chars); err != nil || chars > size || chars < size*9/10 {
		return fmt.Errorf("the receipt tells %d chars of %d bytes: %w", chars, size, err)
	}
	return nil
}

func sliceRows(b *bench) []row {
	return []row{
		{family: "slice", name: "50 lines deep in 1 GB", beside: "sed", bar: 0.02, setup: b.slicing(keepSize)},
		{family: "slice", name: "a value near the start of 200 MB of JSON", beside: "jq", setup: b.pointing(jqSize, "at", 3)},
		{family: "slice", name: "a value near the end of 200 MB of JSON", beside: "jq", setup: b.pointing(jqSize, "at", -3)},
		{family: "slice", name: "a record near the start of 200 MB of JSON", beside: "jq", setup: b.pointing(jqSize, "records", 3)},
		{family: "slice", name: "a record near the end of 200 MB of JSON", beside: "jq", setup: b.pointing(jqSize, "records", -3)},
	}
}

// pointing shows one element of an array by index (negative: from the end), or a value inside it; jq must read the
// whole text.
func (b *bench) pointing(size int64, by string, n int) func(context.Context) (*duel, error) {
	return func(context.Context) (*duel, error) {
		size := b.scaled(size)
		path, err := b.hits(size)
		if err != nil {
			return nil, err
		}
		if n < 0 {
			lines, err := countLines(path)
			if err != nil {
				return nil, err
			}
			n += lines - 2 // the two brackets are on lines of their own
		}
		what := map[string]string{"at": fmt.Sprintf("/%d/file", n), "records": fmt.Sprint(n)}[by]
		args := map[string]any{"source": filepath.Base(path), by: what}
		base := b.funnel(filepath.Dir(path))
		return &duel{
			ours:   &command{b: b, words: append(base, called("slice", args)...)},
			served: &served{words: base, tool: "slice", args: args},
			peer:   &command{b: b, words: []string{"jq", "-r", fmt.Sprintf(".[%d].file", n), path}},
			same: func(ours, peer string) error {
				if !strings.Contains(ours, strings.TrimSpace(peer)) || strings.TrimSpace(peer) == "" {
					return fmt.Errorf("%.300q, %.300q", ours, peer)
				}
				return nil
			},
			work: float64(size) / (1 << 20),
		}, nil
	}
}

func countLines(path string) (n int, err error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer func() { _ = f.Close() }()
	block := make([]byte, 1<<20)
	for {
		k, err := f.Read(block)
		n += bytes.Count(block[:k], []byte{'\n'})
		if errors.Is(err, io.EOF) {
			return n, nil
		}
		if err != nil {
			return 0, err
		}
	}
}

// slicing shows 50 lines at nine tenths of an observation, compared with sed on the same text in a file.
func (b *bench) slicing(size int64) func(context.Context) (*duel, error) {
	return func(ctx context.Context) (*duel, error) {
		path, err := b.log(b.scaled(size))
		if err != nil {
			return nil, err
		}
		base := append(b.funnel(b.work), raised...)
		id, lines, err := b.keptForSlice(ctx, base, path)
		if err != nil {
			return nil, err
		}
		from := lines / 10 * 9
		args := map[string]any{"source": id, "lines": fmt.Sprintf("%d-%d", from, from+49)}
		return &duel{
			ours:   &command{b: b, words: append(base, called("slice", args)...)},
			served: &served{words: base, tool: "slice", args: args},
			peer:   &command{b: b, words: []string{"sed", "-n", fmt.Sprintf("%d,%dp;%dq", from, from+49, from+49), path}},
			same: func(ours, peer string) error {
				if !strings.Contains(ours, strings.TrimSpace(peer)) {
					return fmt.Errorf("%.300q, %.300q", ours, peer)
				}
				return nil
			},
			work: float64(b.scaled(size)) / (1 << 20),
		}, nil
	}
}

// keptForSlice stores a file as an observation and returns its ID and its number of lines.
func (b *bench) keptForSlice(ctx context.Context, base []string, path string) (id string, lines int64, err error) {
	in, err := os.Open(path)
	if err != nil {
		return "", 0, err
	}
	defer func() { _ = in.Close() }()
	cmd := exec.CommandContext(ctx, base[0], append(base[1:], "keep")...)
	cmd.Stdin = in
	out, err := cmd.Output()
	if err != nil {
		return "", 0, fmt.Errorf("keep: %w", err)
	}
	if id = observation.FindString(string(out)); id == "" {
		return "", 0, fmt.Errorf("keep: %.300q", out)
	}
	_, total, _ := strings.Cut(string(out), "total: ")
	_, err = fmt.Sscanf(total, "%d lines", &lines)
	return id, lines, err
}
