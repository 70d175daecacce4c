package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/observations/files"
	"github.com/mcp-funnel/mcp-funnel/observations/remote"
	"github.com/mcp-funnel/mcp-funnel/records"
	"github.com/mcp-funnel/mcp-funnel/session/trace"
	"github.com/mcp-funnel/mcp-funnel/system/database"
)

// Kept is what is kept between calls: in a directory, or in a bucket and a database that replicas share.
type Kept struct {
	Store    *observations.Store
	Records  records.Store
	Trace    trace.Store
	Database *database.DB   // nil for a directory
	Bucket   *remote.Bucket // nil for a directory
	Cache    *files.Store   // of the bucket; nil for a directory
}

// Where says where observations are, for people.
func (k *Kept) Where() string {
	if k.Bucket != nil {
		return k.Bucket.String()
	}
	return k.Store.Dir()
}

// Close closes all of it.
func (k *Kept) Close() {
	_ = k.Trace.Close()
	if k.Store != nil {
		k.Records.Close()
		_ = k.Store.Close()
	}
	if k.Database != nil {
		k.Database.Close()
	}
}

// IsRemote reports whether observations are in a bucket.
func (s *Settings) IsRemote() bool { return strings.HasPrefix(s.Store, remote.Scheme) }

// StoreDir returns the directory of the store, or of its cache, which may be missing.
func (s *Settings) StoreDir() (string, error) {
	switch {
	case s.IsRemote() && s.Cache != "":
		return s.Cache, nil
	case s.IsRemote():
		dir, err := os.UserCacheDir()
		if err != nil {
			err = fmt.Errorf("%w: name a directory with --cache DIR", err)
		}
		return filepath.Join(dir, "mcp-funnel"), err
	case s.Store != "":
		return s.Store, nil
	}
	return observations.DefaultDir()
}

// OpenKept opens what is kept, for commands that cannot work without it.
func (s *Settings) OpenKept(log *slog.Logger) (*Kept, error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	o := s.Options()
	limits := o.Store
	if !s.IsRemote() {
		store, err := observations.OpenStore(limits)
		if err != nil {
			return nil, err
		}
		return &Kept{Store: store, Records: records.InDir(store.Dir()), Trace: trace.InDir(trace.Dir(store.Dir()))}, nil
	}
	o.Bucket.URL = s.Store
	bucket, err := remote.OpenBucket(o.Bucket)
	if err != nil {
		return nil, UsageError{err}
	}
	if o.Cache.Dir, err = s.StoreDir(); err != nil {
		return nil, err
	}
	ctx := context.Background() // each step has a limit of its own
	o.Database.Log = log
	if s.HTTP != "" {
		o.Database.Replica = s.ReplicaName()
	}
	db, err := database.Open(ctx, o.Database)
	if err != nil {
		return nil, err
	}
	o.Cache.Cache, o.Cache.MaxObservation, o.Cache.MinFree, o.Cache.MaxAge = true, -1, limits.MinFree, limits.MaxAge
	cache, err := files.Open(o.Cache)
	if err == nil && cache.Unwritable() != nil {
		err = fmt.Errorf("--cache %s: %w", o.Cache.Dir, cache.Unwritable())
		_ = cache.Close()
	}
	if err != nil {
		db.Close()
		return nil, err
	}
	b, err := remote.Open(ctx, remote.Options{DB: db, Bucket: bucket, Cache: cache, Limits: limits, Log: log})
	if err != nil {
		_ = cache.Close()
		db.Close()
		return nil, err
	}
	return &Kept{
		observations.OpenOn(b, cache, limits), records.InDatabase(db), trace.InDatabase(db, log), db, bucket, cache,
	}, nil
}

// WithKept runs do with what is kept.
func (s *Settings) WithKept(do func(*Kept) error) error {
	kept, err := s.OpenKept(nil)
	if err != nil {
		return err
	}
	defer kept.Close()
	return do(kept)
}

// WithTrace runs do with the trace. A directory that is missing has no calls.
func (s *Settings) WithTrace(do func(trace.Store) error) error {
	if s.IsRemote() {
		return s.WithKept(func(k *Kept) error { return do(k.Trace) })
	}
	dir, err := s.StoreDir()
	if err != nil {
		return err
	}
	return do(trace.InDir(trace.Dir(dir)))
}

// WithStore runs do with the store open.
func (s *Settings) WithStore(do func(*observations.Store) error) error {
	return s.WithKept(func(k *Kept) error { return do(k.Store) })
}

// checkStore checks the settings of a bucket and its database.
func (s *Settings) checkStore() error {
	if !s.IsRemote() {
		for name, given := range map[string]bool{
			"--database": s.Database != "", "--s3-endpoint": s.S3Endpoint != "", "--s3-region": s.S3Region != "",
			"--s3-insecure": s.S3Insecure, "--cache": s.Cache != "",
		} {
			if given {
				return fmt.Errorf("%s goes with --store s3://BUCKET/PREFIX, which is not set", name)
			}
		}
		return nil
	}
	if s.Database == "" {
		return errors.New("--store s3://… goes with --database postgres://USER@HOST/NAME, which is not set")
	}
	o := s.Options().Bucket
	o.URL = s.Store
	_, err := remote.OpenBucket(o)
	return err
}

// ExplainWrite adds to the error of a change what to do if the store cannot be written to.
func ExplainWrite(store *observations.Store, err error) error {
	if err == nil || store.Unwritable() == nil ||
		!errors.Is(err, fs.ErrPermission) && !errors.Is(err, syscall.EROFS) {
		return err
	}
	return fmt.Errorf("%w: %s: %w: make it writable, or choose another with --store", ErrUnwritable, store.Dir(), err)
}

// ErrUnwritable is the error of ExplainWrite for a store that cannot be written to.
var ErrUnwritable = errors.New("the store cannot be written to")
