package shell

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/system/osfile"
	"github.com/mcp-funnel/mcp-funnel/system/sandbox"
	"github.com/mcp-funnel/mcp-funnel/system/tree"
)

// guardedMounts returns read-only mounts over what git and clients run, below a root that commands may write to. A
// mount cannot be renamed, so that a command cannot put another directory in its place.
func guardedMounts(root string) (list []sandbox.Mount) {
	for _, name := range tree.Guarded {
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
	b, err := readShort(dotGit)
	dir, found := bytes.CutPrefix(bytes.TrimSpace(b), []byte("gitdir: "))
	if err != nil || !found {
		return "", false
	}
	own := string(dir)
	if !filepath.IsAbs(own) {
		own = filepath.Join(filepath.Dir(dotGit), own)
	}
	own = filepath.Clean(own)
	back, err := readShort(filepath.Join(own, "gitdir"))
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

// readShort reads a file that a command may have written: a larger one, or a FIFO, is an error.
func readShort(path string) ([]byte, error) {
	dir, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	defer dir.Close() //nolint:errcheck // it was only read
	return osfile.ReadIn(dir, filepath.Base(path), 4096)
}
