package trace

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mcp-funnel/mcp-funnel/kinds/record"
	"github.com/mcp-funnel/mcp-funnel/system/osfile"
	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// maxLine is longer than any line that Append writes.
const maxLine = 64 << 10

// Read implements [Store]. A missing directory has no calls.
func (l *Log) Read(since time.Time, skipped *int) iter.Seq2[Call, error] {
	if skipped == nil {
		skipped = new(int)
	}
	return func(yield func(Call, error) bool) {
		root, err := os.OpenRoot(l.dir)
		if errors.Is(err, fs.ErrNotExist) {
			return
		}
		if err != nil {
			yield(Call{}, fmt.Errorf("read trace: %w", err))
			return
		}
		defer func() { _ = root.Close() }()
		all, err := fs.Glob(root.FS(), "*"+ext)
		if err != nil {
			yield(Call{}, fmt.Errorf("read trace: %w", err))
			return
		}
		slices.Sort(all) // all begin with the day
		for _, name := range all {
			// A call is in the file of the day on which it ended, or of that on which it began if it was copied.
			at, ok := dayOf(name)
			if !ok || at.Add(24*time.Hour).Before(since) {
				continue
			}
			if !readFile(root, name, since, skipped, yield) {
				return
			}
		}
	}
}

// Changed implements [Store]: it reads the directory only after a file was added.
func (l *Log) Changed() (string, error) {
	if l == nil || l.dir == "" {
		return "", nil
	}
	l.watched.Lock()
	defer l.watched.Unlock()
	info, err := os.Stat(l.dir)
	today := time.Now().UTC().Format(day)
	if err == nil && (l.watched.day != today || !info.ModTime().Equal(l.watched.at)) {
		l.watched.day, l.watched.at = today, info.ModTime()
		l.watched.names, err = fs.Glob(os.DirFS(l.dir), today+"*")
	}
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read trace: %w", err)
	}
	state := []byte(info.ModTime().String())
	for _, name := range l.watched.names {
		if info, err := os.Lstat(filepath.Join(l.dir, name)); err == nil {
			state = fmt.Append(state, " ", info.Size())
		}
	}
	return string(state), nil
}

// readFile yields the calls of one file. It returns false if yield did.
func readFile(root *os.Root, name string, since time.Time, skipped *int, yield func(Call, error) bool) bool {
	f, err := openRegular(root, name)
	if errors.Is(err, fs.ErrNotExist) { // removed meanwhile, or not ours
		return true
	}
	if err != nil {
		return yield(Call{}, fmt.Errorf("read trace: %w", err))
	}
	defer func() { _ = f.Close() }()
	lines := record.NewLines(context.Background(), f, maxLine)
	for {
		line, err := lines.Next()
		var c Call
		switch {
		case errors.Is(err, io.EOF), err == nil && lines.Unended: // the end is torn, or being written
			return true
		case err != nil:
			return yield(Call{}, fmt.Errorf("read trace: %w", err))
		case !lines.Whole() || json.Unmarshal(line, &c) != nil || c.V != Version:
			*skipped++
		case !c.At.Before(since):
			c.Ref = strings.TrimSuffix(name, ext) + "." + strconv.FormatInt(lines.At.Start, 10)
			if !yield(c, nil) {
				return false
			}
		}
	}
}

// openRegular opens a file for reading. If it is not a regular file, the error is [fs.ErrNotExist].
func openRegular(root *os.Root, name string) (*os.File, error) {
	info, err := root.Lstat(name)
	if err != nil || !info.Mode().IsRegular() {
		return nil, cmp.Or(err, fs.ErrNotExist)
	}
	return root.OpenFile(name, os.O_RDONLY|osfile.Nonblock, 0)
}

// refName matches the Ref of a call: the day, the name of the file, and the offset of the line.
var refName = content.Pattern(`^((\d{8})_\d{1,10}-[0-9a-f]{8})\.(0|[1-9]\d{0,9})$`)

// Shown implements [Store].
func (l *Log) Shown(ref string) (c Call, s Shown, err error) {
	parts := refName().FindStringSubmatch(ref)
	if parts == nil || l == nil {
		return c, s, notFound(ref)
	}
	root, err := os.OpenRoot(l.dir)
	if err != nil {
		return c, s, fmt.Errorf("read trace: %w", err)
	}
	defer func() { _ = root.Close() }()
	offset, _ := strconv.ParseInt(parts[3], 10, 64) // it has at most ten digits
	part, err := readPart(root, parts[1]+ext, offset, maxLine)
	if err != nil {
		return c, s, fmt.Errorf("read trace: %w", err)
	}
	var found struct {
		Call
		Shown place `json:"shown"`
	}
	line, _, ended := bytes.Cut(part, []byte("\n"))
	if !ended || json.Unmarshal(line, &found) != nil || found.V != Version { // no end of a line is an object
		return c, s, notFound(ref)
	}
	found.Ref = ref
	at := found.Shown
	text, err := readPart(root, parts[2]+shownExt, max(at.At, 0), min(max(at.Len, 0), maxRecord))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return found.Call, s, fmt.Errorf("read trace: %w", err)
	}
	if crc32.ChecksumIEEE(text) != at.Sum || json.Unmarshal(text, &s) != nil {
		return found.Call, s, ErrNotKept
	}
	return found.Call, s, nil
}

// readPart reads up to max bytes of a file at an offset.
func readPart(root *os.Root, name string, offset int64, max int) ([]byte, error) {
	f, err := openRegular(root, name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	b := make([]byte, max)
	n, err := f.ReadAt(b, offset)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return b[:n], err
}
