package tree

import (
	"bytes"
	"io"
	"path"
	"strings"
)

// rulesAbove reads the rules from above Start: the root's .git/info/exclude, and the ignore files of the directories
// above Start.
func (w *walker) rulesAbove(start string) *rules {
	var s *rules
	if f, _, err := w.root.OpenFile(".git/info/exclude"); err == nil {
		s = w.compileFrom(f, 0, nil)
		_ = f.Close()
	}
	if start == "." {
		return s
	}
	at, err := w.root.top()
	for dir, rest, more := ".", start, true; more; {
		if err == nil {
			base := 0
			if dir != "." {
				base = len(dir) + 1
			}
			s = w.readRules(at, base, s)
		}
		var name string
		name, rest, more = strings.Cut(rest, "/")
		dir = path.Join(dir, name)
		if !more {
			break
		}
		next := folder{}
		stepped := err == nil
		if stepped { // one step: by its whole path each directory would be found from the root
			next, err = at.openDir(name)
			at.close()
		}
		if !stepped || err != nil { // a link
			next, err = w.root.folderAt(dir)
		}
		at = next
	}
	if err == nil {
		at.close()
	}
	return s
}

// readRules reads the ignore file of a directory. Like git it ignores a link, and it ignores a file it cannot read.
func (w *walker) readRules(dir folder, base int, above *rules) *rules {
	at, err := dir.lstat(".gitignore")
	if err != nil || !at.Mode().IsRegular() || w.isDenied(at.id) {
		return above
	}
	f, err := dir.openFile(".gitignore", openFlags)
	if err != nil {
		return above
	}
	defer func() { _ = f.Close() }()
	if at, err := f.Stat(); err != nil || !at.Mode().IsRegular() {
		return above
	}
	return w.compileFrom(f, base, above)
}

func (w *walker) compileFrom(f io.Reader, base int, above *rules) *rules {
	room := MaxRules
	if above != nil {
		room = min(room, maxRulesInAll-above.held)
	}
	text, err := io.ReadAll(io.LimitReader(f, int64(room)+1))
	if err != nil {
		return above
	}
	if len(text) > room {
		w.report.CutRules++
		text = text[:bytes.LastIndexByte(text[:room], '\n')+1]
	}
	return compile(text, base, above)
}
