package usage

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/mcp-funnel/mcp-funnel/session/jsontree"
	"github.com/mcp-funnel/mcp-funnel/system/osfile"
)

// Client is a client that writes session files: how they are found, and what their lines say of the context.
type Client struct {
	Source string // of the usage in its files

	name     string    // as people call it
	variable string    // of the environment: its directory
	dir      string    // its directory below the home directory, if the variable is not set
	records  [2]string // a line without any of them has no record
	files    func(dir, cwd, session string) []found
	begunIn  func(path, cwd string) bool // a file of an unnamed session belongs to the working directory; nil: all do
	record   func(line *jsontree.Node) (Usage, error)
	session  func(path string) string // by the name of its file; nil: its records name it
}

// Clients are the clients by their names on the command line.
var Clients = map[string]*Client{
	"claude": {
		Source: FromClaude, name: "Claude Code", variable: "CLAUDE_CONFIG_DIR", dir: ".claude",
		records: [2]string{`"usage"`, `compact_boundary`}, files: claudeFiles, record: claudeRecord,
	},
	"codex": {
		Source: FromCodex, name: "Codex", variable: "CODEX_HOME", dir: ".codex",
		records: [2]string{`"token_count"`, `"compacted"`}, files: codexFiles, begunIn: codexBegunIn, record: codexRecord,
		session: codexSession,
	},
}

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

// maxTail is how much of the end of a session file is read, in bytes. firstTail is tried before: the last record is
// nearly always there, and the server reads the file once in each call.
const (
	maxTail   = 4 << 20
	firstTail = 256 << 10
)

// ErrNoSession is the error of a search that found no session file. ErrUnknown is the error for a session file that has
// no usage record at its end. ErrCompacted is an ErrUnknown for a context that was compacted, and the model was not
// asked since.
var (
	ErrNoSession = errors.New("no session file was found")
	ErrUnknown   = fmt.Errorf("no usage is recorded in the last %d MiB", maxTail>>20)
	ErrCompacted = fmt.Errorf("%w: the context was compacted, and the model was not asked since", ErrUnknown)
)

// found is a file and its last change.
type found struct {
	path string
	at   time.Time
}

// Find returns the file of a session that runs in a directory; without a session, the newest one. It searches the
// client's own directory, which a variable of the environment may name.
func (c *Client) Find(cwd, session string) (string, error) {
	dir := os.Getenv(c.variable)
	if !filepath.IsAbs(dir) {
		home, _ := os.UserHomeDir() // "" if unknown
		if !filepath.IsAbs(home) {
			return "", fmt.Errorf("usage: the home directory is unknown: set %s, or name the file", c.variable)
		}
		dir = filepath.Join(home, c.dir)
	}
	files := c.files(dir, cwd, session)
	slices.SortStableFunc(files, func(a, b found) int { return b.at.Compare(a.at) })
	for _, f := range files[:min(len(files), maxHeads)] {
		if session != "" || c.begunIn == nil || c.begunIn(f.path, cwd) {
			return f.path, nil
		}
	}
	return "", fmt.Errorf("usage: %w: %s has none for %s; name the file", ErrNoSession, c.name, cwd)
}

// claudeFiles lists the files <dir>/projects/<working directory>/<session>.jsonl.
func claudeFiles(dir, cwd, session string) (files []found) {
	for _, dir := range claudeDirs(filepath.Join(dir, "projects"), cwd) {
		files = append(files, list(dir, func(name string) bool {
			stem, ok := strings.CutSuffix(name, jsonl)
			return ok &&
				(stem == session || session == "" && !strings.HasPrefix(stem, "agent-")) // agents are subagents
		})...)
	}
	return files
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

// codexFiles lists the files <dir>/sessions/YYYY/MM/DD/rollout-TIME-SESSION.jsonl. Days older than the newest 62 that
// have files are not searched.
func codexFiles(dir, _, session string) (files []found) {
	days := []string{filepath.Join(dir, "sessions")}
	for range 3 {
		var next []string
		for _, dir := range days {
			for _, e := range slices.Backward(entries(dir)) {
				if e.IsDir() && len(next) < maxDays {
					next = append(next, filepath.Join(dir, e.Name()))
				}
			}
		}
		days = next
	}
	for _, day := range days {
		files = append(files, list(day, func(name string) bool {
			return strings.HasPrefix(name, rollout) && strings.HasSuffix(name, jsonl) &&
				(session == "" || codexSession(name) == session)
		})...)
		if session != "" && len(files) > 0 {
			break
		}
	}
	return files
}

// codexBegunIn reports whether the first line of a file of Codex names a directory, and no parent session: a subagent
// has a session of its own.
func codexBegunIn(path, cwd string) bool {
	f, _, err := osfile.OpenOwn(path)
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }()
	line, err := bufio.NewReader(io.LimitReader(f, maxHead)).ReadBytes('\n')
	if err != nil {
		return false
	}
	l, err := parse(line)
	dir := l.Get("payload", "cwd")
	if err != nil || l.Str("type") != "session_meta" || !dir.IsString() || !l.IsNull("payload", "source", "subagent") {
		return false
	}
	begun := jsontree.Unquote(line[dir.Start:dir.End])
	if filepath.Clean(begun) == filepath.Clean(cwd) {
		return true
	}
	a, err := os.Stat(begun)
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

// Last returns the last usage record of a session file. It reads numbers, ids and a time from the last 4 MiB of the
// file, which must be a regular file of this user, and no link.
func (c *Client) Last(path string) (u Usage, err error) {
	f, _, err := osfile.OpenOwn(path)
	if err != nil {
		return Usage{}, fmt.Errorf("usage: %w", err)
	}
	defer func() { _ = f.Close() }()
	for _, most := range []int64{firstTail, maxTail} {
		var tail []byte
		if tail, err = readTail(f, most); err == nil {
			u, err = c.lastIn(tail)
		}
		if err != ErrUnknown { //nolint:errorlint // ErrCompacted is an ErrUnknown too, but it is an answer
			break
		}
	}
	if c.session != nil {
		u.Session = c.session(path)
	}
	if err != nil {
		return Usage{}, fmt.Errorf("usage: %s: %w", path, err)
	}
	return u, nil
}

// lastIn returns the last usage record of lines. One that cannot be parsed is torn, or of another form.
func (c *Client) lastIn(tail []byte) (Usage, error) {
	for len(tail) > 0 {
		start := bytes.LastIndexByte(tail, '\n') + 1
		line := tail[start:]
		tail = tail[:max(start-1, 0)]
		if !bytes.Contains(line, []byte(c.records[0])) && !bytes.Contains(line, []byte(c.records[1])) {
			continue
		}
		l, err := parse(line)
		if err != nil {
			continue
		}
		u, err := c.record(l)
		if err == nil && u.PromptTokens == 0 {
			continue
		}
		u.Source = c.Source
		u.At, _ = parseTime(l.Str("timestamp")) // without a time, the record counts as made now
		return u, err
	}
	return Usage{}, ErrUnknown
}

// Tail returns the whole lines among the last 4 MiB of a session file, which must be this user's and no link.
func Tail(path string) ([]byte, error) {
	f, _, err := osfile.OpenOwn(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // it was only read
	return readTail(f, maxTail)
}

// readTail returns the whole lines among the last most bytes of a file. A last line without its end, which the client
// may be writing, is among them.
func readTail(f *os.File, most int64) ([]byte, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	size := info.Size()
	b := make([]byte, min(size, most+1)) // the byte before the tail tells whether its first line is whole
	n, err := f.ReadAt(b, size-int64(len(b)))
	if err != nil && !errors.Is(err, io.EOF) { // the file may have been truncated meanwhile
		return nil, err
	}
	if size <= most {
		return b[:n], nil
	}
	_, whole, _ := bytes.Cut(b[:n], []byte{'\n'})
	return whole, nil
}

// claudeRecord returns the usage of a line of Claude Code. It skips the lines of subagents, which have contexts of
// their own.
func claudeRecord(l *jsontree.Node) (Usage, error) {
	switch kind := l.Str("type"); {
	case l.IsTrue("isSidechain"):
		return Usage{}, nil
	case kind == "system" && l.Str("subtype") == "compact_boundary":
		return Usage{}, ErrCompacted
	case kind != "assistant":
		return Usage{}, nil
	}
	u, err := OfMessage(l.Get("message"))
	u.Session = nameIn(l, "sessionId")
	return u, err
}

// OfMessage returns what an answer of the Anthropic API says of its request; no prompt tokens if it says nothing. A
// message that the client wrote itself in the model's name says nothing.
func OfMessage(m *jsontree.Node) (u Usage, err error) {
	if m.Str("model") == "<synthetic>" {
		return Usage{}, nil
	}
	u.Turn, u.Model = nameIn(m, "id"), nameIn(m, "model")
	if u.PromptTokens, err = promptIn(nil, m.Get("usage")); err != nil {
		return u, fmt.Errorf("message.usage %w", errTokens)
	}
	return u, nil
}

// codexRecord returns the usage of a line of Codex.
func codexRecord(l *jsontree.Node) (Usage, error) {
	switch l.Str("type") {
	case "compacted":
		return Usage{}, ErrCompacted
	case "event_msg":
		return OfTokenCount(l.Get("payload"))
	}
	return Usage{}, nil
}

// OfTokenCount returns what Codex reports of a request; no prompt tokens if it reports nothing. cached_input_tokens is
// a part of input_tokens. After a compaction Codex writes its estimate of the new context as total_tokens, and 0 as
// input_tokens. The sum over all requests, total_token_usage, only tells one request from the next: Codex repeats a
// record when its limits change.
func OfTokenCount(payload *jsontree.Node) (u Usage, err error) {
	if payload.Str("type") != "token_count" {
		return Usage{}, nil
	}
	for _, name := range []string{"input_tokens", "total_tokens"} {
		u.PromptTokens, err = tokens(nil, payload.Get("info", "last_token_usage", name))
		if err != nil {
			return u, fmt.Errorf("last_token_usage %w", err)
		}
		if u.PromptTokens > 0 {
			break
		}
	}
	if u.Window, err = tokens(nil, payload.Get("info", "model_context_window")); err != nil {
		return u, fmt.Errorf("model_context_window %w", err)
	}
	if total := payload.Get("info", "total_token_usage", "total_tokens"); !total.IsNull() && validID(total.Text) {
		u.Turn = total.Text
	}
	return u, nil
}

// codexSession returns the id in a file name, rollout-TIME-ID.jsonl; "" if there is none.
func codexSession(path string) string {
	const uuid = 36
	stem, _ := strings.CutSuffix(filepath.Base(path), jsonl)
	if stem, ok := strings.CutPrefix(stem, rollout); ok && len(stem) > uuid && isFileID(stem[len(stem)-uuid:]) {
		return stem[len(stem)-uuid:]
	}
	return ""
}

// isFileID reports whether a session's id may be a part of a file name.
func isFileID(s string) bool {
	other := func(r rune) bool { return !isAlphanumeric(r) && r != '-' && r != '_' }
	return s != "" && len(s) <= 100 && !strings.ContainsFunc(s, other)
}

func isAlphanumeric(r rune) bool {
	return r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z'
}
