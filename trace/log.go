package trace

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/mcp-funnel/mcp-funnel/internal/content"
)

const (
	maxText = 200      // bytes of a text, so that a line stays below maxLine
	maxFile = 64 << 20 // of one process on one day: about 200,000 calls
	day     = "20060102"
	ext     = ".jsonl"
)

// Log appends calls to <store>/trace/, one file a day and process, 0600:
// <YYYYMMDD>_<pid>-<random>.jsonl, the day in UTC. A nil Log and one of no
// directory keep nothing.
type Log struct {
	root *os.Root
	name string // the part of a file's name that is this process's
	now  func() time.Time

	mu   sync.Mutex
	file *os.File // of the day; nil before its first call
	day  string
	size int64
	torn bool // the last write ended within a line
	shut bool
}

// Open makes the directory where absent. The empty dir gives a log that keeps
// nothing; else it is the trace directory itself, <store>/trace. Files older
// than [Retention] are removed when a day's first call of all processes is written.
func Open(dir string) (*Log, error) { return open(dir, time.Now) }

func open(dir string, now func() time.Time) (*Log, error) {
	if dir == "" {
		return &Log{}, nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("open trace: %w", err)
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return nil, fmt.Errorf("open trace: %w", err)
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("open trace: %s is not a directory: move it away", dir)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("open trace: %w", err)
	}
	if have, err := root.Stat("."); err != nil || !os.SameFile(info, have) {
		_ = root.Close()
		return nil, fmt.Errorf("open trace: %s was replaced while it was opened", dir)
	}
	var random [4]byte
	rand.Read(random[:])
	name := strconv.Itoa(os.Getpid()) + "-" + hex.EncodeToString(random[:])
	return &Log{root: root, name: name, now: now}, nil
}

// Append writes one line with one write. Safe for concurrent use. Its texts are
// clipped to 200 bytes each. Where it fails, the call is not in the trace, and
// lines before and after it are whole.
func (l *Log) Append(c Call) error {
	if l == nil || l.root == nil {
		return nil
	}
	line, err := json.Marshal(c.bounded())
	if err != nil {
		return fmt.Errorf("write trace: %w", err)
	}
	line = append(line, '\n')
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.shut {
		return errors.New("write trace: it is closed")
	}
	if err := l.turn(); err != nil {
		return fmt.Errorf("write trace: %w", err)
	}
	if l.size+int64(len(line)) > maxFile {
		return fmt.Errorf("write trace: %d MiB were written today, which is all there is for one process", maxFile>>20)
	}
	if l.torn {
		line = append([]byte{'\n'}, line...)
	}
	n, err := l.file.Write(line)
	l.size += int64(n)
	l.torn = err != nil && (n > 0 || l.torn)
	if err != nil {
		return fmt.Errorf("write trace: %w", err)
	}
	return nil
}

// turn opens the file of the day.
func (l *Log) turn() error {
	today := l.now().UTC().Format(day)
	if l.file != nil && l.day == today {
		return nil
	}
	seen := l.changed() == today
	f, err := l.root.OpenFile(today+"_"+l.name+ext, os.O_WRONLY|os.O_APPEND|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) && l.day != "" { // the clock went back a day: it is ours
		f, err = l.root.OpenFile(today+"_"+l.name+ext, os.O_WRONLY|os.O_APPEND, 0)
	}
	if err != nil {
		return err
	}
	if l.file != nil {
		_ = l.file.Close()
	}
	l.file, l.day, l.size, l.torn = f, today, 0, false
	if info, err := f.Stat(); err == nil {
		l.size = info.Size()
	}
	if !seen {
		l.retire()
	}
	return nil
}

// changed is the day on which the directory last changed: whoever made a file in it then has looked for old ones, of which there may be
// one for each call of a month; "" where that cannot be told.
func (l *Log) changed() string {
	info, err := l.root.Stat(".")
	if err != nil {
		return ""
	}
	return info.ModTime().UTC().Format(day)
}

// retire removes the files of days long past; others' names are passed by.
func (l *Log) retire() {
	names, err := names(l.root)
	if err != nil {
		return
	}
	for _, n := range names {
		if at, ok := dayOf(n); ok && l.now().Sub(at) > Retention+24*time.Hour {
			_ = l.root.Remove(n)
		}
	}
}

// Close closes the file. It may be called again.
func (l *Log) Close() error {
	if l == nil || l.root == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.shut {
		return nil
	}
	l.shut = true
	var err error
	if l.file != nil {
		err = l.file.Close()
	}
	_ = l.root.Close()
	return err
}

// Dir is where the trace of a store stands.
func Dir(store string) string { return filepath.Join(store, "trace") }

func names(root *os.Root) ([]string, error) {
	d, err := root.Open(".")
	if err != nil {
		return nil, err
	}
	defer func() { _ = d.Close() }()
	return d.Readdirnames(-1)
}

// dayOf says of which day a file of ours is.
func dayOf(name string) (time.Time, bool) {
	stem, ok := strings.CutSuffix(name, ext)
	date, process, named := strings.Cut(stem, "_")
	pid, random, parts := strings.Cut(process, "-")
	if _, err := strconv.Atoi(pid); err != nil || !ok || !named || !parts || len(random) != 8 {
		return time.Time{}, false
	}
	at, err := time.Parse(day, date)
	return at, err == nil
}

// bounded makes a call fit for one line of JSON.
func (c Call) bounded() Call {
	c.V = Version
	c.At = c.At.UTC().Round(0)
	for _, s := range []*string{&c.Session, &c.Owner, &c.Tool, &c.CallHash, &c.Status, &c.Verdict, &c.Observation, &c.Error} {
		*s = content.ClipEnd(*s, maxText)
	}
	for _, f := range []*float64{&c.SeenMargin, &c.Millis} {
		if math.IsNaN(*f) || math.IsInf(*f, 0) {
			*f = 0
		}
	}
	return c
}
