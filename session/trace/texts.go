package trace

import (
	"errors"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/mcp-funnel/mcp-funnel/system/osfile"
)

const (
	shownExt = ".shown"
	growth   = 4 << 20 // bytes of a day's texts after which their room is looked for again
)

// place is where a record is in the texts of its day.
type place struct {
	At  int64  `json:"at"`
	Len int    `json:"len"`
	Sum uint32 `json:"crc32"` // of the record: a file that is torn, or was written by two at once, shows no wrong text
}

// texts appends records to <store>/trace/<YYYYMMDD>.shown: one file (0600) of a day, for all processes. So its size says
// what they have written, and a directory of many commands has few more files.
type texts struct {
	root *os.Root
	now  func() time.Time
	max  int64    // bytes of the files of all days
	file *os.File // of the day; nil before its first text
	name string   // of the file
	room int64    // size up to which the file may grow before makeRoom is called again
}

// begin closes the file of the day before.
func (t *texts) begin(day string) {
	t.close()
	t.name, t.room = day+shownExt, 0
}

func (t *texts) close() {
	if t.file != nil {
		_ = t.file.Close()
		t.file = nil
	}
}

// add appends a record, and returns its place; nil if there is no room, or it cannot be written.
func (t *texts) add(record []byte) *place {
	n := int64(len(record))
	if n == 0 || n > t.max || t.open() != nil {
		return nil
	}
	size, err := t.file.Seek(0, io.SeekEnd)
	if err == nil && size+n > t.room {
		t.room = t.makeRoom(size, n)
	}
	if err != nil || size+n > t.room {
		return nil
	}
	_, err = t.file.Write(record) // in one write, at the end, wherever that is now
	end, lost := t.file.Seek(0, io.SeekCurrent)
	if err != nil || lost != nil {
		return nil
	}
	return &place{end - n, len(record), crc32.ChecksumIEEE(record)}
}

func (t *texts) open() error {
	if t.file != nil {
		return nil
	}
	f, err := t.root.OpenFile(t.name, os.O_WRONLY|os.O_APPEND|os.O_CREATE|osfile.Nonblock, 0o600)
	if err != nil {
		return err
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		_ = f.Close()
		return errors.Join(err, osfile.ErrNotRegular)
	}
	t.file = f
	return nil
}

// makeRoom removes the texts of the oldest days until n bytes more than size fit into the day's file. It returns the size
// that this may reach; that is less than what is needed if there is no room.
func (t *texts) makeRoom(size, n int64) int64 {
	left, full := t.max-size-n, false
	for at := t.now().UTC().Add(24 * time.Hour); t.now().Sub(at) < Retention+48*time.Hour; at = at.Add(-24 * time.Hour) {
		name := at.Format(day) + shownExt
		info, err := t.root.Lstat(name)
		if err != nil || name == t.name {
			continue
		}
		if full = full || name < t.name && info.Size() > left; full && t.root.Remove(name) == nil {
			continue
		}
		left -= info.Size()
	}
	return size + n + min(left, growth)
}

// readText reads the record at a place in the texts of a day.
func readText(root *os.Root, day string, at *place) ([]byte, error) {
	if at == nil || at.At < 0 || at.Len < 1 || at.Len > maxRecord {
		return nil, ErrNotKept
	}
	f, err := openRegular(root, day+shownExt)
	if errors.Is(err, fs.ErrNotExist) {
		err = ErrNotKept
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	record := make([]byte, at.Len)
	_, err = f.ReadAt(record, at.At)
	if errors.Is(err, io.EOF) || err == nil && crc32.ChecksumIEEE(record) != at.Sum {
		err = ErrNotKept
	}
	return record, err
}
