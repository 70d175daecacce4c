package shell

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"os"
)

// spool holds output that came between two calls, in a file without a name: it ends with the server.
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
func (s *spool) stream(stderr bool) io.Writer { return spoolStream{s, stderr} }

type spoolStream struct {
	spool  *spool
	stderr bool
}

// Write writes a record: which stream, the length, the bytes.
func (w spoolStream) Write(b []byte) (int, error) {
	head := make([]byte, 1, 1+binary.MaxVarintLen64)
	if w.stderr {
		head[0] = 1
	}
	if _, err := w.spool.w.Write(binary.AppendUvarint(head, uint64(len(b)))); err != nil {
		return 0, err
	}
	return w.spool.w.Write(b)
}

// replay writes all that was spooled to the streams that it came from; nothing if s is nil. After it, more can be
// spooled, and replay writes all again.
func (s *spool) replay(stream streams) (err error) {
	if s == nil {
		return nil
	}
	if err := s.w.Flush(); err != nil {
		return err
	}
	if _, err := s.f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	defer func() {
		_, late := s.f.Seek(0, io.SeekEnd)
		err = errors.Join(err, late)
	}()
	r := bufio.NewReaderSize(s.f, chunkSize)
	for {
		which, err := r.ReadByte()
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
		if _, err := io.CopyN(stream(which == 1), r, int64(n)); err != nil {
			return err
		}
	}
}

// close deletes the spool. It does nothing if s is nil.
func (s *spool) close() {
	if s != nil {
		_ = s.f.Close()
	}
}
