package remote_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/observations/backend"
	"github.com/mcp-funnel/mcp-funnel/observations/files"
	"github.com/mcp-funnel/mcp-funnel/observations/remote"
	"github.com/mcp-funnel/mcp-funnel/observations/remote/remotetest"
	"github.com/mcp-funnel/mcp-funnel/system/database"
	"github.com/mcp-funnel/mcp-funnel/system/database/databasetest"
)

// TestCopies damages the copy of an observation in the cache: it is thrown away, and what is read is right.
func TestCopies(t *testing.T) {
	s, cache := remotetest.New(t).Open(t, backend.Options{})
	data := bytesOf(3 << 20)
	o := expect.Value(keep(s, data))(t)
	dir := filepath.Join(cache.Dir(), "observations")
	side := filepath.Join(dir, string(o.ID)+".json")
	file := func() string {
		all := expect.Value(filepath.Glob(filepath.Join(dir, "search_*_"+string(o.ID)+".*")))(t)
		if len(all) != 1 {
			t.Fatalf("copies: %v", all)
		}
		return all[0]
	}
	for name, damage := range map[string]func(path string) error{
		"nothing":      func(string) error { return nil },
		"removed":      os.Remove,
		"truncated":    func(path string) error { return os.Truncate(path, 1000) },
		"empty":        func(path string) error { return os.Truncate(path, 0) },
		"longer":       func(path string) error { return os.WriteFile(path, append(data, 'x'), 0o600) },
		"another byte": func(path string) error { return os.WriteFile(path, flip(data), 0o600) },
		"no sidecar":   func(string) error { return os.Remove(side) },
		"sidecar":      func(string) error { return os.WriteFile(side, []byte("{}"), 0o600) },
		"both removed": func(path string) error { return errors.Join(os.Remove(path), os.Remove(side)) },
	} {
		expect.Must(t, read(s, o.ID, data, 0, -1), "%s: before", name)
		expect.Must(t, damage(file()), name)
		expect.Must(t, read(s, o.ID, data, 0, -1), "%s: after", name)
	}
	// A copy that is open while it is damaged cannot be thrown away: ranges of the object go on.
	_, open, err := s.Open(owner, o.ID)
	expect.Must(t, err)
	expect.Must(t, os.WriteFile(file(), flip(data), 0o600))
	expect.Must(t, read(s, o.ID, data, 0, -1), "while it is open")
	expect.Must(t, open.Close())
	// Verification looks at the object, not at the copy.
	_, b, err := s.OpenAny(owner, o.ID)
	expect.Must(t, err)
	got := make([]byte, len(data))
	expect.Value(b.ReadAt(got, 0))(t)
	expect.Equal(t, bytes.Equal(got, data), true)
	expect.Must(t, b.Close())
}

// TestPlaces opens a bucket with the rows of another database, another prefix with the rows of this one, and the cache as
// a store and the other way round: each is refused, so that no replica finds rows without their objects.
func TestPlaces(t *testing.T) {
	here, other := remotetest.New(t), remotetest.New(t)
	s, cache := here.Open(t, backend.Options{})
	o := expect.Value(keep(s, bytesOf(100<<10)))(t)
	open := func(url, s3, bucket string) error {
		db := expect.Value(database.Open(context.Background(), database.Options{URL: url}))(t)
		defer db.Close()
		b := expect.Value(remote.OpenBucket(remote.BucketOptions{URL: bucket, Endpoint: s3, Region: "us-east-1"}))(t)
		c := expect.Value(files.Open(backend.Options{Dir: t.TempDir(), Cache: true, MinFree: -1}))(t)
		opened, err := remote.Open(context.Background(), remote.Options{DB: db, Bucket: b, Cache: c})
		if err != nil {
			return errors.Join(err, c.Close())
		}
		return opened.Close()
	}
	expect.Must(t, open(here.Database, here.S3, remotetest.Bucket))
	for _, c := range [][3]string{
		{other.Database, here.S3, remotetest.Bucket}, {here.Database, here.S3, remotetest.Bucket + "/below"},
		{here.Database, other.S3, remotetest.Bucket}, {here.Database, here.S3, "s3://nobody/x"},
	} {
		err := open(c[0], c[1], c[2])
		if err == nil {
			t.Errorf("%s is opened with %s at %s", c[0], c[2], c[1])
		}
	}
	expect.Must(t, read(s, o.ID, bytesOf(100<<10), 0, -1))
	expect.Contains(t, expect.Err(files.Open(backend.Options{Dir: cache.Dir(), MinFree: -1})).Error(), "--store")
	dir := t.TempDir()
	store := expect.Value(files.Open(backend.Options{Dir: dir, MinFree: -1}))(t)
	expect.Value(keep(store, bytesOf(1000)))(t)
	expect.Must(t, store.Close())
	expect.Contains(t, expect.Err(files.Open(backend.Options{Dir: dir, Cache: true, MinFree: -1})).Error(), "--cache")
}

// TestDamagedRows has a sidecar that cannot be read: it hides no other observation, keeps no room and can be removed.
func TestDamagedRows(t *testing.T) {
	p := remotetest.New(t)
	s, _ := p.Open(t, backend.Options{})
	bad, good := expect.Value(keep(s, bytesOf(100<<10)))(t), expect.Value(keep(s, bytesOf(2000)))(t)
	databasetest.Exec(t, p.Database, "update observations set sidecar = '' where id = '"+string(bad.ID)+"'")
	list, damaged, err := s.Listing(owner, true, true)
	expect.Must(t, err)
	if len(list) != 1 || list[0].ID != good.ID || len(damaged) != 1 || damaged[0] != bad.ID {
		t.Errorf("listed: %v; damaged: %v", list, damaged)
	}
	expect.ErrorIs(t, expect.Err(s.Stat(owner, bad.ID)), backend.ErrDamaged)
	expect.ErrorIs(t, s.RemoveDamaged(good.ID), backend.ErrNotFound)
	expect.Must(t, s.RemoveDamaged(bad.ID))
	expect.ErrorIs(t, expect.Err(s.Stat(owner, bad.ID)), backend.ErrNotFound)
	p.Consistent(t, 0)
}
