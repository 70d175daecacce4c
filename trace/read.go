package trace

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"slices"
	"time"
)

// maxLine is more than any line that Append writes.
const maxLine = 16 << 10

// Read visits the calls since a time in the trace directory dir (see [Dir]),
// day by day, each process's in the order they were written. Lines that are
// torn, foreign or of another [Version] are passed by; a directory that is not
// there has no calls. A file that cannot be read is told as an error, and the
// next one follows. Memory does not grow with the trace.
func Read(dir string, since time.Time) iter.Seq2[Call, error] {
	return func(yield func(Call, error) bool) {
		root, err := os.OpenRoot(dir)
		if errors.Is(err, fs.ErrNotExist) {
			return
		}
		if err != nil {
			yield(Call{}, fmt.Errorf("read trace: %w", err))
			return
		}
		defer func() { _ = root.Close() }()
		all, err := names(root)
		if err != nil {
			yield(Call{}, fmt.Errorf("read trace: %w", err))
			return
		}
		slices.Sort(all) // the day comes first in a name
		for _, name := range all {
			// A call is filed under the day it ended on, which is not before it began.
			at, ok := dayOf(name)
			if !ok || at.Add(24*time.Hour).Before(since) {
				continue
			}
			if !readFile(root, name, since, yield) {
				return
			}
		}
	}
}

func readFile(root *os.Root, name string, since time.Time, yield func(Call, error) bool) bool {
	info, err := root.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) { // retired meanwhile
		return true
	}
	if err == nil && !info.Mode().IsRegular() {
		return true
	}
	var f *os.File
	if err == nil {
		f, err = root.OpenFile(name, os.O_RDONLY|nonblock, 0)
	}
	if err != nil {
		return yield(Call{}, fmt.Errorf("read trace: %w", err))
	}
	defer func() { _ = f.Close() }()
	r := bufio.NewReaderSize(f, maxLine)
	for {
		line, err := r.ReadSlice('\n')
		if err == nil {
			var c Call
			if json.Unmarshal(line, &c) == nil && c.V == Version && !c.At.Before(since) && !yield(c, nil) {
				return false
			}
			continue
		}
		for errors.Is(err, bufio.ErrBufferFull) { // not a line of ours: to its end
			_, err = r.ReadSlice('\n')
		}
		if err == io.EOF {
			return true // what stands behind the last newline is torn, or being written
		}
		if err != nil {
			return yield(Call{}, fmt.Errorf("read trace: %w", err))
		}
	}
}
