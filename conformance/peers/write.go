//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// raisedLimits raises the store's limits so that it does not truncate or evict the input.
var raisedLimits = []string{"--max-observation", "4GiB", "--quota", "16GiB"}

// keeping compares storing the input as an observation with a copy and a digest by `tee copy | openssl dgst -sha256`.
// The files of each run are deleted before the kernel starts to write them to disk. Both must compute the same
// SHA-256.
func (b *bench) keeping(input textInput, size int64, piped bool) setup {
	return on(input, size, func(path string, megabytes float64) (*pair, error) {
		store, digest, target := filepath.Join(b.work, "kept"), "", filepath.Join(b.work, "copy")
		// The root is a directory next to the store: keep does not read it.
		words := append(append(b.funnel(b.work), raisedLimits...), "--store", store, "keep")
		ours := &command{b: b, words: words, stdin: path, after: func() (err error) {
			digest, err = digestIn(store)
			return errors.Join(err, os.RemoveAll(store))
		}}
		words = []string{"sh", "-c", `tee "$0" | openssl dgst -sha256`, target}
		peer := &command{b: b, words: words, stdin: path, after: func() error { return os.Remove(target) }}
		if piped {
			for _, c := range []*command{ours, peer} {
				c.words = append([]string{"sh", "-c", `cat | "$@"`, "sh"}, c.words...)
			}
		}
		return &pair{ours: ours, peer: peer, work: megabytes, same: func(ours, peer string) error {
			if !strings.Contains(ours, " as obs:") {
				return fmt.Errorf("not kept: %.300q", ours)
			}
			if !strings.HasSuffix(strings.TrimSpace(peer), " "+digest) {
				return fmt.Errorf("openssl printed %.300q, the observation's SHA-256 is %q", peer, digest)
			}
			return nil
		}}, nil
	})
}

// hooking compares the hook of a client after a call with an output of that size with `cat` of what the client wrote.
func (b *bench) hooking(size int64) setup {
	return func(context.Context) (*pair, error) {
		if b.small && size > 1<<20 {
			size /= 20
		}
		var log strings.Builder
		if err := writeLog(&log, size, 3); err != nil {
			return nil, err
		}
		event, _ := json.Marshal(map[string]any{"session_id": "s", "cwd": b.work, "hook_event_name": "PostToolUse",
			"tool_name": "mcp__logs__get", "tool_response": []any{map[string]any{"type": "text", "text": log.String()}}})
		path, store := filepath.Join(b.work, fmt.Sprintf("hook-%d.json", size)), filepath.Join(b.work, "hooked")
		words := append(append(b.funnel(b.work), raisedLimits...), "--store", store, "hook")
		ours := &command{b: b, words: words, stdin: path, after: func() error {
			return removeFiles(filepath.Join(store, "observations"))
		}}
		return &pair{ours: ours, peer: &command{b: b, words: []string{"cat"}, stdin: path},
			work: float64(len(event)) / 1e6, same: func(ours, _ string) error {
				if !strings.Contains(ours, "kept whole as obs:") {
					return fmt.Errorf("no receipt: %.300q", ours)
				}
				return nil
			}}, os.WriteFile(path, event, 0o600)
	}
}

// running compares a command run by `run`, which stores its output, with the same command copied and digested as in
// [bench.keeping]. The command is a format for a number, of which the small form has a twentieth, or for the name of a
// log of so many bytes.
func (b *bench) running(format string, n int64) setup {
	return func(context.Context) (*pair, error) {
		if b.small && !strings.Contains(format, "%s") { // a log is made smaller by [bench.log]
			n /= 20
		}
		dir, line := b.work, fmt.Sprintf(format, n)
		if strings.Contains(format, "%s") {
			path, _, err := b.log(n)
			if err != nil {
				return nil, err
			}
			dir, line = filepath.Dir(path), fmt.Sprintf(format, filepath.Base(path))
		}
		target, store := filepath.Join(b.work, "copy"), filepath.Join(b.work, "runs")
		words := []string{"sh", "-c", line + ` | tee "$0" | openssl dgst -sha256`, target}
		flags := append(slices.Clone(raisedLimits), "--store", store, "--toolsets", "core,shell")
		p := b.toolPair(dir, "run", map[string]any{"command": line}, words, flags...)
		empty := func() error { return removeFiles(filepath.Join(store, "observations")) }
		p.ours.(*command).after, p.served.(*served).after = empty, empty
		p.peer.(*command).after = func() error { return os.Remove(target) }
		p.same = func(ours, _ string) error {
			if !strings.Contains(ours, "obs:") {
				return fmt.Errorf("not stored: %.300q", ours)
			}
			return nil
		}
		return p, nil
	}
}

// compacting compares a session that is compacted and restored with one that jq reads and writes, and that is copied
// and digested as in [bench.keeping]. Both must end in the same bytes.
func (b *bench) compacting(size int64) setup {
	return on(b.session, size, func(path string, megabytes float64) (*pair, error) {
		store, out := filepath.Join(b.work, "compacted"), filepath.Join(b.work, "smaller")
		line := fmt.Sprintf(`set -e; f="$1"; shift; compact() { "$@" --quota 16GiB --store %s; }
compact "$@" compact --budget 400000 -o %s "$f" 2>&1; compact "$@" compact --expand %[2]s | sha256sum`, store, out)
		ours := &command{b: b, words: append([]string{"sh", "-c", line, "sh", path}, b.funnel(b.work)...),
			after: func() error { return errors.Join(os.RemoveAll(store), os.Remove(out)) }}
		peer := &command{b: b, words: []string{"sh", "-c", `jq -c . "$0" >"$1"; tee "$1" <"$0" | sha256sum`, path, out},
			after: func() error { return os.Remove(out) }}
		return &pair{ours: ours, peer: peer, work: megabytes, same: func(ours, peer string) error {
			if !strings.Contains(ours, "outputs replaced now") || !strings.HasSuffix(ours, peer) {
				return fmt.Errorf("restored: %.600q, want %q", ours, peer)
			}
			return nil
		}}, nil
	})
}

// removeFiles removes the files in a directory, before the kernel starts to write them to disk.
func removeFiles(dir string) error {
	files, err := os.ReadDir(dir)
	for _, f := range files {
		err = errors.Join(err, os.Remove(filepath.Join(dir, f.Name())))
	}
	return err
}

// digestIn returns the SHA-256 in the sidecar of the only observation of a store.
func digestIn(store string) (string, error) {
	files, err := filepath.Glob(filepath.Join(store, "observations", "????????????.json")) // ID.json
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
	var sidecar struct{ SHA256 string }
	err = json.Unmarshal(text, &sidecar)
	return sidecar.SHA256, err
}
