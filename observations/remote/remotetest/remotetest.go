// Package remotetest opens remote stores for tests: on a real Postgres, and on an S3 server in this process.
package remotetest

import (
	"context"
	"fmt"
	"net/http/httptest"
	"os"
	"sync"
	"testing"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"github.com/mcp-funnel/mcp-funnel/observations/backend"
	"github.com/mcp-funnel/mcp-funnel/observations/files"
	"github.com/mcp-funnel/mcp-funnel/observations/remote"
	"github.com/mcp-funnel/mcp-funnel/system/database"
	"github.com/mcp-funnel/mcp-funnel/system/database/databasetest"
)

// Place is where replicas keep what they share.
type Place struct {
	Database string // URL
	S3       string // URL of the server
}

const (
	// Bucket is the store's URL.
	Bucket = "s3://observations/of/tests"
	// Key is what the client signs with.
	Key = "test"
	// Secret is that of the key.
	Secret = "test-secret"
)

// setKey gives the client of S3 a key; parallel tests could not set one each.
var setKey = sync.OnceFunc(func() {
	for name, value := range map[string]string{"AWS_ACCESS_KEY_ID": Key, "AWS_SECRET_ACCESS_KEY": Secret} {
		if err := os.Setenv(name, value); err != nil { //nolint:usetesting // it is for all tests
			panic(err)
		}
	}
})

// New makes an empty place, which ends with the test. It skips the test where Postgres is missing.
func New(t testing.TB) Place {
	t.Helper()
	address := databasetest.URL(t)
	memory := s3mem.New()
	if err := memory.CreateBucket("observations"); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(gofakes3.New(memory).Server())
	t.Cleanup(server.Close)
	return Place{address, server.URL}
}

// Open opens a store as a replica does, with a cache of its own. Both are closed with the test.
func (p Place) Open(t testing.TB, o backend.Options) (*remote.Store, *files.Store) {
	t.Helper()
	setKey()
	db, err := database.Open(context.Background(), database.Options{URL: p.Database, Replica: t.Name()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	cache, err := files.Open(backend.Options{Dir: t.TempDir(), Cache: true, MinFree: -1})
	if err != nil {
		t.Fatal(err)
	}
	bucket, err := remote.OpenBucket(remote.BucketOptions{URL: Bucket, Endpoint: p.S3, Region: "us-east-1"})
	if err != nil {
		t.Fatal(err)
	}
	s, err := remote.Open(context.Background(), remote.Options{DB: db, Bucket: bucket, Cache: cache, Limits: o})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s, cache
}

// Consistent fails the test unless the quota of each owner is that of its rows, and so many observations are written.
func (p Place) Consistent(t testing.TB, writers int) {
	t.Helper()
	databasetest.Exec(t, p.Database, fmt.Sprintf(`do $$ declare wrong text; begin
		select string_agg(format('%%s is counted with %%s bytes and has %%s', owner, counts, has), '; ') into wrong from (
			select owner, sum(counts) as counts, sum(has) as has from (
				select owner, bytes as counts, 0 as has from usage
				union all select owner, 0, counted from observations
				union all select owner, 0, bytes from reservations) rows group by owner) owners where counts <> has;
		if wrong is not null or (select count(*) from reservations) <> %d then
			raise '%%; %% are being written', wrong, (select count(*) from reservations);
		end if; end $$`, writers))
}

// Empty removes all observations. No store may be open.
func (p Place) Empty(t testing.TB) {
	t.Helper()
	databasetest.Exec(t, p.Database, "truncate observations, blocks, usage, reservations, removals")
}
