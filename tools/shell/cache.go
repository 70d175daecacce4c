package shell

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/system/sandbox"
)

// cacheDir is where commands see the cache of their root: programs keep what they have built in ~/.cache.
const cacheDir = homeDir + "/.cache"

// cacheOf opens the cache of an owner's root, which outlives the server: the next one need not build all again. nil:
// there is none, and caches last as long as the scratch directory.
func (s *Shell) cacheOf(owner string, roots []rootDir, cwd string) *observations.Cache {
	store := s.options.Store
	if store == nil || store.Unwritable() != nil {
		return nil
	}
	root := ""
	for _, r := range roots {
		if within(r.dir, cwd) && len(r.dir) > len(root) {
			root = r.dir
		}
	}
	sum := sha256.Sum256([]byte(owner + "\x00" + root))
	name := hex.EncodeToString(sum[:8])
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.caches[name]; c != nil || s.closed {
		return c
	}
	c, err := store.OpenCache(name)
	if err != nil {
		return nil
	}
	s.caches[name] = c
	return c
}

// measureCache counts a cache after a command, without keeping its answer waiting.
func (s *Shell) measureCache(c *observations.Cache) {
	if c == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.measuring[c] {
		return
	}
	s.measuring[c] = true
	s.background.Go(func() {
		_, _ = c.Measure() // the next one counts it
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.measuring, c)
	})
}

// closeCaches closes the caches after the last command.
func (s *Shell) closeCaches() {
	s.background.Wait()
	for _, c := range s.caches {
		c.Close()
	}
}

// allowedCaches returns the mounts of the directories of --allow-cache: where they are, and if they are below the home
// of the user, also below that of commands, where programs look for them.
func (v *view) allowedCaches() (list []sandbox.Mount) {
	home, _ := os.UserHomeDir()
	if real, err := filepath.EvalSymlinks(home); err == nil {
		home = real
	}
	for _, dir := range v.options.AllowCache {
		real, err := filepath.EvalSymlinks(dir)
		if err != nil {
			continue // the server has said so when it started
		}
		list = append(list, sandbox.Mount{Source: real, Target: real, Write: true})
		if rel, err := filepath.Rel(home, real); err == nil && home != "" && filepath.IsLocal(rel) && rel != "." {
			list = append(list, sandbox.Mount{Source: real, Target: filepath.Join(homeDir, rel), Write: true})
		}
	}
	return list
}

// cacheHint returns a hint if a line names a directory of --allow-read, which cannot be a cache; "" if not.
func (s *Shell) cacheHint(line []byte) string {
	for _, m := range absolutePath().FindAllSubmatch(line, -1) {
		for _, dir := range s.options.AllowRead {
			if within(dir, filepath.Clean(string(m[1]))) {
				return fmt.Sprintf("%s is read-only for commands: the operator can let them write there with --allow-cache %[1]s",
					strings.TrimSuffix(dir, "/"))
			}
		}
	}
	return ""
}
