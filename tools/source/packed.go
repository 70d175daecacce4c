package source

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/text/packed"
	"github.com/mcp-funnel/mcp-funnel/text/sqlite"
)

// unpacking is how a compressed file is read, and what its readers found. They may run concurrently.
type unpacking struct {
	format packed.Format
	mu     sync.Mutex
	read   int64 // the most bytes of the content that one reader returned
	ended  bool  // read is all of the content that can be read
	damage error // why it is not all of the content
}

func (u *unpacking) state() (read int64, ended bool, damage error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.read, u.ended, u.damage
}

// unpack makes the content of a compressed file the text of its source. A compressed tar is an archive and stays as it
// is, as does a file of which nothing can be decompressed: then an answer says why. Databases and archives are read from
// files of their own: inside an archive, or compressed, they are binary, and an answer says so.
func (s *Source) unpack(member bool) error {
	head, err := s.Head(512)
	s.inside = member
	if format := packed.Detect(head); format != "" {
		s.packed = &unpacking{format: format}
		head, err = s.Head(512)
		if _, _, damage := s.packed.state(); damage != nil && len(head) == 0 {
			s.addDamage(fmt.Sprintf("%s begins like a %s file, but nothing of it can be read (%v): these are its bytes",
				s.Name, format, damage))
			s.packed = nil
		} else if packed.IsTar(head) {
			s.packed = nil
		} else {
			s.inside = true
		}
	}
	switch {
	case !s.inside:
	case sqlite.Is(head):
		s.addDamage(nestedNote(s.Name, "a SQLite database"))
	case packed.IsArchive(bytes.NewReader(head), int64(len(head))):
		s.addDamage(nestedNote(s.Name, "an archive"))
	}
	return err
}

func nestedNote(name, what string) string {
	return name + " is " + what + " inside a compressed file or an archive: to look into it, unpack it to a file first"
}

// unpackedReader reads the content of a compressed file. Damage ends it like the end of the file; the source says so.
type unpackedReader struct {
	*unpacking
	from io.Reader
	end  error // what Read returns from now on
	n    int64
}

func (s *Source) unpacked() io.Reader {
	from, err := packed.NewReader(s.packed.format, io.NewSectionReader(s.ReaderAt, 0, s.Size))
	return &unpackedReader{unpacking: s.packed, from: from, end: err}
}

func (r *unpackedReader) Read(b []byte) (n int, err error) {
	if err = r.end; err == nil {
		n, err = r.from.Read(b)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.n += int64(n)
	r.read = max(r.read, r.n)
	if err == nil {
		return n, nil
	}
	if r.ended, r.end = true, io.EOF; !errors.Is(err, io.EOF) && r.damage == nil {
		r.damage = err
	}
	return n, io.EOF
}

// Packed reports whether the source is a compressed file, whose content is its text.
func (s *Source) Packed() bool { return s.packed != nil }

// Extent returns how many bytes the text has, by which a caller decides whether to read all of it: the stored size, or
// of a compressed file whose end was not read yet, a guess that is too large for most.
func (s *Source) Extent() int64 {
	if s.packed == nil {
		return s.Size
	}
	read, ended, _ := s.packed.state()
	if ended {
		return read
	}
	return max(16*s.Size, read)
}

// Coding returns the encoding of the text and, for a compressed file, its compression with both sizes: how much was
// read so far, and how much is stored. [Decoded] words it.
func (s *Source) Coding() content.Encoding {
	if s.packed == nil {
		return s.Encoding
	}
	read, ended, _ := s.packed.state()
	inner := map[bool]string{false: string(s.Encoding) + " in "}[s.isDecoded()]
	over := map[bool]string{false: "over "}[ended]
	return content.Encoding(fmt.Sprintf("%s%s, %s%d bytes from %d stored", inner, s.packed.format, over, read, s.Size))
}

// addDamage adds to what an answer must say of the source.
func (s *Source) addDamage(note string) { s.damage = strings.Trim(s.damage+"; "+note, "; ") }

// damageNote says that the source could not be read as its content, or not to its end; "" if it could.
func (s *Source) damageNote() string {
	if s.packed == nil || s.damage != "" {
		return s.damage
	}
	read, _, damage := s.packed.state()
	if damage == nil {
		return ""
	}
	return fmt.Sprintf("the %s file %s is damaged: %v; this answer covers only %d bytes of its content, the last of which "+
		"may be wrong", s.packed.format, s.Name, damage, read)
}

// Head returns up to n first bytes of a source as stored, or of the content of a compressed one.
func (s *Source) Head(n int64) ([]byte, error) {
	var r io.Reader = io.NewSectionReader(s.ReaderAt, 0, n)
	if s.packed != nil {
		r = s.unpacked()
	}
	return io.ReadAll(io.LimitReader(r, n))
}
