package trace

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/mcp-funnel/mcp-funnel/system/osfile"
	"github.com/mcp-funnel/mcp-funnel/text/content"
)

const (
	maxText   = 200 // bytes of one text field, so that a line stays below 64 KiB
	maxOrigin = 8
	maxOpened = 200
	maxFile   = 64 << 20 // bytes of one process on one day: about 200,000 calls
	maxPlace  = 100      // bytes that Append adds to a line
	day       = "20060102"
	ext       = ".jsonl"
)

// Log appends calls to <store>/trace/<YYYYMMDD>_<pid>-<random>.jsonl: one file (0600) per day in UTC and process. A nil
// Log, and one without a directory, record nothing.
type Log struct {
	room

	dir  string
	root *os.Root
	name string // this process's part of the file name
	now  func() time.Time

	watched struct { // of Changed
		sync.Mutex
		day   string
		at    time.Time
		names []string
	}

	mu     sync.Mutex
	file   *os.File // of the day; nil before the first call
	day    string
	size   int64
	torn   bool // the last write ended in the middle of a line
	texts  texts
	closed bool
}

// Open opens the trace directory <store>/trace and creates it if missing. An empty dir returns a Log that records
// nothing. Files older than [Retention] are removed when any process writes the first call of a day.
func Open(dir string) (*Log, error) { return open(dir, time.Now) }

func open(dir string, now func() time.Time) (*Log, error) {
	if dir == "" {
		return &Log{}, nil
	}
	err := os.MkdirAll(dir, 0o700)
	var root *os.Root
	if err == nil {
		root, err = osfile.OpenDir(dir) // of this user, never through a link
	}
	if err != nil {
		return nil, fmt.Errorf("open trace: %w", err)
	}
	var random [4]byte
	rand.Read(random[:])
	l := &Log{dir: dir, root: root, name: fmt.Sprintf("%d-%x", os.Getpid(), random), now: now}
	l.texts.root, l.texts.now = root, now
	l.KeepShown(defaultShown)
	return l, nil
}

// InDir returns the log of a directory for reading: it creates nothing, and records nothing.
func InDir(dir string) *Log { return &Log{dir: dir} }

// Append implements [Store]: it writes one line in one write. Safe for concurrent use. If it fails the lines before and
// after it are complete.
func (l *Log) Append(c Call, s *Shown) error {
	if l == nil || l.root == nil {
		return nil
	}
	return l.append(c, s, l.now())
}

// append adds a call to the file of a day.
func (l *Log) append(c Call, s *Shown, at time.Time) error {
	record := s.record(&c)
	line, err := c.bounded().line()
	if err != nil {
		return fmt.Errorf("write trace: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return errors.New("write trace: the log is closed")
	}
	if err := l.openDay(at); err != nil {
		return fmt.Errorf("write trace: %w", err)
	}
	if l.size+int64(len(line)) > maxFile {
		return fmt.Errorf("write trace: the limit of %d MiB per process and day is reached", maxFile>>20)
	}
	if at := l.texts.add(record, l.max.Load()); at != nil {
		line = fmt.Appendf(line[:len(line)-2], `,"shown":{"at":%d,"len":%d,"crc32":%d}}`+"\n", at.At, at.Len, at.Sum)
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

// openDay opens the file of the day of a time.
func (l *Log) openDay(at time.Time) error {
	today := at.UTC().Format(day)
	if l.file != nil && l.day == today {
		return nil
	}
	cleaned := l.lastChangedDay() == today
	f, err := l.root.OpenFile(today+"_"+l.name+ext, os.O_WRONLY|os.O_APPEND|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) && l.day != "" { // the day before again: the file is our own
		f, err = l.root.OpenFile(today+"_"+l.name+ext, os.O_WRONLY|os.O_APPEND, 0)
	}
	if err != nil {
		return err
	}
	if l.file != nil {
		_ = l.file.Close()
	}
	l.file, l.day, l.size, l.torn = f, today, 0, false
	l.texts.begin(today)
	if info, err := f.Stat(); err == nil {
		l.size = info.Size()
	}
	if !cleaned {
		l.removeOld()
	}
	return nil
}

// lastChangedDay returns the day on which a file was last added to the directory, "" if unknown. The process that added
// it has removed old files, so the directory, which may hold a file for each call of a month, need not be read again.
func (l *Log) lastChangedDay() string {
	info, err := l.root.Stat(".")
	if err != nil {
		return ""
	}
	return info.ModTime().UTC().Format(day)
}

// removeOld removes the files of days beyond Retention, and ignores other names.
func (l *Log) removeOld() {
	files, _ := fs.Glob(l.root.FS(), "*")
	for _, name := range files {
		if at, ok := dayOf(name); ok && l.now().Sub(at) > Retention+24*time.Hour {
			_ = l.root.Remove(name)
		}
	}
}

// Close closes the log. It may be called again.
func (l *Log) Close() error {
	if l == nil || l.root == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil
	}
	l.closed = true
	var err error
	if l.file != nil {
		err = l.file.Close()
	}
	l.texts.begin("")
	_ = l.root.Close()
	return err
}

// Dir returns the trace directory of a store.
func Dir(store string) string { return filepath.Join(store, "trace") }

// fileName matches the files of the trace.
var fileName = content.Pattern(`^\d{8}(?:_\d{1,10}-[0-9a-f]{8}\.jsonl|\.shown)$`)

// dayOf returns the day of a trace file; false for any other name.
func dayOf(name string) (time.Time, bool) {
	at, err := time.Parse(day, name[:min(len(name), len(day))])
	return at, err == nil && fileName().MatchString(name)
}

// bounded truncates the texts of a call and removes numbers that JSON cannot hold.
func (c Call) bounded() Call {
	c.V = Version
	c.At = c.At.UTC().Round(0)
	for _, s := range []*string{
		&c.Session, &c.Owner, &c.Tool, &c.CallHash, &c.Name, &c.Status, &c.Verdict, &c.Observation, &c.Error,
		&c.Via, &c.Source, &c.Reason, &c.WindowFrom, &c.UsageFrom, &c.Turn, &c.Client, &c.ClientVersion, &c.Model,
	} {
		*s = content.ClipEnd(*s, maxText)
	}
	c.Origin = slices.Clone(c.Origin[:min(len(c.Origin), maxOrigin)])
	for i, s := range c.Origin {
		c.Origin[i] = content.ClipEnd(s, maxText)
	}
	if more := len(c.Opened) - maxOpened; more > 0 {
		c.Opened, c.OpenedMore = c.Opened[:maxOpened], c.OpenedMore+more
	}
	for _, f := range []*float64{&c.SeenMargin, &c.Millis} {
		if math.IsNaN(*f) || math.IsInf(*f, 0) {
			*f = 0
		}
	}
	return c
}

// line returns a call as a line that Read takes: with fewer of the files that were opened if their names take too much
// room. Those that are left out are counted.
func (c Call) line() ([]byte, error) {
	for {
		line, err := json.Marshal(c)
		if err != nil || len(line) < maxLine-maxPlace || len(c.Opened) == 0 {
			return append(line, '\n'), err
		}
		half := len(c.Opened) / 2
		c.OpenedMore += len(c.Opened) - half
		c.Opened = c.Opened[:half]
	}
}
