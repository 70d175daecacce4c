package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/flate"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/klauspost/compress/gzip"
)

// file is one of an archive. A directory's name ends with a slash.
type file struct {
	name string
	mode int64
	text []byte
	user int // owner and group
}

// readFiles reads files, to be put below a directory of an archive by their last names. Scripts may be executed.
func readFiles(dir string, paths ...string) (files []file, err error) {
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		mode := int64(0o644)
		if strings.HasSuffix(path, ".sh") || strings.HasSuffix(path, ".js") {
			mode = 0o755
		}
		files = append(files, file{name: dir + filepath.Base(path), mode: mode, text: text})
	}
	return files, nil
}

// programFile reads a program.
func programFile(name, path string) (file, error) {
	text, err := os.ReadFile(path)
	return file{name: name, mode: 0o755, text: text}, err
}

// writeTar writes files with one time.
func writeTar(w io.Writer, when time.Time, files []file) error {
	t := tar.NewWriter(w)
	for _, f := range files {
		h := &tar.Header{
			Name: f.name, Mode: f.mode, Size: int64(len(f.text)), ModTime: when, Uid: f.user, Gid: f.user, Typeflag: tar.TypeReg,
		}
		if f.name[len(f.name)-1] == '/' {
			h.Typeflag = tar.TypeDir
		}
		if err := t.WriteHeader(h); err != nil {
			return err
		}
		if _, err := t.Write(f.text); err != nil {
			return err
		}
	}
	return t.Close()
}

// tgz returns files as a compressed tar archive. This gzip makes the program 70 kB smaller than the standard library's.
func tgz(when time.Time, files []file) ([]byte, error) {
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if err := writeTar(z, when, files); err != nil {
		return nil, err
	}
	err = z.Close()
	return b.Bytes(), err
}

// zipped returns files as a zip archive.
func zipped(when time.Time, files []file) ([]byte, error) {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	z.RegisterCompressor(zip.Deflate, func(w io.Writer) (io.WriteCloser, error) {
		return flate.NewWriter(w, flate.BestCompression)
	})
	for _, f := range files {
		h := &zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: when}
		h.SetMode(os.FileMode(f.mode))
		w, err := z.CreateHeader(h)
		if err != nil {
			return nil, err
		}
		if _, err := w.Write(f.text); err != nil {
			return nil, err
		}
	}
	err := z.Close()
	return b.Bytes(), err
}
