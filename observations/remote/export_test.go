package remote

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"time"

	"github.com/mcp-funnel/mcp-funnel/observations/backend"
)

// SetPatience sets how long a request may take, beside the time for its bytes.
func (s *Store) SetPatience(d time.Duration) { s.bucket.patience = d }

// Die ends heartbeats as a death does, and all else in the database.
func (s *Store) Die() { s.db.Close() }

// StoreObject completes the object of a writer, without its row.
func StoreObject(w backend.Writer) error {
	own, hash := w.(*writer), sha256.New()
	if _, err := io.Copy(hash, io.NewSectionReader(own, 0, own.size)); err != nil {
		return err
	}
	return own.store(hex.EncodeToString(hash.Sum(nil)))
}

// InBucket returns how many objects there are, and how many uploads that are not complete.
func (s *Store) InBucket() (objects, uploads int, err error) {
	for ids, failed := range s.bucket.old(context.Background(), -time.Hour) {
		objects, err = objects+len(ids), errors.Join(err, failed)
	}
	for u := range s.bucket.uploads(context.Background()) {
		if uploads++; u.Err != nil {
			return 0, 0, u.Err
		}
	}
	return objects, uploads, err
}

// Hasty is a control: a store that commits the row of an observation before its object is complete.
type Hasty struct{ *Store }

// Create implements [backend.Backend].
func (s Hasty) Create(p backend.Provenance, at time.Time) (backend.Writer, error) {
	w, err := s.Store.Create(p, at)
	return hastyWriter{w.(*writer)}, err
}

type hastyWriter struct{ *writer }

func (w hastyWriter) Commit(o backend.Observation, lines []byte) (backend.Observation, error) {
	o, err := w.commitRow(o, lines)
	if err == nil && w.spool != nil {
		err = w.store(o.SHA256)
	}
	return o, err
}

// Unchecked is a control: a store that compares no hash of what it reads.
type Unchecked struct{ *Store }

// Open implements [backend.Backend].
func (s Unchecked) Open(owner string, id backend.ID) (backend.Observation, backend.Blob, error) {
	o, b, err := s.Store.Open(owner, id)
	if err != nil {
		return o, nil, err
	}
	return o, uncheckedBlob{b.(*blob)}, nil
}

type uncheckedBlob struct{ *blob }

func (b uncheckedBlob) ReadAt(p []byte, off int64) (int, error) {
	if !b.o.object {
		return bytes.NewReader(b.o.body).ReadAt(p, off)
	}
	var buf bytes.Buffer
	err := b.s.bucket.read(b.s.ctx, b.s.bucket.key(string(b.o.ID)), &buf, off, min(off+int64(len(p)), b.o.Bytes))
	n := copy(p, buf.Bytes())
	if err == nil && n < len(p) {
		err = io.EOF
	}
	return n, err
}
