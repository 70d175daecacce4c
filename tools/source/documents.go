package source

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/mcp-funnel/mcp-funnel/base/lru"
	"github.com/mcp-funnel/mcp-funnel/system/osfile"
	"github.com/mcp-funnel/mcp-funnel/system/worker"
	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/text/extract"
)

// Limits of reading documents.
const (
	maxDocuments   = 16               // of one job, as many files as a worker takes
	documentTime   = 10 * time.Second // for one document
	startTime      = 15 * time.Second // for a worker to be ready: it compiles the reader of PDF
	documentMemory = 1 << 30          // of a worker: 256 MiB for the document, and the compiler of its reader
	maxTextFile    = 160 << 20        // bytes of a kept text
	maxKept        = 1 << 30          // bytes of all kept texts
	keptFor        = 30 * 24 * time.Hour
	inMemory       = 64 << 20
	textsVersion   = "3" // changes with what extract returns
)

// DocumentWorker is the name of [ReadDocuments] for worker.Main.
const DocumentWorker = "documents"

// Documents reads the text of documents, those of [extract.Format], in a confined worker, and keeps it
// by the hash of the document. It is safe for concurrent use.
type Documents struct {
	dir    string // of kept texts; "": they are kept in memory
	memory *lru.Values[string, *Document]
}

// Document is the text of a document, or why it has none.
type Document struct {
	extract.Text
	Failed string // "encrypted", "no text" …; "": the text is there
}

// note says what the lines of a document's text are, and what is not in it.
func (d *Document) note(name string) string {
	if d.Failed != "" {
		return fmt.Sprintf("%s has no text that can be read (%s): these are its bytes", name, d.Failed)
	}
	text := "this is the text of the document " + name
	n := len(d.Places)
	if n > 0 {
		text += fmt.Sprintf("; line %d is %s", d.Places[0].Line, d.Places[0].Name)
	}
	if n > 1 {
		text += fmt.Sprintf(", line %d is %s", d.Places[n-1].Line, d.Places[n-1].Name)
	}
	for _, n := range d.Notes {
		text += "; " + content.ClipBytes(n, 200)
	}
	return text
}

// NewDocuments returns a reader that keeps texts in a directory, which it makes if missing; with "", in memory only.
func NewDocuments(dir string) *Documents {
	return &Documents{dir: dir, memory: lru.New[string, *Document](inMemory)}
}

// Format returns the format of a document by its file name; "" for other files, and if d is nil.
func (d *Documents) Format(name string) string {
	if d == nil {
		return ""
	}
	return extract.Format(name)
}

// Read returns the texts of open documents with these names, one for each. It closes no file. The error is that of ctx.
func (d *Documents) Read(ctx context.Context, names []string, files []*os.File) ([]*Document, error) {
	texts, keys := make([]*Document, len(files)), make([]string, len(files))
	var due []int
	for i, f := range files {
		if keys[i] = documentKey(names[i], f); keys[i] != "" {
			texts[i] = d.recall(keys[i])
		}
		if texts[i] == nil {
			due = append(due, i)
		}
	}
	for part := range slices.Chunk(due, maxDocuments) {
		for len(part) > 0 {
			done, ended := runDocuments(ctx, names, files, part, texts)
			for _, i := range part[:done] { // also if ctx has ended, so that the next call has less to read
				d.remember(keys[i], texts[i])
			}
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			if part = part[done:]; len(part) > 0 { // the next one ended the worker
				texts[part[0]] = &Document{Failed: failureOf(ended)}
				part = part[1:]
			}
		}
	}
	return texts, nil
}

// tookTooLong begins the failure of a document that another try may read.
const tookTooLong = "took too long"

// failureOf says why a document has no text whose worker ended.
func failureOf(ended error) string {
	switch {
	case errors.Is(ended, context.DeadlineExceeded), errors.Is(ended, worker.ErrCPU):
		return tookTooLong + ": its reader was ended; read it again"
	case errors.Is(ended, worker.ErrMemory):
		return "too large: its reader ran out of memory"
	}
	return "broken: its reader ended"
}

// documentKey returns the hash of a document and its format; "" if it cannot be read.
func documentKey(name string, f *os.File) string {
	h := sha256.New()
	h.Write([]byte(textsVersion + " " + extract.Format(name) + "\n"))
	at, err := f.Stat()
	if err != nil {
		return ""
	}
	if _, err := io.Copy(h, io.NewSectionReader(f, 0, at.Size())); err != nil {
		return ""
	}
	return hex.EncodeToString(h.Sum(nil))
}

// documentReply precedes the text of each document in the output of a worker and in a kept file, as a line of JSON.
type documentReply struct {
	Failed string          `json:"failed,omitempty"`
	Size   int64           `json:"size"` // of the text
	Places []extract.Place `json:"places,omitempty"`
	Notes  []string        `json:"notes,omitempty"`
}

// document returns the document of a reply and the text after it.
func (r documentReply) document(body []byte) *Document {
	return &Document{extract.Text{Body: body, Places: r.Places, Notes: r.Notes}, r.Failed}
}

// encoded returns a document as its [documentReply] and its text.
func (d *Document) encoded() ([]byte, error) {
	head, err := json.Marshal(documentReply{d.Failed, int64(len(d.Body)), d.Places, d.Notes})
	return append(append(head, '\n'), d.Body...), err
}

// runDocuments reads documents in one worker and returns how many of them it read before it ended, and why it did.
func runDocuments(
	ctx context.Context, names []string, files []*os.File, which []int, texts []*Document,
) (done int, ended error) {
	ctx, cancel := context.WithTimeout(ctx, startTime+documentTime*time.Duration(len(which)))
	defer cancel()
	spec := worker.Spec{Name: DocumentWorker, Memory: documentMemory}
	var formats []string
	for _, i := range which {
		formats = append(formats, extract.Format(names[i]))
		spec.Files = append(spec.Files, files[i])
	}
	job, err := json.Marshal(formats)
	if err != nil {
		return 0, err
	}
	spec.In = bytes.NewReader(append(job, '\n'))
	out := piped(ctx, func(to io.Writer) error { return worker.Run(ctx, spec, to) })
	defer func() { _ = out.Close() }()
	r := bufio.NewReaderSize(out, 64<<10)
	for _, i := range which {
		line, err := r.ReadBytes('\n')
		var reply documentReply
		if err != nil || json.Unmarshal(line, &reply) != nil || reply.Size < 0 || reply.Size > maxTextFile {
			return done, err
		}
		body := make([]byte, reply.Size)
		if _, err := io.ReadFull(r, body); err != nil {
			return done, err
		}
		texts[i] = reply.document(body)
		done++
	}
	return done, nil
}

// ReadDocuments is the worker function that reads documents: its input is a JSON array of the files' formats.
func ReadDocuments(ctx context.Context, in io.Reader, files []*os.File, out io.Writer) error {
	line, err := bufio.NewReader(in).ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("no job: %w", err)
	}
	var formats []string
	if err := json.Unmarshal(line, &formats); err != nil || len(formats) != len(files) {
		return fmt.Errorf("the job does not fit its %d files: %w", len(files), err)
	}
	for i, f := range files {
		text, err := readDocument(ctx, formats[i], f).encoded()
		if err != nil {
			return err
		}
		if _, err := out.Write(text); err != nil {
			return err
		}
	}
	return nil
}

// readDocument returns the text of one document, or why it has none.
func readDocument(ctx context.Context, format string, f *os.File) *Document {
	at, err := f.Stat()
	if err != nil {
		return &Document{Failed: "unreadable"}
	}
	limit := documentTime
	if format == "pdf" { // its reader is compiled for the first one
		limit += startTime
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	text, err := extract.Read(ctx, format, f, at.Size())
	if err == nil {
		return &Document{Text: text}
	}
	for _, known := range []struct {
		err  error
		text string
	}{
		{extract.ErrEncrypted, "encrypted"}, {extract.ErrNoText, format + " without text"},
		{extract.ErrTooLarge, "too large"},
		{context.DeadlineExceeded, fmt.Sprintf("%s: no text within %g s; read it again", tookTooLong, limit.Seconds())},
	} {
		if errors.Is(err, known.err) {
			return &Document{Failed: known.text}
		}
	}
	return &Document{Failed: "broken: " + content.ClipBytes(err.Error(), 150)}
}

// Replaces reports whether the text of a document of this name is read in place of its bytes. HTML is read as it is.
func (d *Documents) Replaces(name string) bool {
	format := d.Format(name)
	return format != "" && format != "html"
}

// openDocument replaces the bytes of an open document by its text. A document without text stays as it is, and a note
// says why.
func (d *Documents) openDocument(ctx context.Context, name string, f *os.File, src *Source) error {
	if !d.Replaces(name) {
		return nil
	}
	texts, err := d.Read(ctx, []string{name}, []*os.File{f})
	if err != nil {
		return err
	}
	if src.Document = texts[0]; src.Document.Failed == "" {
		src.ReaderAt, src.Size = bytes.NewReader(src.Document.Body), int64(len(src.Document.Body))
	}
	return nil
}

// DocumentText returns the text of a document, also of one that tools read byte for byte, such as HTML; nil for other
// sources.
func (s Set) DocumentText(ctx context.Context, name string, src *Source) (*Document, error) {
	f, ok := src.ReaderAt.(*os.File)
	if src.Document != nil || !ok || s.Documents.Format(name) == "" {
		return src.Document, nil
	}
	texts, err := s.Documents.Read(ctx, []string{name}, []*os.File{f})
	if err != nil {
		return nil, err
	}
	return texts[0], nil
}

// ReadAhead reads documents of a place together, so that opening them one by one finds their texts. It skips
// files that cannot be read, and does nothing in a place that is no root.
func ReadAhead(ctx context.Context, at Place, paths []string) error {
	p, ok := at.(rootPlace)
	if !ok || p.docs == nil {
		return nil
	}
	var names []string
	var files []*os.File
	defer func() {
		for _, f := range files {
			_ = f.Close()
		}
	}()
	for _, name := range paths {
		if p.docs.Format(name) == "" {
			continue
		}
		if f, _, err := p.root.OpenFile(name); err == nil {
			names, files = append(names, name), append(files, f)
		}
	}
	if len(files) < 2 {
		return nil
	}
	_, err := p.docs.Read(ctx, names, files)
	return err
}

// recall returns a kept text; nil if there is none.
func (d *Documents) recall(key string) *Document {
	if t, ok := d.memory.Get(key); ok {
		return t
	}
	if d.dir == "" {
		return nil
	}
	dir, err := osfile.OpenDir(d.dir)
	if err != nil {
		return nil
	}
	defer func() { _ = dir.Close() }()
	b, err := osfile.ReadIn(dir, key, maxTextFile+1<<20)
	if err != nil {
		return nil
	}
	head, body, ok := bytes.Cut(b, []byte("\n"))
	var reply documentReply
	if !ok || json.Unmarshal(head, &reply) != nil || reply.Size != int64(len(body)) { // damaged
		return nil
	}
	now := time.Now()
	_ = dir.Chtimes(key, now, now)
	t := reply.document(body)
	d.memory.Put(key, t, len(b))
	return t
}

// remember stores a text, or why there is none, unless that was the time. Errors are ignored, because the texts are
// only a cache.
func (d *Documents) remember(key string, t *Document) {
	if key == "" || t == nil || strings.HasPrefix(t.Failed, tookTooLong) {
		return
	}
	d.memory.Put(key, t, len(t.Body)+256)
	if d.dir == "" {
		return
	}
	if err := os.Mkdir(d.dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return
	}
	dir, err := osfile.OpenDir(d.dir)
	if err != nil {
		return
	}
	defer func() { _ = dir.Close() }()
	text, err := t.encoded()
	if err != nil {
		return
	}
	osfile.Prune(dir, keptFor, maxKept)
	_ = osfile.ReplaceIn(dir, key, fmt.Sprintf("tmp-%d-%s", os.Getpid(), key[:16]), text)
}
