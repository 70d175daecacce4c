package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"github.com/mcp-funnel/mcp-funnel/observations"
)

// StoreDir returns the directory of the store, which may be missing.
func (s *Settings) StoreDir() (string, error) {
	if s.Store != "" {
		return s.Store, nil
	}
	return observations.DefaultDir()
}

// OpenStore opens the store for commands that cannot work without it.
func (s *Settings) OpenStore() (*observations.Store, error) {
	return observations.OpenStore(s.Options().Store)
}

// WithStore runs do with the store open.
func (s *Settings) WithStore(do func(*observations.Store) error) error {
	store, err := s.OpenStore()
	if err != nil {
		return err
	}
	defer func() { _ = store.Close() }()
	return do(store)
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
