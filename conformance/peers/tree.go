//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// rare is a literal in a few hundred lines of the tree, in Linux or in Go.
func (b *bench) rare() string {
	if b.small {
		return "strings.TrimSuffix"
	}
	return "PM_EVENT_"
}

const linuxPackage = "/usr/src/linux-source-6.1.tar.xz"

// source is a tree of many files: Linux, or in the small form that of the Go commands.
func (b *bench) source(ctx context.Context) (string, error) {
	if b.small {
		return filepath.Join(b.goroot, "src", "cmd"), nil
	}
	if b.tree != "" {
		return b.tree, nil
	}
	dir := filepath.Join(b.cache, "linux-source-6.1")
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	if _, err := os.Stat(linuxPackage); err != nil {
		return "", errSkipped{"linux-source-6.1 is not installed"}
	}
	fmt.Fprintln(os.Stderr, "unpacking linux-source-6.1")
	if out, err := exec.CommandContext(ctx, "tar", "-xJf", linuxPackage, "-C", b.work).CombinedOutput(); err != nil {
		return "", fmt.Errorf("tar: %w: %.300s", err, out)
	}
	unpacked := filepath.Join(b.work, "linux-source-6.1")
	if err := asUpstream(unpacked); err != nil {
		return "", err
	}
	return dir, os.Rename(unpacked, dir)
}

// asUpstream takes Debian's own rules from the end of .gitignore: they ignore the whole tree but debian/.
func asUpstream(dir string) error {
	path := filepath.Join(dir, ".gitignore")
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	before, _, _ := bytes.Cut(b, []byte("#\n# Debian packaging"))
	return os.WriteFile(path, before, 0o644)
}

// bareRipgrep honours ignore files outside of repositories too, as we do.
var bareRipgrep = []string{"rg", "--no-config", "--no-require-git"}

func treeRows(b *bench) []row {
	return []row{
		{family: "tree", name: "search, a rare literal", beside: "rg", bar: 1.05, setup: b.searching(b.rare(), "matches", ".")},
		{family: "tree", name: "search, a word in many files, counted", beside: "rg", bar: 1.05, setup: b.searching("return -EINVAL|errors.New", "counts", ".")},
		{family: "tree", name: "search, a class without literal, counted", beside: "rg", bar: 1.05, setup: b.searching("[a-z]{4}[0-9]{5}", "counts", ".")},
		{family: "tree", name: "listing, all names kept, as a tree", beside: "rg", bar: 0.6, setup: b.listing("tree", ".")},
		{family: "tree", name: "listing, all kept as records", beside: "rg", setup: b.listing("list", ".")}, // of size and time too, which rg does not ask for
		{family: "tree", name: "listing, counted by extension", beside: "rg", bar: 0.6, setup: b.listing("count", ".")},
		{family: "tree", name: "listing, differences with git", beside: "git", bar: 0, unit: "files", figures: b.againstGit},
	}
}

var totalMatches = regexp.MustCompile(`(\d+) (?:matches|match) in (\d+) file`)

// searching prints, and keeps, every match or every count.
func (b *bench) searching(pattern, show, path string) func(context.Context) (*duel, error) {
	return func(ctx context.Context) (*duel, error) {
		dir, err := b.source(ctx)
		if err != nil {
			return nil, err
		}
		args := map[string]any{"pattern": pattern, "show": show, "path": path}
		peer := slices.Concat(bareRipgrep, []string{"-n", "--no-heading"})
		if show == "counts" {
			peer = slices.Concat(bareRipgrep, []string{"--count"})
		}
		base := b.funnel(dir)
		return &duel{
			ours:   &command{b: b, words: append(base, called("search", args)...), dir: dir},
			served: &served{words: base, tool: "search", args: args},
			peer:   &command{b: b, words: append(peer, "-e", pattern, path), dir: dir},
			same: func(ours, peer string) error {
				want := strings.Count(peer, "\n")
				if show == "counts" {
					want = 0
					for line := range strings.Lines(peer) {
						n, err := strconv.Atoi(strings.TrimSpace(line[strings.LastIndexByte(line, ':')+1:]))
						if err != nil {
							return err
						}
						want += n
					}
				}
				return sameCount(totalMatches.FindString(ours), strconv.Itoa(want))
			},
			work: float64(b.filesBelow(ctx, dir, path)),
		}, nil
	}
}

// listing walks the tree with its ignore rules.
func (b *bench) listing(show, path string) func(context.Context) (*duel, error) {
	return func(ctx context.Context) (*duel, error) {
		dir, err := b.source(ctx)
		if err != nil {
			return nil, err
		}
		args := map[string]any{"path": path, "type": "file", "show": show}
		base := b.funnel(dir)
		return &duel{
			ours:   &command{b: b, words: append(base, called("find", args)...), dir: dir},
			served: &served{words: base, tool: "find", args: args},
			peer:   &command{b: b, words: append(slices.Clip(bareRipgrep), "--files", path), dir: dir},
			same:   func(ours, peer string) error { return sameTotal(ours, strings.Count(peer, "\n")) },
			work:   float64(b.filesBelow(ctx, dir, path)),
		}, nil
	}
}

// sameTotal finds the number of files among what find tells.
func sameTotal(ours string, want int) error {
	for _, n := range firstNumber.FindAllString(ours, -1) {
		if n == strconv.Itoa(want) {
			return nil
		}
	}
	return fmt.Errorf("the peer lists %d files: %.300q", want, ours)
}

func (b *bench) filesBelow(ctx context.Context, dir, path string) int {
	cmd := exec.CommandContext(ctx, "rg", "--no-config", "--no-require-git", "--files", path)
	cmd.Dir = dir
	out, _ := cmd.Output()
	return max(bytes.Count(out, []byte("\n")), 1)
}

// againstGit counts the names that only one of us and git lists. Hidden names are left out: git has no such rule.
func (b *bench) againstGit(ctx context.Context) (got result, err error) {
	dir, err := b.source(ctx)
	if err != nil {
		return got, err
	}
	want, err := b.gitFiles(ctx, dir)
	if err != nil {
		return got, err
	}
	ours, err := b.ourFiles(ctx, dir)
	if err != nil {
		return got, err
	}
	differ := 0
	for name := range want {
		if !ours[name] {
			differ++
			got.note = "only git: " + name
		}
	}
	for name := range ours {
		if !want[name] {
			differ++
			got.note = "only ours: " + name
		}
	}
	got.value, got.other = float64(differ), 0
	if got.note == "" {
		got.note = fmt.Sprintf("of %d", len(want))
	}
	return got, nil
}

// gitFiles are what git would take up, by the ignore rules alone.
func (b *bench) gitFiles(ctx context.Context, dir string) (map[string]bool, error) {
	if _, err := program("git"); err != nil {
		return nil, err
	}
	repository := filepath.Join(b.work, "git")
	if out, err := exec.CommandContext(ctx, "git", "init", "-q", "--bare", repository).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("git init: %w: %s", err, out)
	}
	cmd := exec.CommandContext(ctx, "git", "-c", "core.excludesFile=/dev/null", "-c", "core.bare=false", "--git-dir", repository, "--work-tree", ".",
		"ls-files", "-z", "--others", "--exclude-per-directory=.gitignore")
	cmd.Dir = dir
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("git ls-files: %w", err)
	}
	names := map[string]bool{}
	for name := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		if strings.HasPrefix(name, ".") || strings.Contains(name, "/.") {
			continue
		}
		if i, err := os.Lstat(filepath.Join(dir, name)); err == nil && i.Mode().IsRegular() {
			names[name] = true
		} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	return names, nil
}

var observation = regexp.MustCompile(`obs:[0-9a-z]{12}`)

func (b *bench) ourFiles(ctx context.Context, dir string) (map[string]bool, error) {
	base := b.funnel(dir)
	out, err := exec.CommandContext(ctx, base[0], append(base[1:], called("find", map[string]any{"type": "file"})...)...).Output()
	if err != nil {
		return nil, fmt.Errorf("find: %w", err)
	}
	id := observation.FindString(string(out))
	if id == "" {
		return nil, fmt.Errorf("find kept nothing: %.300q", out)
	}
	if out, err = exec.CommandContext(ctx, base[0], append(base[1:], "observations", "cat", id)...).Output(); err != nil {
		return nil, fmt.Errorf("observations cat: %w", err)
	}
	names := map[string]bool{}
	for line := range bytes.Lines(out) {
		var r struct{ Path string }
		if err := json.Unmarshal(line, &r); err != nil {
			return nil, err
		}
		names[r.Path] = true
	}
	return names, nil
}
