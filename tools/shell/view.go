package shell

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/system/sandbox"
	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/tools/source"
)

// Directories that only commands see.
const (
	obsDir  = "/obs"      // observations that the command names
	homeDir = "/home/run" // its home, in the scratch directory
)

// view is what one command sees.
type view struct {
	options *Options
	owner   string
	roots   []rootDir
	scratch *scratch
	cache   *observations.Cache // nil: programs keep their caches in the scratch directory
	limited []string            // roots that were searched in part
}

// guarded returns the directories below which the command may write: roots, or directories in them.
func (v *view) guarded() (dirs []string) {
	for _, r := range v.roots {
		dirs = append(dirs, v.writable(r.dir)...)
	}
	return dirs
}

// writable returns the directories of a root below which the command may write: the root itself, if one that the operator
// allowed has it.
func (v *view) writable(root string) (dirs []string) {
	for _, dir := range v.options.AllowWrite {
		if within(dir, root) {
			return []string{root}
		}
		if within(root, dir) {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// home returns the command's home directory.
func (v *view) home() string {
	if v.options.Mode == sandbox.Off {
		return v.scratch.home()
	}
	return homeDir
}

// cachePath returns the directory for caches, as the command sees it.
func (v *view) cachePath() string {
	if v.options.Mode == sandbox.Off && v.cache != nil {
		return v.cache.Dir
	}
	return filepath.Join(v.home(), ".cache")
}

// mounts returns the mounts of a command, in the order in which they cover each other.
func (v *view) mounts(command string) ([]sandbox.Mount, error) {
	list := []sandbox.Mount{
		{Source: v.scratch.tmp(), Target: "/tmp", Write: true, Bounded: true},
		{Source: v.scratch.home(), Target: homeDir, Write: true, Bounded: true},
	}
	if v.cache != nil {
		list = append(list, sandbox.Mount{Source: v.cache.Dir, Target: cacheDir, Write: true, Bounded: true})
	}
	list = append(list, v.allowedCaches()...)
	for _, dir := range v.options.AllowRead {
		real, err := filepath.EvalSymlinks(dir)
		if err != nil {
			continue // the server has said so when it started
		}
		list = append(list, sandbox.Mount{Source: real, Target: real})
	}
	var hidden []sandbox.Mount
	for _, r := range v.roots {
		dir := r.dir
		writable := v.writable(dir)
		list = append(list, sandbox.Mount{Source: dir, Target: dir})
		for _, sub := range writable {
			list = append(list, sandbox.Mount{Source: sub, Target: sub, Write: true, Maybe: sub != dir})
		}
		real, err := filepath.EvalSymlinks(dir)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("the root %s was removed or renamed: ask the operator to restore it", dir)
		} else if err != nil {
			return nil, err
		}
		below := searchNested(real)
		for _, dir := range writable {
			list = append(list, guardedMounts(dir)...)
		}
		below.git = slices.DeleteFunc(below.git, func(path string) bool { // their mounts are writable
			return !slices.ContainsFunc(writable, func(w string) bool { return within(w, moved(path, real, dir)) })
		})
		if len(writable) > 0 {
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
		path, err := r.Path()
		_ = r.Close()
		if err != nil {
			return nil, source.ExplainObservation(id, err)
		}
		target := filepath.Join(obsDir, m[1])
		if !slices.ContainsFunc(list, func(m sandbox.Mount) bool { return m.Target == target }) {
			list = append(list, sandbox.Mount{Source: path, Target: target, File: true})
		}
	}
	return list, nil
}
