package source

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
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
)

// DatabaseWorker is the name of [ReadDatabase] for worker.Main.
const DatabaseWorker = "database"

// databaseJob is the input of a worker that reads a database.
type databaseJob struct {
	Table   string   `json:"table"`   // "": the list of tables
	Check   bool     `json:"check"`   // whether there is such a table, without its rows
	Columns []string `json:"columns"` // nil: all
}

// databaseEnd follows the records in the output of a worker, after a zero byte, which JSON does not have.
type databaseEnd struct {
	Failed string   `json:"failed,omitempty"`
	Notes  []string `json:"notes,omitempty"`
}

// ReadDatabase is the worker function that reads a SQLite database: it writes records, one a line, and a databaseEnd.
func ReadDatabase(ctx context.Context, in io.Reader, files []*os.File, out io.Writer) error {
	var job databaseJob
	if err := json.NewDecoder(in).Decode(&job); err != nil || len(files) != 1 {
		return fmt.Errorf("no job for %d files: %w", len(files), err)
	}
	var end databaseEnd
	notes, err := job.run(ctx, files[0], out)
	if end.Notes = notes; err != nil {
		end.Failed = err.Error()
	}
	b, err := json.Marshal(end)
	if err != nil {
		return err
	}
	_, err = out.Write(append([]byte{0}, b...))
	return err
}

func (j databaseJob) run(ctx context.Context, f *os.File, out io.Writer) (notes []string, err error) {
	at, err := f.Stat()
	if err != nil {
		return nil, err
	}
	d, err := sqlite.Open(f, at.Size())
	if err != nil {
		return nil, err
	}
	if j.Table == "" {
		w := bufio.NewWriter(out)
		return nil, errors.Join(d.List(ctx, w), w.Flush())
	}
	table, err := d.Find(j.Table)
	if err != nil || j.Check {
		return nil, err
	}
	return d.Rows(ctx, table, j.Columns, out)
}

// database is a table whose rows are the text of a source.
type database struct {
	ctx  context.Context //nolint:containedctx // readers end with the source
	stop context.CancelFunc
	file *os.File
	job  databaseJob

	running sync.WaitGroup
	last    *io.PipeReader // of the worker that was started last
	mu      sync.Mutex
	notes   []string // of the last reader that reached the end
}

// openDatabase makes an open file that is a database the list of its tables, or the rows of a table.
func (s *Source) openDatabase(ctx context.Context, f *os.File, table string) error {
	prefix := make([]byte, 16)
	if n, _ := f.ReadAt(prefix, 0); !sqlite.Is(prefix[:n]) { // an error shows where the text is read
		if table != "" {
			return errors.New("it is not a SQLite database: only the name of one takes a #TABLE")
		}
		return nil
	}
	d := &database{file: f, job: databaseJob{Table: table, Check: true}}
	s.closer = d
	d.ctx, d.stop = context.WithTimeout(ctx, listTime)
	list, err := io.ReadAll(io.LimitReader(d.reader(), maxList))
	d.stop()
	if err != nil {
		return err
	}
	d.ctx, d.stop = context.WithCancel(ctx)
	s.database, s.Encoding, s.kind = d, content.UTF8, func() content.Kind { return content.NDJSON }
	if d.job.Check = false; table == "" {
		s.ReaderAt, s.Size = bytes.NewReader(list), int64(len(list))
	} else {
		s.ReaderAt = noBytes{s.Name}
	}
	return nil
}

// noBytes is in place of the bytes of a source that has rows.
type noBytes struct{ name string }

func (n noBytes) ReadAt([]byte, int64) (int, error) {
	return 0, fmt.Errorf("%s has rows, no bytes: read, jq, grep and slice read them", n.name)
}

// Close ends the readers and closes the file.
func (d *database) Close() error {
	d.stop()
	d.running.Wait()
	return d.file.Close()
}

// reader returns the records that a worker writes, which the first Read starts. It ends with the source, and when the
// next reader starts, so that a source holds one worker.
func (d *database) reader() io.ReadCloser { return &recordReader{d: d, job: d.job} }

// recordReader reads the output of a worker.
type recordReader struct {
	d    *database
	job  databaseJob
	pipe *io.PipeReader
}

func (r *recordReader) Read(p []byte) (int, error) {
	if r.pipe == nil {
		if err := r.start(); err != nil {
			return 0, err
		}
	}
	return r.pipe.Read(p)
}

// Close implements [io.Closer].
func (r *recordReader) Close() error {
	if r.pipe != nil {
		return r.pipe.Close()
	}
	return nil
}

func (r *recordReader) start() error {
	job, err := json.Marshal(r.job)
	if err != nil {
		return err
	}
	d := r.d
	if d.last != nil {
		_ = d.last.Close()
	}
	out, in := io.Pipe()
	r.pipe, d.last = out, out
	spec := worker.Spec{
		Name: DatabaseWorker, In: bytes.NewReader(job), Files: []*os.File{d.file}, Memory: databaseMemory, Feeds: true,
	}
	ctx := d.ctx
	context.AfterFunc(ctx, func() { _ = out.CloseWithError(ctx.Err()) })
	d.running.Go(func() {
		w := &splitter{out: in}
		err := worker.Run(ctx, spec, w)
		var end databaseEnd
		switch {
		case ctx.Err() != nil:
			err = ctx.Err()
		case errors.Is(err, worker.ErrMemory):
			err = errors.New("the database needs too much memory: its reader was ended")
		case errors.Is(err, worker.ErrCPU):
			err = errors.New("the database needs too much time: its reader was ended")
		case err != nil:
			err = fmt.Errorf("the database is damaged: its reader ended (%w)", err)
		default:
			err = json.Unmarshal(w.end, &end)
		}
		if end.Failed != "" {
			err = errors.New(end.Failed)
		}
		d.mu.Lock()
		d.notes = end.Notes
		d.mu.Unlock()
		_ = in.CloseWithError(err)
	})
	return nil
}

// splitter writes what comes before a zero byte, and keeps what comes after it.
type splitter struct {
	out   io.Writer
	ended bool
	end   []byte
}

func (s *splitter) Write(p []byte) (int, error) {
	records := p
	if i := bytes.IndexByte(p, 0); s.ended {
		records = nil
	} else if i >= 0 {
		records, s.ended = p[:i], true
	}
	if s.ended && len(s.end) < 64<<10 {
		s.end = append(s.end, bytes.TrimPrefix(p[len(records):], []byte{0})...)
	}
	if len(records) > 0 {
		if _, err := s.out.Write(records); err != nil {
			return 0, err
		}
	}
	return len(p), nil
}

// IsTable reports whether the text is the rows of a table.
func (s *Source) IsTable() bool { return s.database != nil && s.database.job.Table != "" }

// Columns makes the records of a table those with only these members; it is for readers that read no others.
func (s *Source) Columns(names []string) { s.database.job.Columns = names }

// Rows returns the rows of the only table of a database, in place of the list of its tables. For other sources it
// returns s. Closing the result closes s.
func (s *Source) Rows() (*Source, error) {
	if s.database == nil || s.IsTable() || bytes.Count(s.list(), []byte("\n")) != 1 {
		return s, nil
	}
	var only sqlite.Table
	if err := json.Unmarshal(s.list(), &only); err != nil {
		return s, err
	}
	rows := *s
	rows.Name += "#" + only.Name
	rows.ReaderAt = noBytes{rows.Name}
	rows.database.job.Table = only.Name
	return &rows, nil
}

// list returns the list of tables.
func (s *Source) list() []byte {
	list := make([]byte, s.Size)
	n, _ := s.ReadAt(list, 0) // it is in memory
	return list[:n]
}

// note says what the text of a database is.
func (d *database) note(name string) []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	var notes []string
	if d.job.Table == "" {
		notes = append(notes, fmt.Sprintf("%s is a SQLite database: these are its tables; %s#TABLE names the rows of one", name, name))
	}
	for _, n := range d.notes {
		notes = append(notes, name+": "+n)
	}
	return notes
}

// cutTable splits the name of a table, app.db#t, into the path of the database, which must exist, and the table.
func cutTable(root *tree.Root, rel string) (path, table string, ok bool) {
	for i := range len(rel) {
		if rel[i] != '#' || i == 0 || i == len(rel)-1 {
			continue
		}
		path := existing(root, rel[:i])
		if fi, err := root.Stat(path); err == nil && fi.Mode().IsRegular() {
			return path, rel[i+1:], true
		}
	}
	return "", "", false
}
