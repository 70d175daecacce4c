//go:build !linux || portable

package tree

import "io"

// read lists the names of dir. Their types must be queried one by one.
func (w *walker) read(dir folder, list *listing) error {
	return dir.eachName(nil, w.ctx.Err, func(name []byte, _ uint64, k kind) { list.insert(w.ctx, name, k) })
}

// eachName calls visit for all names in d; check runs before each read.
func (d folder) eachName(_ []byte, check func() error, visit func(name []byte, inode uint64, k kind)) error {
	f, err := d.openFile(".", 0)
	if err != nil {
		return err
	}
	defer f.Close()
	for {
		if err := check(); err != nil {
			return err
		}
		names, err := f.Readdirnames(1024)
		for _, name := range names {
			visit([]byte(name), 0, isUnknown)
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
