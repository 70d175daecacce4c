package trace

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"slices"
	"time"

	"github.com/mcp-funnel/mcp-funnel/kinds/record"
	"github.com/mcp-funnel/mcp-funnel/system/osfile"
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

// readFile yields the calls of one file. It returns false if yield did.
func readFile(root *os.Root, name string, since time.Time, skipped *int, yield func(Call, error) bool) bool {
	info, err := root.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !info.Mode().IsRegular() { // removed meanwhile, or not ours
		return true
	}
	var f *os.File
	if err == nil {
		f, err = root.OpenFile(name, os.O_RDONLY|osfile.Nonblock, 0)
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
		case !c.At.Before(since) && !yield(c, nil):
			return false
		}
	}
}
