// Package sqlite reads the tables of SQLite databases as JSON records.
//
// A database may be hostile, so it runs in a worker, and SQLite is kept small: it reads one open file through a VFS that
// knows no other name, its schema is not trusted, and memory, the length of values and the time of a step are bounded.
package sqlite

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"sync/atomic"
	"time"
	"unsafe"

	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"
	"modernc.org/sqlite/vfs"

	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// Limits of a database.
const (
	maxValue  = 64 << 20               // bytes of one text or blob that is read
	maxHeap   = 160 << 20              // bytes that SQLite may allocate
	maxCache  = 8 << 10                // KiB of its pages
	tick      = 100 * time.Millisecond // after which the time of a step is looked at
	rowTime   = 20 * time.Second       // for the next row
	tableTime = time.Second            // for counting the rows of one table
	countTime = 3 * time.Second        // for counting those of all tables
)

// magic is what a database begins with.
const magic = "SQLite format 3\x00"

// Is reports whether a file with these first bytes is a database.
func Is(prefix []byte) bool {
	return strings.HasPrefix(string(prefix[:min(len(prefix), len(magic))]), magic)
}

// Database is an open database. It is not safe for concurrent use.
type Database struct {
	tls   *libc.TLS
	db    uintptr
	files *vfs.FS

	busy  atomic.Int64 // odd within a call that may take long
	limit atomic.Int64 // ticks of such a call
	stop  chan struct{}
}

// Open opens the database that a file holds. Nothing is written, and no other file is read.
func Open(file io.ReaderAt, size int64) (*Database, error) {
	name, files, err := vfs.New(only{file, size})
	if err != nil {
		return nil, err
	}
	d := &Database{tls: libc.NewTLS(), files: files, stop: make(chan struct{})}
	uri, err := libc.CString("file:" + only{}.name() + "?immutable=1&vfs=" + name)
	if err != nil {
		return nil, err
	}
	defer libc.Xfree(d.tls, uri)
	at := d.tls.Alloc(8)
	defer d.tls.Free(8)
	flags := int32(sqlite3.SQLITE_OPEN_READONLY | sqlite3.SQLITE_OPEN_URI | sqlite3.SQLITE_OPEN_NOMUTEX)
	rc := sqlite3.Xsqlite3_open_v2(d.tls, uri, at, flags, 0)
	d.db = *pointer[uintptr](at)
	d.limit.Store(int64(rowTime / tick))
	go d.watch()
	if rc != sqlite3.SQLITE_OK {
		return d, d.failure()
	}
	for id, most := range map[int32]int32{
		sqlite3.SQLITE_LIMIT_LENGTH: maxValue, sqlite3.SQLITE_LIMIT_ATTACHED: 0, sqlite3.SQLITE_LIMIT_TRIGGER_DEPTH: 1,
		sqlite3.SQLITE_LIMIT_SQL_LENGTH: 1 << 20, sqlite3.SQLITE_LIMIT_WORKER_THREADS: 0,
	} {
		sqlite3.Xsqlite3_limit(d.tls, d.db, id, most)
	}
	for _, setting := range []string{
		"trusted_schema=off", "query_only=on", "cell_size_check=on", "temp_store=memory", "mmap_size=0",
		fmt.Sprintf("hard_heap_limit=%d", maxHeap), fmt.Sprintf("cache_size=-%d", maxCache),
	} {
		s, err := d.prepare("PRAGMA " + setting)
		if err == nil {
			_, err = s.next()
			s.close()
		}
		if err != nil {
			return d, err
		}
	}
	return d, nil
}

// Close closes the database.
func (d *Database) Close() {
	close(d.stop)
	sqlite3.Xsqlite3_close_v2(d.tls, d.db)
	_ = d.files.Close()
	d.tls.Close()
}

// watch interrupts calls that take longer than limit.
func (d *Database) watch() {
	t := time.NewTicker(tick)
	defer t.Stop()
	tls := libc.NewTLS()
	defer tls.Close()
	for last, n := int64(0), int64(0); ; {
		select {
		case <-d.stop:
			return
		case <-t.C:
		}
		if now := d.busy.Load(); now != last || now%2 == 0 {
			last, n = now, 0
		} else if n++; n > d.limit.Load() {
			sqlite3.Xsqlite3_interrupt(tls, d.db)
		}
	}
}

// errTime is the error of a call that took longer than its limit.
var errTime = errors.New("it took too long")

// failure returns the error of the last call.
func (d *Database) failure() error {
	switch code := sqlite3.Xsqlite3_extended_errcode(d.tls, d.db); code & 0xff {
	case sqlite3.SQLITE_INTERRUPT:
		return errTime
	case sqlite3.SQLITE_NOTADB:
		return errors.New("it is encrypted, damaged or not a SQLite database")
	case sqlite3.SQLITE_NOMEM:
		return fmt.Errorf("it needs more than %d MiB of memory", maxHeap>>20)
	case sqlite3.SQLITE_TOOBIG:
		return fmt.Errorf("a value is longer than %d MiB", maxValue>>20)
	}
	return errors.New(content.ClipBytes(libc.GoString(sqlite3.Xsqlite3_errmsg(d.tls, d.db)), 200))
}

// statement is a prepared query.
type statement struct {
	*Database
	at uintptr
}

func (d *Database) prepare(query string) (*statement, error) {
	text, err := libc.CString(query)
	if err != nil {
		return nil, err
	}
	defer libc.Xfree(d.tls, text)
	at := d.tls.Alloc(8)
	defer d.tls.Free(8)
	d.busy.Add(1)
	rc := sqlite3.Xsqlite3_prepare_v2(d.tls, d.db, text, int32(len(query))+1, at, 0)
	d.busy.Add(1)
	if rc != sqlite3.SQLITE_OK {
		return nil, d.failure()
	}
	return &statement{d, *pointer[uintptr](at)}, nil
}

func (s *statement) close() { sqlite3.Xsqlite3_finalize(s.tls, s.at) }

// next reads the next row; it returns false at the end.
func (s *statement) next() (bool, error) {
	s.busy.Add(1)
	rc := sqlite3.Xsqlite3_step(s.tls, s.at)
	s.busy.Add(1)
	switch rc {
	case sqlite3.SQLITE_ROW:
		return true, nil
	case sqlite3.SQLITE_DONE:
		return false, nil
	}
	return false, s.failure()
}

// text returns a text of the row, valid until the next one.
func (s *statement) text(column int) []byte {
	at := sqlite3.Xsqlite3_column_text(s.tls, s.at, int32(column))
	if at == 0 {
		return nil
	}
	return unsafe.Slice(pointer[byte](at), sqlite3.Xsqlite3_column_bytes(s.tls, s.at, int32(column)))
}

// pointer returns a pointer to memory of SQLite, which Go does not move.
func pointer[T any](at uintptr) *T { return *(**T)(unsafe.Pointer(&at)) }

// only is a file system with one file.
type only struct {
	file io.ReaderAt
	size int64
}

func (only) name() string { return "database" }

// Open implements [fs.FS].
func (o only) Open(name string) (fs.File, error) {
	if name != o.name() {
		return nil, fs.ErrNotExist
	}
	return opened{io.NewSectionReader(o.file, 0, o.size)}, nil
}

type opened struct{ *io.SectionReader }

func (opened) Close() error                 { return nil }
func (o opened) Stat() (fs.FileInfo, error) { return o, nil }
func (opened) Name() string                 { return only{}.name() }
func (opened) Mode() fs.FileMode            { return 0o400 }
func (opened) ModTime() time.Time           { return time.Time{} }
func (opened) IsDir() bool                  { return false }
func (opened) Sys() any                     { return nil }
