//go:build !linux || portable

package tree

import "io"

// read lists the names of dir. Their types must be queried one by one.
func (w *walker) read(dir folder, list *listing) error {
	f, err := dir.openFile(".", 0)
	if err != nil {
		return err
	}
	defer f.Close()
	for {
		if err := w.ctx.Err(); err != nil {
			return err
		}
		names, err := f.Readdirnames(1024)
		for _, name := range names {
			list.insert(w.ctx, []byte(name), isUnknown)
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
