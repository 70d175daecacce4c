package main

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// roots returns the directories that tools may look into: those of --root, else the current directory unless it is
// too wide.
func (s *Settings) roots() []string {
	if len(s.Root) > 0 {
		return s.Root
	}
	wd, err := os.Getwd()
	if err != nil || tooWide(wd) {
		return nil
	}
	return []string{wd}
}

// tooWide reports whether a directory is a home, contains one, is a system directory or the root of the file
// system: granting it unasked would expose far more than a project.
func tooWide(dir string) bool {
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	if home, err := os.UserHomeDir(); err == nil &&
		(dir == home || strings.HasPrefix(home, dir+string(filepath.Separator))) {
		return true
	}
	if filepath.Dir(dir) == dir {
		return true
	}
	system := []string{
		"/bin", "/boot", "/dev", "/etc", "/lib", "/lib64", "/proc", "/root", "/run", "/sbin", "/sys", "/usr", "/var", "/home",
		"/opt", "/srv", "/mnt", "/media", "/tmp", "/Users", "/System", "/Library", "/Applications",
	}
	if runtime.GOOS == "windows" {
		system = []string{os.Getenv("SystemRoot"), os.Getenv("ProgramFiles"), os.Getenv("ProgramData"), os.Getenv("PUBLIC")}
	}
	for _, d := range system {
		if d != "" && strings.EqualFold(dir, d) {
			return true
		}
	}
	return false
}
