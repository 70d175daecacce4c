//go:build !linux || portable

package tree

import (
	"errors"
	"io/fs"
	"os"
)

// CreateUnnamed creates a file without a name: this system has none.
func (r *Root) CreateUnnamed(fs.FileMode) (*os.File, error) { return nil, errors.ErrUnsupported }

// NameIn gives an unnamed file a name.
func (r *Root) NameIn(*os.File, string) error { return errors.ErrUnsupported }

// ExchangeIn exchanges the names of two files: this system cannot.
func (r *Root) ExchangeIn(string, string) error { return errors.ErrUnsupported }

// rename renames between directories: this system cannot.
func rename(*Root, string, *Root, string, bool) error { return errors.ErrUnsupported }
