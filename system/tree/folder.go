package tree

import (
	"io/fs"
	"os"
)

// Folder is an open directory whose files are opened and described by one name, and never through a link, with fewer
// system calls than [os.Root] takes. It is safe for concurrent use.
type Folder struct{ dir folder }

// OpenFolder opens the directory of a root. The caller closes it.
func OpenFolder(root *os.Root) (Folder, error) {
	dir, err := (&Root{os: root}).top()
	return Folder{dir}, err
}

// Open opens a regular file; anything else is [fs.ErrInvalid].
func (f Folder) Open(name string) (Opened, error) {
	o, _, regular, err := f.dir.openPlain(name)
	if err == nil && !regular {
		_ = o.Close()
		err = fs.ErrInvalid
	}
	return o, err
}

// Mark returns the mark of a name, and whether it is a regular file.
func (f Folder) Mark(name string) (m Mark, regular bool, err error) {
	at, err := f.dir.lstat(name)
	if err != nil {
		return m, false, err
	}
	return at.mark(), at.Mode().IsRegular(), nil
}

// Names calls visit for each name, and whether it is a regular file. The name is valid until visit returns.
func (f Folder) Names(visit func(name []byte, regular bool)) error {
	again, err := f.dir.openDir(".") // with an offset of its own
	if err != nil {
		return err
	}
	defer again.close()
	never := func() error { return nil }
	return again.eachName(make([]byte, 64<<10), never, func(name []byte, _ uint64, k kind) {
		if k == isUnknown {
			at, err := f.dir.lstat(string(name))
			visit(name, err == nil && at.Mode().IsRegular())
			return
		}
		visit(name, k == isFile)
	})
}

// Close closes the directory.
func (f Folder) Close() { f.dir.close() }
