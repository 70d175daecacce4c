package tree

// enter pushes the directory called base of the level top; false if it cannot be read.
func (w *walker) enter(top int, base string, dir folder, glob *globState) (bool, error) {
	at := len(w.path)
	w.path = append(append(w.path, base...), '/')
	err := w.push(dir, w.stack[top].rules, glob)
	if len(w.stack) == top+1 {
		w.path = w.path[:at]
		return false, err
	}
	return true, err
}

// isStore reports whether a directory that the walk does not enter is a store.
func (w *walker) isStore(top int, base string) bool {
	dir, err := w.folder(top)
	return err == nil && dir.hasStore(base)
}

// countStore counts a store that the walk skips.
func (w *walker) countStore(full string) {
	if w.report.Stores++; w.report.Stores == 1 {
		w.report.FirstStore = full
	}
}

// openSubdir opens the directory called name in the level at.
func (w *walker) openSubdir(at int, name string) (folder, error) {
	dir, err := w.folder(at)
	if err != nil {
		return folder{}, err
	}
	return w.checkDenied(dir.openDir(name))
}

// checkDenied closes and refuses a denied directory, whatever its name.
func (w *walker) checkDenied(dir folder, err error) (folder, error) {
	if err != nil || len(w.denied) == 0 {
		return dir, err
	}
	id, err := dir.id()
	if err == nil && w.isDenied(id) {
		err = ErrDenied
	}
	if err != nil {
		dir.close()
		return folder{}, err
	}
	return dir, nil
}

// folder returns the open directory of a level. A closed one is opened again by name from the nearest open one, and up
// to maxOpen levels above it stay open, so that walking back up a deep tree reopens each level about once.
func (w *walker) folder(at int) (folder, error) {
	if w.stack[at].err != nil {
		return folder{}, w.stack[at].err
	}
	from := at
	for !w.stack[from].open {
		from--
	}
	dir, temporary := w.stack[from].dir, false
	for i := from + 1; i <= at; i++ {
		sub, err := w.checkDenied(dir.openDir(string(w.path[w.stack[i-1].path : w.stack[i].path-1])))
		if err == nil && sub.isStore() {
			sub.close()
			err = ErrDenied
		}
		if temporary {
			dir.close()
		}
		if err != nil {
			w.stack[at].err = err
			return folder{}, err
		}
		dir, temporary = sub, at-i >= maxOpen
		if !temporary {
			w.stack[i].dir, w.stack[i].open = sub, true
		}
	}
	return dir, nil
}
