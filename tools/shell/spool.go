package shell

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"os"
)

// spool holds output that came between two calls, or of a tool that the command calls, in a file without a name: it ends
// with the server.
type spool struct {
	f *os.File
	w *bufio.Writer
}

func newSpool(dir string) (*spool, error) {
	f, err := os.CreateTemp(dir, "run-*.spool")
	if err != nil {
		return nil, err
	}
	_ = os.Remove(f.Name())
	return &spool{f: f, w: bufio.NewWriterSize(f, chunkSize)}, nil
}

// stream returns a writer to one stream of the spool.
func (s *spool) stream(stderr bool) io.Writer {
	if stderr {
		return records{s.w, toStderr}
	}
	return records{s.w, toStdout}
}

// Kinds of records: output of a stream, or the exit code that ends the output.
const (
	toStdout = iota
	toStderr
	isExit
)

// records writes records of one kind: the kind, the length, the bytes.
type records struct {
	to   io.Writer
	kind byte
}

// Write writes a record.
func (r records) Write(b []byte) (int, error) {
	head := append(make([]byte, 0, 1+binary.MaxVarintLen64), r.kind)
	if _, err := r.to.Write(binary.AppendUvarint(head, uint64(len(b)))); err != nil {
		return 0, err
	}
	return r.to.Write(b)
}

// readRecords writes the bytes of each record to the writer of its kind, until r ends.
func readRecords(r *bufio.Reader, to func(kind byte) io.Writer) error {
	for {
		kind, err := r.ReadByte()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		n, err := binary.ReadUvarint(r)
		if err != nil {
			return err
		}
		if _, err := io.CopyN(to(kind), r, int64(n)); err != nil {
			return err
		}
	}
}

// rewind returns a reader of all that was spooled.
func (s *spool) rewind() (*bufio.Reader, error) {
	if err := s.w.Flush(); err != nil {
		return nil, err
	}
	_, err := s.f.Seek(0, io.SeekStart)
	return bufio.NewReaderSize(s.f, chunkSize), err
}

// replay writes all that was spooled to the streams that it came from; nothing if s is nil. After it, more can be
// spooled, and replay writes all again.
func (s *spool) replay(stream streams) (err error) {
	if s == nil {
		return nil
	}
	r, err := s.rewind()
	if err != nil {
		return err
	}
	defer func() {
		_, late := s.f.Seek(0, io.SeekEnd)
		err = errors.Join(err, late)
	}()
	return readRecords(r, func(kind byte) io.Writer { return stream(kind == toStderr) })
}

// close deletes the spool. It does nothing if s is nil.
func (s *spool) close() {
	if s != nil {
		_ = s.f.Close()
	}
}
