package usage

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/mcp-funnel/mcp-funnel/system/osfile"
)

const (
	jsonl   = ".jsonl"
	rollout = "rollout-"
)

// Limits of a search for a session file.
const (
	maxNames = 10_000  // entries of one directory
	maxDays  = 62      // directories of Codex, one a day
	maxHeads = 200     // files of Codex whose first line is read
	maxHead  = 1 << 20 // bytes of a first line
)

// ErrNoSession is the error of a search that found no session file.
var ErrNoSession = errors.New("no session file was found")

// Place is where a client keeps its session files: the home directory and the environment of its user.
type Place struct {
	Home    string
	Environ func(string) string // may be nil
}

// config returns the client's directory: that of its variable, else the default below the home directory.
func (p Place) config(variable, name string) (string, error) {
	if p.Environ != nil {
		if dir := p.Environ(variable); filepath.IsAbs(dir) {
			return dir, nil
		}
	}
	if !filepath.IsAbs(p.Home) {
		return "", fmt.Errorf("usage: the home directory is unknown: set %s, or name the file", variable)
	}
	return filepath.Join(p.Home, name), nil
}

// found is a file and its last change.
type found struct {
	path string
	at   time.Time
}

// FindClaude returns the file of a session of Claude Code that runs in a directory; without a session, the newest one.
// The files are <config>/projects/<directory>/<session>.jsonl.
func FindClaude(p Place, cwd, session string) (string, error) {
	config, err := p.config("CLAUDE_CONFIG_DIR", ".claude")
	if err != nil {
		return "", err
	}
	if session != "" && !isFileID(session) {
		return "", fmt.Errorf("usage: %w: the session's name cannot be a file name", ErrNoSession)
	}
	var files []found
	for _, dir := range claudeDirs(filepath.Join(config, "projects"), cwd) {
		files = append(files, list(dir, func(name string) bool {
			stem, ok := strings.CutSuffix(name, jsonl)
			return ok &&
				(stem == session || session == "" && !strings.HasPrefix(stem, "agent-")) // agents are subagents
		})...)
	}
	return newest(files, "Claude Code", cwd)
}

// claudeDirs returns the directories that Claude Code may use for a working directory: every character but letters and
// digits is a dash, and a name of over 200 characters is cut and ends in a hash.
func claudeDirs(projects, cwd string) (dirs []string) {
	const longest = 200
	names := []string{claudeName(cwd)}
	if real, err := filepath.EvalSymlinks(cwd); err == nil && real != cwd {
		names = append(names, claudeName(real))
	}
	for _, name := range names {
		if len(name) <= longest {
			dirs = append(dirs, filepath.Join(projects, name))
			continue
		}
		for _, entry := range entries(projects) {
			if rest, ok := strings.CutPrefix(entry.Name(), name[:longest]+"-"); ok && isFileID(rest) {
				dirs = append(dirs, filepath.Join(projects, entry.Name()))
			}
		}
	}
	return dirs
}

// claudeName returns the name of a directory as Claude Code writes it. It counts UTF-16 units.
func claudeName(dir string) string {
	var b strings.Builder
	for _, r := range dir {
		switch {
		case isAlphanumeric(r):
			b.WriteRune(r)
		case r > 0xffff:
			b.WriteString("--")
		default:
			b.WriteByte('-')
		}
	}
	return b.String()
}

// FindCodex returns the file of a session of Codex; without a session, the newest one that was begun in the working
// directory. The files are <home>/sessions/YYYY/MM/DD/rollout-TIME-SESSION.jsonl. Days older than the newest 62 that
// have files are not searched.
func FindCodex(p Place, cwd, session string) (string, error) {
	home, err := p.config("CODEX_HOME", ".codex")
	if err != nil {
		return "", err
	}
	var files []found
	for _, day := range days(filepath.Join(home, "sessions")) {
		files = append(files, list(day, func(name string) bool {
			return strings.HasPrefix(name, rollout) && strings.HasSuffix(name, jsonl) &&
				(session == "" || codexSession(name) == session)
		})...)
		if session != "" && len(files) > 0 {
			break
		}
	}
	if session != "" {
		return newest(files, "Codex", cwd)
	}
	slices.SortFunc(files, func(a, b found) int { return b.at.Compare(a.at) })
	for _, f := range files[:min(len(files), maxHeads)] {
		if begunIn(f.path, cwd) {
			return f.path, nil
		}
	}
	return newest(nil, "Codex", cwd)
}

// days returns the newest directories of YYYY/MM/DD, the newest first.
func days(sessions string) (dirs []string) {
	level := []string{sessions}
	for range 3 {
		var next []string
		for _, dir := range level {
			all := entries(dir)
			slices.Reverse(all)
			for _, e := range all {
				if e.IsDir() && isFileID(e.Name()) && len(next) < maxDays {
					next = append(next, filepath.Join(dir, e.Name()))
				}
			}
		}
		level = next
	}
	return level
}

// begunIn reports whether the first line of a file of Codex names a directory, and no parent session: a subagent has a
// session of its own.
func begunIn(path, cwd string) bool {
	f, _, err := osfile.OpenOwn(path)
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }()
	line, err := bufio.NewReader(io.LimitReader(f, maxHead)).ReadBytes('\n')
	if err != nil {
		return false
	}
	var l struct {
		Type    text `json:"type"`
		Payload struct {
			CWD    text            `json:"cwd"`
			Source json.RawMessage `json:"source"`
		} `json:"payload"`
	}
	if json.Unmarshal(line, &l) != nil || l.Type != "session_meta" || l.Payload.CWD == "" {
		return false
	}
	var source map[string]json.RawMessage
	if json.Unmarshal(l.Payload.Source, &source) == nil && source["subagent"] != nil {
		return false
	}
	dir := string(l.Payload.CWD)
	if filepath.Clean(dir) == filepath.Clean(cwd) {
		return true
	}
	a, err := os.Stat(dir)
	if err != nil {
		return false
	}
	b, err := os.Stat(cwd)
	return err == nil && os.SameFile(a, b)
}

// list returns the regular files of a directory whose names are wanted.
func list(dir string, wanted func(name string) bool) (files []found) {
	for _, e := range entries(dir) {
		if !e.Type().IsRegular() || !wanted(e.Name()) {
			continue
		}
		if info, err := e.Info(); err == nil {
			files = append(files, found{filepath.Join(dir, e.Name()), info.ModTime()})
		}
	}
	return files
}

// entries returns at most 10,000 entries of a directory, sorted by name; none if it cannot be read.
func entries(dir string) []fs.DirEntry {
	d, err := os.OpenFile(dir, os.O_RDONLY|osfile.Nonblock, 0) // a FIFO would make us wait for a writer
	if err != nil {
		return nil
	}
	defer func() { _ = d.Close() }()
	all, _ := d.ReadDir(maxNames)
	slices.SortFunc(all, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return all
}

// newest returns the path of the file that changed last.
func newest(files []found, client, cwd string) (string, error) {
	if len(files) == 0 {
		return "", fmt.Errorf("usage: %w: %s has none for %s; name the file", ErrNoSession, client, cwd)
	}
	return slices.MaxFunc(files, func(a, b found) int { return a.at.Compare(b.at) }).path, nil
}
