//go:build linux

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// rareLiteral returns a literal that occurs in a few hundred lines of the tree, Linux or Go.
func (b *bench) rareLiteral() string {
	if b.small {
		return "strings.TrimSuffix"
	}
	return "PM_EVENT_"
}

// source returns a tree of many files: Linux, or in the small form the Go commands.
func (b *bench) source() (string, error) {
	switch {
	case b.small:
		return filepath.Join(b.goroot, "src", "cmd"), nil
	case b.tree == "":
		return "", errSkipped{"linux-source-6.1 is not installed"}
	}
	return b.tree, nil
}

// goTrees are subtrees of Go's source, with their approximate number of files.
var goTrees = []struct{ name, path string }{{"500", "src/go"}, {"1,500", "src/cmd/go"}, {"11,000", "src"}}

var totalMatches = regexp.MustCompile(`(\d+) (?:matches|match) in (\d+) file`)

// shownMatch is the beginning of a match that search shows.
var shownMatch = regexp.MustCompile(`(?m)^ *\d+: `)

// searching prints and stores every match or every count below a path of the directory that source returns.
func (b *bench) searching(source func() (string, error), pattern, show, path string) setup {
	flags := []string{"-n", "--no-heading", "-e", pattern, path}
	if show == "counts" {
		flags = []string{"--count", "-e", pattern, path}
	}
	args := map[string]any{"pattern": pattern, "show": show, "path": path}
	return b.inTree(source, "search", args, flags, func(ours, peer string) error {
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
		total := totalMatches.FindString(ours)
		if total == "" { // few matches are shown whole, without totals
			total = strconv.Itoa(len(shownMatch.FindAllString(ours, -1)))
		}
		return sameCount(total, strconv.Itoa(want))
	})
}

// listing lists the files of the tree by its ignore rules.
func (b *bench) listing(show, path string) setup {
	args := map[string]any{"path": path, "type": "file", "show": show}
	return b.inTree(b.source, "find", args, []string{"--files", path}, func(ours, peer string) error {
		want := strings.Count(peer, "\n")
		if !slices.Contains(firstNumber.FindAllString(ours, -1), strconv.Itoa(want)) {
			return fmt.Errorf("the peer lists %d files: %.300q", want, ours)
		}
		return nil
	})
}

// sixtyPatterns returns a glob of 60 patterns for paths, which matches the names of sixtyNames.
func sixtyPatterns() string {
	var ends []string
	for i := range 60 {
		ends = append(ends, fmt.Sprintf("%02d", i))
	}
	return "**/s*/*{" + strings.Join(ends, ",") + "}.*"
}

var sixtyNames = regexp.MustCompile(`[0-5][0-9]\.[a-z]+\n`)

// wordCount prints a line for each file, as find with show=stat does.
var wordCount = []string{"sh", "-c", "find . -type f -print0 | xargs -0 wc | grep -v ' total$'"}

// smallFiles returns a directory with n files of about 400 bytes, 100 in each directory of a tree below a path in it.
func (b *bench) smallFiles(n int, below string) (string, error) {
	dir := filepath.Join(b.cache, "inputs", fmt.Sprintf("files-%d-%d", n, len(below)))
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	made, err := os.MkdirTemp(b.work, "files-")
	if err != nil {
		return "", err
	}
	extensions := strings.Fields("go md txt json py c h js ts yaml")
	for i := range n {
		in := filepath.Join(made, below, fmt.Sprintf("d%03d/s%02d", i/4000, i/100%40))
		if err := os.MkdirAll(in, 0o700); err != nil {
			return "", err
		}
		text := strings.Repeat(fmt.Sprintf("func f%d(x int) error { return nil } // %d\n", i, i*i), 1+i%20)
		name := filepath.Join(in, fmt.Sprintf("file%06d.%s", i, extensions[i/100%len(extensions)]))
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			return "", err
		}
	}
	return dir, errors.Join(os.MkdirAll(filepath.Dir(dir), 0o700), os.Rename(made, dir))
}

// finding compares find on n small files, or a twentieth in the small form, with a peer that prints a line for each.
// The files lie below the path of args, if that is set.
func (b *bench) finding(n int, args map[string]any, peer ...string) setup {
	return func(context.Context) (*pair, error) {
		files := n
		if b.small {
			files /= 20
		}
		below, _ := args["path"].(string)
		dir, err := b.smallFiles(files, below)
		if err != nil {
			return nil, err
		}
		p := b.toolPair(dir, "find", args, peer)
		p.work = float64(files)
		p.same = func(ours, peer string) error {
			want := strings.Count(peer, "\n")
			if args["glob"] != nil {
				want = len(sixtyNames.FindAllString(peer, -1))
			}
			if want == 0 || !slices.Contains(firstNumber.FindAllString(ours, -1), strconv.Itoa(want)) {
				return fmt.Errorf("the peer lists %d files: %.300q", want, ours)
			}
			return nil
		}
		return p, nil
	}
}

// inTree compares a tool call on a path of the tree with ripgrep; the work is the number of files below the path.
func (b *bench) inTree(
	source func() (string, error), tool string, args map[string]any, flags []string, same func(ours, peer string) error,
) setup {
	return func(ctx context.Context) (*pair, error) {
		dir, err := source()
		if err != nil {
			return nil, err
		}
		// rg honours ignore files outside of repositories, like mcp-funnel
		rg := []string{"rg", "--no-config", "--no-require-git"}
		cmd := exec.CommandContext(ctx, "rg", append(rg[1:], "--files", args["path"].(string))...)
		cmd.Dir = dir
		out, _ := cmd.Output() // an error shows when the row is measured
		p := b.toolPair(dir, tool, args, slices.Concat(rg, flags))
		p.same, p.work = same, float64(max(bytes.Count(out, []byte("\n")), 1))
		return p, nil
	}
}

// bothLists is a shell script. It writes two sorted lists to directory $1: the files that git would add by the ignore
// rules alone, and the files that our find tool lists. It prints the number of git's files, then the names in only
// one list, ours after a tab. It omits hidden names, for which git has no rule.
const bothLists = `set -e
git init -q --bare "$1/git"
git -c core.excludesFile=/dev/null -c core.quotePath=off -c core.bare=false --git-dir "$1/git" --work-tree . \
	ls-files --others --exclude-per-directory=.gitignore | grep -v -e '^\.' -e '/\.' |
	while IFS= read -r f; do [ -L "$f" ] || ! [ -f "$f" ] || printf '%s\n' "$f"; done | LC_ALL=C sort >"$1/git.list"
dir=$1; shift
id=$("$@" call find '{"type":"file"}' | grep -o 'obs:[0-9a-z]*' | head -n 1)
"$@" observations cat "$id" | jq -r .path | LC_ALL=C sort >"$dir/ours.list"
[ -s "$dir/git.list" ] && [ -s "$dir/ours.list" ]
wc -l <"$dir/git.list"
LC_ALL=C comm -3 "$dir/git.list" "$dir/ours.list"`

// againstGit counts the names that only one of mcp-funnel and git lists.
func (b *bench) againstGit(ctx context.Context) (got result, err error) {
	dir, err := b.source()
	if err != nil {
		return got, err
	}
	if _, err := program("jq"); err != nil {
		return got, err
	}
	cmd := exec.CommandContext(ctx, "sh", append([]string{"-c", bothLists, "sh", b.work}, b.funnel(dir)...)...)
	cmd.Dir = dir
	out, err := cmd.Output()
	if err != nil {
		return got, fmt.Errorf("the lists: %w", err)
	}
	names := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
	got.value, got.note = float64(len(names)-1), "of "+strings.TrimSpace(names[0])
	if len(names) > 1 {
		lister := map[bool]string{true: "ours", false: "git"}[names[1][0] == '\t']
		got.note = "only " + lister + ": " + strings.TrimSpace(names[1])
	}
	return got, nil
}
