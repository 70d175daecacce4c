package shell

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/internal/content"
	"github.com/mcp-funnel/mcp-funnel/internal/sandbox"
	"github.com/mcp-funnel/mcp-funnel/internal/source"
	"github.com/mcp-funnel/mcp-funnel/internal/tree"
	"github.com/mcp-funnel/mcp-funnel/observations"
)

// Places of a command that are not those of the machine.
const (
	obsDir  = "/obs"      // observations that the command names
	homeDir = "/home/run" // its home, in the scratch directory
)

// view is what one command sees.
type view struct {
	options *Options
	owner   string
	roots   []*tree.Root
	scratch *scratch
	limited []string // roots that were searched in part
}

// home returns the command's home directory.
func (v *view) home() string {
	if v.options.Mode == sandbox.Off {
		return v.scratch.home()
	}
	return homeDir
}

// mounts returns the mounts of a command, in the order in which they cover each other.
func (v *view) mounts(command string) ([]sandbox.Mount, error) {
	list := []sandbox.Mount{
		{Source: v.scratch.tmp(), Target: "/tmp", Write: true},
		{Source: v.scratch.home(), Target: homeDir, Write: true},
	}
	for _, dir := range v.options.AllowRead {
		real, err := filepath.EvalSymlinks(dir)
		if err != nil {
			return nil, fmt.Errorf("--allow-read: %w", err)
		}
		list = append(list, sandbox.Mount{Source: real, Target: real})
	}
	var hidden []sandbox.Mount
	for _, r := range v.roots {
		dir := r.Dir()
		list = append(list, sandbox.Mount{Source: dir, Target: dir, Write: v.options.AllowWrite})
		real, err := filepath.EvalSymlinks(dir)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("the root %s was removed or renamed: ask the operator to restore it", dir)
		} else if err != nil {
			return nil, err
		}
		below := searchNested(real)
		if v.options.AllowWrite {
			list = append(list, guardedMounts(dir)...)
			list = append(list, below.mounts(real, dir)...)
		}
		for _, store := range below.stores {
			hidden = append(hidden, sandbox.Mount{Target: moved(store, real, dir)})
		}
		if below.limited {
			v.limited = append(v.limited, dir)
		}
	}
	list = append(list, hidden...)
	list = append(list, v.hidden(list)...)
	named, err := v.observations(command)
	return append(list, named...), err
}

// hidden returns mounts that cover what no command may see below the granted directories.
func (v *view) hidden(granted []sandbox.Mount) (list []sandbox.Mount) {
	for _, path := range v.options.Hidden {
		real, err := filepath.EvalSymlinks(path)
		if err != nil {
			continue // there is nothing to hide
		}
		fi, err := os.Stat(real)
		if err != nil || !slices.ContainsFunc(granted, func(m sandbox.Mount) bool { return within(m.Source, real) }) {
			continue
		}
		list = append(list, sandbox.Mount{Target: real, File: !fi.IsDir()})
	}
	return list
}

// within reports whether path is dir or lies below it.
func within(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

// obsName matches an observation that a command names as a file.
var obsName = content.Pattern(`(?:\$OBS|\$\{OBS\}|` + obsDir + `)/([0-9A-Za-z]{12})\b`)

// observations returns mounts of the observations that a command names, and of no others.
func (v *view) observations(command string) (list []sandbox.Mount, err error) {
	for _, m := range obsName().FindAllStringSubmatch(command, -1) {
		id, err := observations.ParseID(m[1])
		if err != nil {
			return nil, fmt.Errorf("%s: it is no observation: an ID is 12 characters of 0-9 a-z", m[0])
		}
		if v.options.Store == nil {
			return nil, errors.New("this server keeps no observations")
		}
		r, err := v.options.Store.Open(v.owner, id) // counts as a use
		if err != nil {
			return nil, source.ExplainObservation(id, err)
		}
		o := r.Observation
		_ = r.Close()
		path := v.options.Store.SavedTo(o)
		target := filepath.Join(obsDir, m[1])
		if !slices.ContainsFunc(list, func(m sandbox.Mount) bool { return m.Target == target }) {
			list = append(list, sandbox.Mount{Source: path, Target: target, File: true})
		}
	}
	return list, nil
}

// guardedNames are files and directories from which clients read commands to run.
var guardedNames = []string{
	".mcp.json", ".claude", ".claude.json", ".cursor", ".vscode", ".codex", ".gemini", ".windsurf", ".zed", ".idea",
	".continue", ".roo", ".kilocode", ".opencode", "opencode.json", ".devcontainer", ".envrc", ".kiro", ".amazonq",
	".fleet", ".vs", ".husky", ".mise.toml", ".cargo", ".npmrc", ".exrc", ".gdbinit",
}

// guardedMounts returns read-only mounts over what git and clients run, below a root that commands may write to. A
// mount cannot be renamed, so that a command cannot put another directory in its place.
func guardedMounts(root string) (list []sandbox.Mount) {
	for _, name := range guardedNames {
		list = append(list, selfMount(filepath.Join(root, name), false)...)
	}
	return append(list, repositoryMounts(filepath.Join(root, ".git"))...)
}

// selfMount returns a mount of a file or directory over itself, none if it is missing or a link.
func selfMount(path string, write bool) []sandbox.Mount {
	fi, err := os.Lstat(path)
	if err != nil || fi.Mode()&fs.ModeSymlink != 0 {
		return nil
	}
	return []sandbox.Mount{{Source: path, Target: path, Write: write, File: !fi.IsDir(), Maybe: true}}
}

// repositoryMounts returns the mounts that guard the repository or worktree of a path .git.
func repositoryMounts(dotGit string) (list []sandbox.Mount) {
	fi, err := os.Lstat(dotGit)
	switch {
	case err != nil:
		return list
	case fi.IsDir():
		return append(selfMount(dotGit, true), gitMounts(dotGit)...)
	case fi.Mode().IsRegular():
		list = selfMount(dotGit, false)
		if common, ok := worktreeOf(dotGit); ok {
			list = append(list, sandbox.Mount{Source: common, Target: common, Write: true})
			list = append(list, gitMounts(common)...)
		}
	}
	return list
}

// gitMounts returns the read-only parts of a git directory: configuration and hooks name programs that git runs.
func gitMounts(dir string) (list []sandbox.Mount) {
	names := []string{"config", "config.worktree", "hooks"}
	for _, pattern := range []string{"modules/*/config", "modules/*/hooks", "worktrees/*/config.worktree"} {
		found, _ := filepath.Glob(filepath.Join(dir, pattern))
		for _, path := range found {
			if rel, err := filepath.Rel(dir, path); err == nil {
				names = append(names, rel)
			}
		}
	}
	for _, name := range names {
		path := filepath.Join(dir, name)
		fi, err := os.Lstat(path)
		switch {
		case err == nil && fi.Mode()&fs.ModeSymlink == 0:
			list = append(list, sandbox.Mount{Source: path, Target: path, File: !fi.IsDir(), Maybe: true})
		case err != nil && name == "hooks": // otherwise a command could make one
			list = append(list, sandbox.Mount{Target: path})
		}
	}
	return list
}

// worktreeOf returns the git directory that a worktree shares, which lies outside its root. Only git itself can make
// one name the other: a file .git alone, which anyone may have written, grants nothing.
func worktreeOf(dotGit string) (common string, ok bool) {
	b, err := os.ReadFile(dotGit)
	dir, found := bytes.CutPrefix(bytes.TrimSpace(b), []byte("gitdir: "))
	if err != nil || !found || len(b) > 4096 {
		return "", false
	}
	own := string(dir)
	if !filepath.IsAbs(own) {
		own = filepath.Join(filepath.Dir(dotGit), own)
	}
	own = filepath.Clean(own)
	back, err := os.ReadFile(filepath.Join(own, "gitdir"))
	if err != nil || strings.TrimSpace(string(back)) != dotGit {
		return "", false
	}
	common = filepath.Dir(filepath.Dir(own))
	if filepath.Base(filepath.Dir(own)) != "worktrees" {
		return "", false
	}
	real, err := filepath.EvalSymlinks(common)
	return common, err == nil && real == common
}
