package trace

import (
	"hash/crc32"
	"io"
	"os"
	"sync/atomic"
	"time"

	"github.com/mcp-funnel/mcp-funnel/system/osfile"
)

const (
	shownExt = ".shown"
	growth   = 4 << 20 // bytes of a day's texts after which their room is looked for again
)

// room is how many bytes texts may take.
type room struct{ max atomic.Int64 }

// KeepShown implements [Store].
func (r *room) KeepShown(max int64) { r.max.Store(max) }

// place is where a record is in the texts of its day.
type place struct {
	At  int64  `json:"at"`
	Len int    `json:"len"`
	Sum uint32 `json:"crc32"` // of the record: a file that is torn, or was written by two at once, shows no wrong text
}

// texts appends records to <store>/trace/<YYYYMMDD>.shown: one file (0600) of a day, for all processes. So its size
// says what they have written, and a directory of many commands has few more files.
type texts struct {
	root *os.Root
	now  func() time.Time
	name string   // of the file of the day
	file *os.File // nil before its first text
	upTo int64    // size that the file may reach before makeRoom is called again
}

// begin closes the file, for that of another day.
func (t *texts) begin(day string) {
	if t.file != nil {
		_ = t.file.Close()
	}
	t.name, t.file, t.upTo = day+shownExt, nil, 0
}

// add appends a record to texts of at most max bytes, and returns its place; nil if there is no room, or it cannot be
// written.
func (t *texts) add(record []byte, max int64) *place {
	n := int64(len(record))
	if n == 0 || n > max {
		return nil
	}
	if t.file == nil {
		t.file, _ = t.root.OpenFile(t.name, os.O_WRONLY|os.O_APPEND|os.O_CREATE|osfile.Nonblock, 0o600)
	}
	size, err := t.file.Seek(0, io.SeekEnd) // fails without a file
	if err == nil && size+n > t.upTo {
		t.upTo = t.makeRoom(size, n, max)
	}
	if err != nil || size+n > t.upTo {
		return nil
	}
	_, err = t.file.Write(record) // in one write, at the end, wherever that is now
	end, lost := t.file.Seek(0, io.SeekCurrent)
	if err != nil || lost != nil {
		return nil
	}
	return &place{end - n, len(record), crc32.ChecksumIEEE(record)}
}

// makeRoom removes the texts of the oldest days until n bytes more than size fit into the day's file. It returns the
// size that this may reach; that is less than what is needed if there is no room.
func (t *texts) makeRoom(size, n, max int64) int64 {
	left, full := max-size-n, false
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
