package packed

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/bzip2"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"
)

// Limits of one walk through an archive.
const (
	maxMembers   = 200_000
	maxNames     = 16 << 20 // bytes of all names
	maxDirectory = 16 << 20 // bytes of a zip's directory, of which zip.NewReader reads all: 100,000 members have 8 MiB
	maxUnpacked  = 4 << 30  // bytes of content
)

// Member is a file, directory, link or device in an archive.
type Member struct {
	Path     string // relative; of a name that leads out of the archive, slashes and ".." are escaped
	Mode     fs.FileMode
	Size     int64 // as the archive says
	Modified time.Time
	Why      string // what it is in place of a file that can be read, as after "it is"; "" if it is one
	// Open opens a member that has no Why, while it is visited.
	Open func() (io.Reader, error)
}

// Some reasons why a member cannot be read.
const (
	Encrypted = "encrypted"
	Directory = "a directory: find with this path lists it"
)

// IsTar reports whether a text begins with the header of a tar, whose first 512 bytes it is.
func IsTar(prefix []byte) bool { return len(prefix) > 262 && string(prefix[257:262]) == "ustar" }

// isZip reports whether a file with these first bytes is a zip, perhaps behind a script that runs it.
func isZip(prefix []byte, r io.ReaderAt, size int64) bool {
	if bytes.HasPrefix(prefix, []byte("#!")) {
		_, err := openZip(r, size)
		return err == nil
	}
	return bytes.HasPrefix(prefix, []byte("PK\x03\x04")) || bytes.HasPrefix(prefix, []byte("PK\x05\x06"))
}

// IsArchive reports whether a file of size bytes is a zip, or a tar that may be compressed.
func IsArchive(r io.ReaderAt, size int64) bool {
	head := make([]byte, 512)
	n, _ := r.ReadAt(head, 0)
	if isZip(head[:n], r, size) {
		return true
	}
	if p, err := NewReader(Detect(head[:n]), io.NewSectionReader(r, 0, size)); err == nil {
		n, _ = io.ReadFull(p, head)
	}
	return IsTar(head[:n])
}

// HasArchiveName reports whether the name of a file is one that archives have.
func HasArchiveName(name string) bool {
	return slices.Contains(strings.Fields(".zip .jar .war .ear .whl .apk .aar .nupkg .tar .tgz .tbz .tbz2 .txz .tzst"),
		strings.ToLower(path.Ext(TrimExtension(name))))
}

// Walk calls visit for each member of an archive of size bytes, in the order in which it has them. It returns the errors
// of visit and of ctx. note says what was not listed, because of a limit or of damage; "" if all was.
func Walk(ctx context.Context, r io.ReaderAt, size int64, visit func(Member) error) (note string, err error) {
	w := &walk{ctx: ctx, visit: visit, left: maxUnpacked}
	head := make([]byte, 10)
	n, _ := r.ReadAt(head, 0)
	from := io.NewSectionReader(r, 0, size)
	if isZip(head[:n], r, size) {
		err = w.zip(r, size)
	} else if format := Detect(head[:n]); format == "" {
		err = w.tar(from)
	} else if p, failed := NewReader(format, from); failed != nil {
		err = failed
	} else {
		err = w.tar(&meter{w, p})
	}
	if err == nil || w.visited != nil || ctx.Err() != nil {
		return "", errors.Join(w.visited, ctx.Err())
	}
	return fmt.Sprintf("its members from number %d on cannot be read: %v", w.n+1, err), nil
}

// walk is the state of one [Walk].
type walk struct {
	ctx      context.Context
	visit    func(Member) error
	n, names int64
	left     int64 // bytes that may still be unpacked
	visited  error // of visit
}

// member visits a member, unless a limit is reached.
func (w *walk) member(m Member, name string) error {
	if m.Path = path.Clean(name); m.Path == "." {
		return nil
	}
	if m.Path[0] == '/' || m.Path == ".." || strings.HasPrefix(m.Path, "../") {
		m.Path = strings.NewReplacer("/", `\x2f`, "..", `\x2e\x2e`).Replace(m.Path)
	}
	w.names += int64(len(name))
	switch {
	case w.n == maxMembers:
		return fmt.Errorf("it has more than %d", maxMembers)
	case w.names > maxNames:
		return fmt.Errorf("their names have over %d MiB", maxNames>>20)
	case m.Why == "" && !m.Mode.IsRegular():
		m.Why = map[bool]string{true: Directory, false: "a link or a device"}[m.Mode.IsDir()]
	}
	w.n++
	w.visited = w.visit(m)
	return errors.Join(w.visited, w.ctx.Err())
}

// openZip reads the directory of a zip.
func openZip(r io.ReaderAt, size int64) (z *zip.Reader, err error) {
	directory := &directoryAt{r, maxDirectory}
	err = guard(func() error { z, err = zip.NewReader(directory, size); return err })
	directory.left = math.MaxInt64
	return z, err
}

func (w *walk) zip(r io.ReaderAt, size int64) error {
	z, err := openZip(r, size)
	if err != nil {
		return err
	}
	z.RegisterDecompressor(12, func(r io.Reader) io.ReadCloser { return io.NopCloser(bzip2.NewReader(r)) })
	z.RegisterDecompressor(zstd.ZipMethodWinZip, zstd.ZipDecompressor(zstdOptions...))
	for _, f := range z.File {
		m := Member{Mode: f.Mode(), Size: int64(min(f.UncompressedSize64, math.MaxInt64)), Modified: f.Modified}
		switch {
		case strings.HasSuffix(f.Name, "/"):
			m.Mode |= fs.ModeDir
		case f.Flags&1 != 0:
			m.Why = Encrypted
		}
		m.Open = func() (io.Reader, error) {
			c, err := f.Open()
			return &meter{w, c}, err
		}
		if err := w.member(m, f.Name); err != nil {
			return err
		}
	}
	return nil
}

func (w *walk) tar(r io.Reader) (err error) {
	t := tar.NewReader(r)
	for {
		var h *tar.Header
		if err := guard(func() error { h, err = t.Next(); return err }); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		open := func() (io.Reader, error) { return t, nil }
		m := Member{Mode: h.FileInfo().Mode(), Size: h.Size, Modified: h.ModTime, Open: open}
		switch h.Typeflag {
		case tar.TypeXGlobalHeader:
			continue
		case tar.TypeLink:
			m.Mode |= fs.ModeSymlink
		}
		if err := w.member(m, h.Name); err != nil {
			return err
		}
	}
}

// meter unpacks at most what is left of a walk.
type meter struct {
	w *walk
	r io.Reader
}

func (m *meter) Read(b []byte) (n int, err error) {
	if m.w.left <= 0 {
		return 0, fmt.Errorf("it has over %d GiB", int64(maxUnpacked>>30))
	}
	if err = m.w.ctx.Err(); err == nil {
		err = guard(func() error { n, err = m.r.Read(b[:min(int64(len(b)), m.w.left)]); return err })
	}
	m.w.left -= int64(n)
	return n, err
}

// directoryAt reads at most left bytes.
type directoryAt struct {
	io.ReaderAt
	left int64
}

func (d *directoryAt) ReadAt(p []byte, off int64) (int, error) {
	if d.left -= int64(len(p)); d.left < 0 {
		return 0, fmt.Errorf("its directory has over %d MiB", maxDirectory>>20)
	}
	return d.ReaderAt.ReadAt(p, off)
}
