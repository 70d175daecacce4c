// Package packed reads texts that are stored compressed (gzip, zstd, bzip2, xz), and walks through archives (zip, tar).
package packed

import (
	"bufio"
	"bytes"
	"compress/bzip2"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/klauspost/compress/zstd"
	"github.com/mikelolasagasti/xz"
)

// maxWindow bounds what a decompressor remembers of its text, in bytes, whatever the file asks for.
const maxWindow = 128 << 20

// Format is the name of a compression: "gzip", "zstd", "bzip2" or "xz"; "" is none.
type Format string

// Detect returns the compression of a file by its first bytes, of which ten are enough.
func Detect(prefix []byte) Format {
	switch {
	case bytes.HasPrefix(prefix, []byte("\x1f\x8b\x08")):
		return "gzip"
	case bytes.HasPrefix(prefix, []byte("\x28\xb5\x2f\xfd")):
		return "zstd"
	case bytes.HasPrefix(prefix, []byte("\xfd7zXZ\x00")):
		return "xz"
	case bytes.HasPrefix(prefix, []byte("BZh")) && bytes.HasPrefix(prefix[min(4, len(prefix)):], []byte("1AY&SY")):
		return "bzip2"
	}
	return ""
}

// TrimExtension returns the name of a file without the extension of its compression: "app.log" for "app.log.gz".
func TrimExtension(name string) string {
	switch extension := path.Ext(name); strings.ToLower(extension) {
	case ".gz", ".zst", ".bz2", ".xz":
		return strings.TrimSuffix(name, extension)
	}
	return name
}

// Reader decompresses a file. It holds nothing that must be closed, and is not safe for concurrent use.
type Reader struct {
	file *io.SectionReader
	in   *bufio.Reader // of file
	text io.Reader
}

// NewReader returns a reader of the text in a file, which is compressed as f says. Members that follow one another are
// one text. Errors, also those of Read, name the offset in the file from which it cannot be decompressed.
func NewReader(f Format, file *io.SectionReader) (*Reader, error) {
	p := &Reader{file: file, in: bufio.NewReaderSize(file, 64<<10)}
	return p, p.guard(func() (err error) {
		switch f {
		case "gzip":
			p.text, err = gzip.NewReader(p.in)
		case "zstd": // without goroutines, so that a reader may be dropped at any time
			p.text, err = zstd.NewReader(p.in, zstdOptions...)
		case "bzip2":
			p.text = bzip2.NewReader(p.in)
		case "xz":
			p.text, err = xz.NewReader(p.in, maxWindow)
		default:
			err = fmt.Errorf("unknown compression %q", f)
		}
		return err
	})
}

var zstdOptions = []zstd.DOption{
	zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow),
}

// Read implements [io.Reader].
func (p *Reader) Read(b []byte) (n int, err error) {
	err = p.guard(func() error {
		n, err = p.text.Read(b)
		return err
	})
	return n, err
}

// guard runs a part of the decompressor, and adds the offset to its error or panic.
func (p *Reader) guard(run func() error) error {
	err := guard(run)
	if err == nil || errors.Is(err, io.EOF) {
		return err
	}
	at, _ := p.file.Seek(0, io.SeekCurrent) // a seek within a section cannot fail
	return fmt.Errorf("at byte %d: %w", at-int64(p.in.Buffered()), err)
}

// guard runs a reader of a file that may be hostile, and returns its panic as an error.
func guard(run func() error) (err error) {
	defer func() {
		if fault := recover(); fault != nil {
			err = fmt.Errorf("its reader failed: %v", fault)
		}
	}()
	return run()
}
