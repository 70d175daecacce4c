//go:build !linux || portable

package tree

import "io"

// read takes the names of dir. Their types are asked for one by one.
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
			list.take(w.ctx, []byte(name), isUnknown)
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
