package server

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// lineReader cuts an input into lines in bounded memory.
type lineReader struct {
	in   *bufio.Reader
	max  int64
	next int64 // lines read so far
}

func newLineReader(in io.Reader, max int64) *lineReader {
	return &lineReader{in: bufio.NewReaderSize(in, 64<<10), max: max}
}

// tooLong is a line over the limit: it was read to its end and dropped but for its beginning.
type tooLong struct {
	prefix []byte
	size   int64
}

func (*tooLong) Error() string { return "line too long" }

// read returns the next line that is not blank, without its end; a last line may lack its newline.
// The bytes are the caller's. After [tooLong] reading goes on with the next line; other errors are final.
func (r *lineReader) read() ([]byte, error) {
	for {
		line, err := r.one()
		r.next++
		if r.next == 1 {
			line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf")) // shells that pipe UTF-8 "with signature"
		}
		line = bytes.Trim(line, " \t\r\n")
		if int64(len(line)) > r.max {
			return nil, &tooLong{prefix: line[:min(len(line), maxPrefix)], size: int64(len(line))}
		}
		if len(line) > 0 && (err == nil || errors.Is(err, io.EOF)) {
			return line, nil // EOF comes again
		}
		if err != nil {
			return nil, err
		}
	}
}

func (r *lineReader) one() ([]byte, error) {
	var line []byte
	var size int64
	for {
		part, err := r.in.ReadSlice('\n')
		size += int64(len(part))
		if size <= r.max+2 { // as its end may take two
			line = append(line, part...)
		} else if int64(len(line)) > maxPrefix {
			line = bytes.Clone(line[:maxPrefix]) // lets go of the rest
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if size > r.max+2 && (err == nil || errors.Is(err, io.EOF)) {
			return nil, &tooLong{prefix: line, size: size}
		}
		return line, err
	}
}

// maxPrefix is how much of a line too long is kept to find its id in, in bytes.
const maxPrefix = 64 << 10
