package extract

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"path"
	"slices"
	"strings"

	"golang.org/x/net/html/charset"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"
)

// archive is a zip file of XML parts. Its readers share a budget of maxText unzipped bytes.
type archive struct {
	ctx   context.Context
	files map[string]*zip.File // by lower-case name
	left  int64                // unzipped bytes that may still be read
	err   error                // the first error; no part is read after it
}

// fail keeps the first error.
func (a *archive) fail(err error) {
	if a.err == nil {
		a.err = err
	}
}

// within adds the place of an error to it.
func (a *archive) within(format, name string) {
	if a.err != nil {
		a.err = fmt.Errorf(format+" %s: %w", name, a.err)
	}
}

// maxDirectory bounds the directory of a zip file, because zip.NewReader reads all of it: 4 MiB are 90,000 entries.
const maxDirectory = 4 << 20

func openArchive(ctx context.Context, r io.ReaderAt, size int64) (*archive, error) {
	if err := checkOLE(r); err != nil {
		return nil, err
	}
	directory := &meteredReaderAt{r, maxDirectory}
	z, err := zip.NewReader(directory, size)
	if err != nil {
		return nil, err
	}
	directory.left = math.MaxInt64 // the directory is read; parts have their own budget
	a := &archive{ctx: ctx, files: make(map[string]*zip.File, len(z.File)), left: maxText}
	for _, f := range z.File {
		if f.Flags&1 != 0 {
			return nil, encrypted("zip entry " + f.Name)
		}
		a.files[strings.ToLower(strings.ReplaceAll(f.Name, "\\", "/"))] = f
	}
	return a, nil
}

// checkOLE fails for the OLE container, in which Office stores an encrypted document. It looks for the name of the
// encrypted stream in the first sector of the directory.
func checkOLE(r io.ReaderAt) error {
	var head [512]byte
	if n, _ := r.ReadAt(head[:], 0); n < len(head) || string(head[:8]) != "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" {
		return nil
	}
	sector := int64(head[48]) | int64(head[49])<<8 | int64(head[50])<<16
	var directory [8 << 10]byte
	n, _ := r.ReadAt(directory[:], (sector+1)<<min(head[30], 12))
	if bytes.Contains(directory[:n], []byte("E\x00n\x00c\x00r\x00y\x00p\x00t\x00e\x00d\x00P\x00")) {
		return encrypted("package in an OLE file")
	}
	return fmt.Errorf("%w: this is an OLE file, for example of Word 97; save it in the new format", ErrBroken)
}

// meteredReaderAt reads at most left bytes. It is not safe for concurrent use.
type meteredReaderAt struct {
	r    io.ReaderAt
	left int64
}

func (m *meteredReaderAt) ReadAt(p []byte, off int64) (int, error) {
	if m.left -= int64(len(p)); m.left < 0 {
		return 0, fmt.Errorf("%w: more than %d bytes of zip directory", ErrTooLarge, maxDirectory)
	}
	return m.r.ReadAt(p, off)
}

// part is a reader of one file of the archive. It counts the bytes that it returns: sizes in zip headers can be wrong.
type part struct {
	a *archive
	r io.Reader
}

func (p part) Read(buf []byte) (int, error) {
	if err := p.a.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := p.r.Read(buf)
	if p.a.left -= int64(n); p.a.left < 0 {
		return 0, fmt.Errorf("%w: more than %d bytes of unzipped content", ErrTooLarge, maxText)
	}
	return n, err
}

func (a *archive) has(name string) bool { return a.files[strings.ToLower(name)] != nil }

func (a *archive) open(name string) (io.ReadCloser, error) {
	f := a.files[strings.ToLower(name)]
	if f == nil {
		return nil, fmt.Errorf("%w: part %s is missing", ErrBroken, name)
	}
	r, err := f.Open()
	if err != nil {
		return nil, fmt.Errorf("part %s: %w", name, err)
	}
	return struct {
		io.Reader
		io.Closer
	}{part{a, r}, r}, nil
}

// tokens calls start and other for the tokens of an XML part, in document order, until one of them fails: start for
// start elements, other for end elements and character data.
func (a *archive) tokens(name string, start func(xml.StartElement) error, other func(xml.Token) error) {
	if a.err != nil {
		return
	}
	r, err := a.open(name)
	if err != nil {
		a.fail(err)
		return
	}
	defer func() { _ = r.Close() }()
	d := xml.NewDecoder(transform.NewReader(r, unicode.BOMOverride(transform.Nop)))
	d.CharsetReader = func(label string, in io.Reader) (io.Reader, error) {
		if strings.HasPrefix(strings.ToLower(label), "utf-16") {
			return in, nil // BOMOverride has decoded it
		}
		return charset.NewReaderLabel(label, in)
	}
	for depth := 0; a.err == nil; {
		t, err := d.Token()
		switch e := t.(type) {
		case xml.StartElement:
			if depth++; depth > maxDepth {
				a.fail(fmt.Errorf("%w: part %s nests more than %d elements", ErrBroken, name, maxDepth))
				return
			}
			err = start(e)
		case xml.EndElement:
			depth--
			err = other(t)
		case xml.CharData:
			err = other(t)
		}
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			a.fail(err)
		}
	}
	a.within("part", name)
}

// relation is a relationship of an Office part.
type relation struct {
	id, kind string // kind is the last segment of the type, such as "officeDocument"
	target   string // name of the other part, or an address
	external bool
}

// relations returns the relationships of a part to other parts, in order. The part "" has those of the document.
func (a *archive) relations(name string) (all []relation) {
	dir, file := path.Split(name)
	rels := dir + "_rels/" + file + ".rels"
	if !a.has(rels) {
		return nil
	}
	a.tokens(rels, func(e xml.StartElement) error {
		if e.Name.Local != "Relationship" {
			return nil
		}
		r := relation{attr(e, "Id"), path.Base(attr(e, "Type")), attr(e, "Target"), attr(e, "TargetMode") == "External"}
		if !r.external && !strings.HasPrefix(r.target, "/") {
			r.target = path.Join(dir, r.target)
		}
		if !r.external {
			r.target = strings.TrimPrefix(r.target, "/")
		}
		all = append(all, r)
		return nil
	}, ignore)
	return all
}

// archived reads a format that is an archive.
func archived(read func(*builder, *archive)) reader {
	return func(ctx context.Context, b *builder, r io.ReaderAt, size int64) error {
		a, err := openArchive(ctx, r, size)
		if err != nil {
			return err
		}
		if read(b, a); a.err == nil {
			a.countObjects(b)
		}
		return a.err
	}
}

// office reads an archive that names its main part.
func office(read func(b *builder, a *archive, main string)) func(*builder, *archive) {
	return func(b *builder, a *archive) {
		rels := a.relations("")
		i := slices.IndexFunc(rels, func(r relation) bool { return r.kind == "officeDocument" })
		if i < 0 {
			a.fail(fmt.Errorf("%w: _rels/.rels names no document", ErrBroken))
			return
		}
		read(b, a, rels[i].target)
	}
}

// countObjects counts the pictures, charts and files within the archive.
func (a *archive) countObjects(b *builder) {
	for name := range a.files {
		dir, file := path.Split(name)
		switch {
		case strings.HasSuffix(dir, "media/") || dir == "pictures/":
			b.missed("picture", 1)
		case strings.HasSuffix(dir, "/charts/") && strings.HasPrefix(file, "chart"):
			b.missed("chart", 1)
		case strings.HasSuffix(dir, "/embeddings/"):
			b.missed("embedded file", 1)
		}
	}
}

func ignore(xml.Token) error { return nil }

// attr returns the value of the last attribute with a local name: relationship ids follow plain ids.
func attr(e xml.StartElement, local string) string {
	value := ""
	for _, a := range e.Attr {
		if a.Name.Local == local {
			value = a.Value
		}
	}
	return value
}

// attributes returns the attributes of an element by their local names.
func attributes(e xml.StartElement) map[string]string {
	all := map[string]string{}
	for _, a := range e.Attr {
		all[a.Name.Local] = a.Value
	}
	return all
}
