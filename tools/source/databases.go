package source

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcp-funnel/mcp-funnel/system/tree"
	"github.com/mcp-funnel/mcp-funnel/system/worker"
	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/text/sqlite"
)

// Limits of reading databases.
const (
	databaseMemory = 256 << 20        // of a worker
	listTime       = 15 * time.Second // for the list of tables
	maxList        = 16 << 20         // bytes of it
	viewTime       = 30 * time.Second // for the rows of a view: less than a call may take, which then shows them
)

// DatabaseWorker is the name of [ReadDatabase] for worker.Main.
const DatabaseWorker = "database"

// databaseJob is the input of a worker that reads a database.
type databaseJob struct {
	Size    int64
	Table   string   // "": the list of tables
	Check   bool     // only whether there is such a table
	Columns []string // nil: all
}

// noted begins the error of a worker that wrote all records: what follows are notes.
const noted = "noted: "

// ReadDatabase is the worker function that reads a SQLite database: it writes records, one a line.
func ReadDatabase(ctx context.Context, in io.Reader, files []*os.File, out io.Writer) error {
	var job databaseJob
	if err := json.NewDecoder(in).Decode(&job); err != nil || len(files) != 1 {
		return fmt.Errorf("no job for %d files: %w", len(files), err)
	}
	db, err := sqlite.Open(ctx, files[0], job.Size)
	if err != nil {
		return err
	}
	if job.Table == "" {
		return sqlite.List(ctx, db, out)
	}
	table, err := sqlite.Find(ctx, db, job.Table)
	if err == nil && !job.Check {
		err = sqlite.Rows(ctx, db, table, job.Columns, viewTime, out)
	}
	if said, ok := errors.AsType[*content.Remarks](err); ok {
		return errors.New(noted + strings.Join(said.Notes, "; "))
	}
	return err
}

// database is what a source needs to read a database. It is not safe for concurrent use.
type database struct {
	ctx     context.Context //nolint:containedctx // it ends the workers when the source is closed
	stop    context.CancelFunc
	file    *os.File
	job     databaseJob
	tables  []byte       // their list, if that is the text; nil: the text is rows
	said    atomic.Value // the notes of a worker, a string
	beside  string       // a note on another file of the database
	running sync.WaitGroup
	reading *io.PipeReader // the output of the last worker
}

// Close ends the workers and closes the file.
func (d *database) Close() error {
	d.stop()
	d.running.Wait()
	return d.file.Close()
}

// records reads the output of a worker, which the first Read starts. That ends the worker of the reader before, so that
// a source holds one.
type records struct {
	*database
	out *io.PipeReader
}

func (r *records) Read(p []byte) (int, error) {
	if r.out == nil {
		r.start()
	}
	return r.out.Read(p)
}

func (r *records) start() {
	if r.reading != nil {
		_ = r.reading.Close()
	}
	job, _ := json.Marshal(r.job) // it has only values that JSON has
	ctx := r.ctx
	r.running.Add(1)
	r.out = piped(ctx, func(to io.Writer) error {
		defer r.running.Done()
		err := worker.Run(ctx, worker.Spec{
			Name: DatabaseWorker, In: bytes.NewReader(job), Files: []*os.File{r.file}, Memory: databaseMemory, Feeds: true,
		}, to)
		ended, ok := errors.AsType[*worker.Error](err)
		if ok && ended.Cause == worker.ErrFailed { //nolint:errorlint // nothing wraps it
			said, all := strings.CutPrefix(ended.Line, noted)
			if err = errors.New(said); all {
				r.said.Store(said)
				err = nil
			}
		} else if ok && ctx.Err() == nil {
			err = errors.New(failureOf(err))
		}
		return err
	})
	r.reading = r.out
}

// openDatabase makes an open file that is a database the list of its tables, or the rows of a table.
func (s *Source) openDatabase(ctx context.Context, f *os.File, table string) error {
	prefix := make([]byte, 16)
	if n, _ := f.ReadAt(prefix, 0); !sqlite.Is(prefix[:n]) { // an error shows where the text is read
		return nil
	}
	if table != "" {
		s.Name += "#" + table
	}
	d := &database{file: f, job: databaseJob{Size: s.Size, Table: table, Check: true}}
	d.ctx, d.stop = context.WithTimeout(ctx, listTime)
	list, err := io.ReadAll(io.LimitReader(&records{database: d}, maxList+1))
	if len(list) > maxList {
		err = fmt.Errorf("the list of its tables is longer than %d MiB: name a table, #TABLE", maxList>>20)
	}
	if d.stop(); err != nil && table == "" && ctx.Err() == nil {
		s.Document = &Document{Failed: err.Error()}
		return nil
	}
	d.ctx, d.stop = context.WithCancel(ctx)
	d.job.Check = false
	s.closer, s.database, s.kind = d, d, func() content.Kind { return content.NDJSON }
	s.Encoding, s.ReaderAt = content.UTF8, noBytes{}
	if table == "" {
		d.tables = append([]byte{}, list...)
		s.ReaderAt, s.Size = bytes.NewReader(list), int64(len(list))
	}
	return err
}

// Tables returns the list of the tables of a database, JSON records with commas between them; nil for other sources.
func (s *Source) Tables() []byte {
	if s.database == nil {
		return nil
	}
	return bytes.ReplaceAll(bytes.TrimSpace(s.database.tables), []byte{'\n'}, []byte{','})
}

// noBytes is in place of the bytes of a source that has rows.
type noBytes struct{}

func (noBytes) ReadAt([]byte, int64) (int, error) { return 0, errors.ErrUnsupported }

// IsTable reports whether the text is the rows of a table.
func (s *Source) IsTable() bool { return s.database != nil && s.database.tables == nil }

// Columns makes the records of a table those with only these members, for readers that read no others.
func (s *Source) Columns(names []string) { s.database.job.Columns = names }

// Rows makes the text of a database with one table the rows of that. It does nothing for other sources.
func (s *Source) Rows() {
	var only struct{ Table string }
	if d := s.database; d != nil && bytes.Count(d.tables, []byte("\n")) == 1 && json.Unmarshal(d.tables, &only) == nil {
		d.job.Table, d.tables = only.Table, nil
		s.Name, s.ReaderAt, s.Size = s.Name+"#"+only.Table, noBytes{}, d.job.Size
	}
}

// note says what the text of a database is, and what was noticed in it.
func (d *database) note(name string) string {
	if d.tables != nil {
		return fmt.Sprintf("%s is a SQLite database: these are its tables; %[1]s#TABLE names the rows of one", name)
	}
	if said, _ := d.said.Load().(string); said != "" {
		return name + ": " + said
	}
	return ""
}

// cutTable splits a name such as app.db#t into the path of a file that exists, and the name of a table, which may have
// a # too.
func cutTable(root *tree.Root, rel string) (path, table string, ok bool) {
	for at := strings.LastIndexByte(rel, '#'); at > 0; at = strings.LastIndexByte(rel[:at], '#') {
		path = existing(root, rel[:at])
		if fi, err := root.Stat(path); err == nil && fi.Mode().IsRegular() {
			return path, rel[at+1:], at < len(rel)-1
		}
	}
	return "", "", false
}
