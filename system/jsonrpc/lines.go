package jsonrpc

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// LineReader splits an input into lines. It buffers at most one line of max bytes.
type LineReader struct {
	in   *bufio.Reader
	max  int64
	next int64 // lines read so far

	// Long is called with the prefix of a line once it is over the limit, before its end is read; nil: not. If it returns
	// false the line is not read further, and Next returns a final error.
	Long func(prefix []byte, size int64) bool
}

// NewLineReader returns a reader of the lines of in; max is the maximum length of a line in bytes.
func NewLineReader(in io.Reader, max int64) *LineReader {
	return &LineReader{in: bufio.NewReaderSize(in, 64<<10), max: max}
}

var errTooLong = errors.New("a line is too long to be read to its end")

// TooLongError reports a line over the limit. The reader has skipped the line and keeps only its prefix of up to
// 64 KiB, in which the caller can find the id of the message.
type TooLongError struct {
	Prefix []byte
	Size   int64
}

func (*TooLongError) Error() string { return "line too long" }

// Next returns the next line that is not blank, trimmed of white space; the last line may lack its newline.
// The caller owns the bytes. After [TooLongError] Next continues with the next line; other errors are final.
func (r *LineReader) Next() ([]byte, error) {
	for {
		line, err := r.readLine()
		r.next++
		if r.next == 1 {
			line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf")) // some shells pipe UTF-8 with a byte order mark
		}
		line = bytes.Trim(line, whiteSpace)
		if int64(len(line)) > r.max {
			return nil, &TooLongError{Prefix: line[:min(len(line), maxPrefix)], Size: int64(len(line))}
		}
		if len(line) > 0 && (err == nil || errors.Is(err, io.EOF)) {
			return line, nil // the next read returns EOF again
		}
		if err != nil {
			return nil, err
		}
	}
}

// readLine collects a long line in blocks and joins them at its end: a buffer that grows would be copied as a whole
// each time, which no goroutine can interrupt.
func (r *LineReader) readLine() ([]byte, error) {
	var blocks [][]byte
	var size int64
	for {
		part, err := r.in.ReadSlice('\n')
		size += int64(len(part))
		if size > r.max+2 && r.Long != nil {
			prefix := part
			if len(blocks) > 0 {
				prefix = blocks[0]
			}
			if !r.Long(prefix, size) {
				return nil, errTooLong
			}
		}
		if size <= r.max+2 { // the line end may be \r\n
			blocks = append(blocks, bytes.Clone(part))
		} else if len(blocks) > 1 {
			blocks = [][]byte{blocks[0]} // the prefix
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if size > r.max+2 && (err == nil || errors.Is(err, io.EOF)) {
			return nil, &TooLongError{Prefix: bytes.Join(blocks, nil), Size: size}
		}
		if len(blocks) == 1 {
			return blocks[0], err
		}
		return bytes.Join(blocks, nil), err
	}
}

// maxPrefix is the number of bytes kept of a line that is too long; they usually hold the id of the message.
const maxPrefix = 64 << 10
