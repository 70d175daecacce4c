package fs

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/internal/content"
	"github.com/mcp-funnel/mcp-funnel/internal/tree"
	"github.com/mcp-funnel/mcp-funnel/tools"
)

// Limits of one read of several files. What is over them is told.
const (
	maxRead      = 1000
	maxReadBytes = 64 << 20
)

// splitGlob takes a path apart where its first name with glob characters begins.
func splitGlob(name string) (dir, pattern string) {
	at := 0
	for i := 0; i < len(name); i++ {
		if name[i] == '/' {
			at = i + 1
		} else if strings.IndexByte(`*?[{\`, name[i]) >= 0 {
			break
		}
	}
	dir, pattern = name[:at], name[at:]
	if dir != "/" {
		dir = strings.TrimSuffix(dir, "/")
	}
	return dir, pattern
}

// readGlob writes each file a glob takes under a line with its name. One alone is read like a file that was named.
func readGlob(ctx context.Context, name string, in tools.Input, out tools.Output) error {
	dir, pattern := splitGlob(name)
	glob, err := tree.CompileGlob(pattern)
	if err != nil {
		return err
	}
	o := tree.Options{Glob: glob}
	if dir != "" && !strings.Contains(pattern, "/") && pattern != "**" {
		o.Depth = 1 // "src/*.go" is what stands in src; "*.go" alone is at any depth
	}
	places, err := in.Sources.Places(ctx, dir)
	if err != nil {
		return err
	}
	names, report, more, err := filesOf(ctx, places, o, out)
	if err != nil {
		return err
	}
	tellWalk(report, out)
	switch {
	case len(names) == 0:
		f := finder{report: report}
		out.Count("files_found", 0)
		out.Note(strings.Replace(f.nothing(), ": all=true looks there too", ": name them to read them", 1))
		return nil
	case len(names) == 1:
		src, err := in.Sources.Open(ctx, names[0])
		if err != nil {
			return err
		}
		defer src.Done(out)
		return readOne(ctx, src, out)
	}
	if more {
		out.Note(fmt.Sprintf("only the first %d files are read; there are more", maxRead))
	}
	return readAll(ctx, names, report.Files, in, out)
}

// filesOf lists the files a glob takes, in path order.
func filesOf(ctx context.Context, places []tools.Place, o tree.Options, out tools.Output) (names []string, all tree.Report, more bool, err error) {
	o.Progress = func(r tree.Report) { out.Progress(r.Files, 0, fmt.Sprintf("%d files walked", r.Files)) }
	survey := tools.Survey{Left: len(places), Tell: out.Note}
	for _, p := range places {
		if !p.IsDir {
			continue
		}
		o.Start = p.Path
		report, err := p.Root.Walk(ctx, o, func(e tree.Entry) error {
			if e.Type != tree.File {
				return nil
			}
			if len(names) == maxRead {
				more = true
				return tree.SkipAll
			}
			names = append(names, p.Shown(e.Path))
			return nil
		})
		if err := survey.Looked(p, err); err != nil {
			return nil, all, false, err
		}
		all = sum(all, report)
	}
	return names, all, more, nil
}

// readAll goes on with the progress where the walk of so many files has left it.
func readAll(ctx context.Context, names []string, walked int64, in tools.Input, out tools.Output) error {
	room := int64(maxReadBytes)
	var read, failed int64
	var decoded tools.Decoded
	defer func() { decoded.TellAll(out) }()
	for i, name := range names {
		if room <= 0 {
			out.Note(fmt.Sprintf("%s not read: the others hold %d MiB already", plural(int64(len(names)-i), "file is", "files are"), maxReadBytes>>20))
			break
		}
		left := room
		ok, err := readUnder(ctx, name, &room, &decoded, in, out)
		if err != nil {
			return err
		}
		if ok {
			read++
		} else if room == left {
			failed++
		}
		out.Progress(walked+int64(i+1), walked+int64(len(names)), fmt.Sprintf("%d of %d files read", i+1, len(names)))
	}
	out.Count("files_found", float64(len(names)))
	out.Count("files_read", float64(read))
	if failed > 0 {
		out.Note(plural(failed, "file is", "files are") + " not shown as text; the lines with their names say why")
	}
	return nil
}

// readUnder writes one file of several under its name. The error is one that ends the call.
func readUnder(ctx context.Context, name string, room *int64, decoded *tools.Decoded, in tools.Input, out tools.Output) (ok bool, err error) {
	head := tools.VisibleName(name)
	src, err := in.Sources.Open(ctx, name)
	if err != nil {
		if e := ctx.Err(); e != nil {
			return false, e
		}
		_, err = fmt.Fprintf(out, "==> %s <== not read: %s\n", head, content.ClipBytes(err.Error(), 300))
		return false, err
	}
	defer src.Leave(out)
	if src.Binary() {
		media, _, err := mediaOf(src)
		if err != nil {
			_, err = fmt.Fprintf(out, "==> %s <== not read: %s\n", head, content.ClipBytes(err.Error(), 300))
			return false, err
		}
		_, err = fmt.Fprintf(out, "==> %s <== not text: %s, %d bytes; read it alone\n", head, media, src.Size)
		return false, err
	}
	text, err := src.Text()
	if err != nil {
		_, err = fmt.Fprintf(out, "==> %s <== not read: %s\n", head, content.ClipBytes(err.Error(), 300))
		return false, err
	}
	if _, err := fmt.Fprintf(out, "==> %s <==\n", head); err != nil {
		return false, err
	}
	decoded.Add(name, src.Encoding)
	last := lastByte{to: out}
	from := &io.LimitedReader{R: text, N: *room}
	marked := marking{to: &last, fresh: true}
	err = copyText(ctx, &marked, from, src.Size, silent{out})
	if e := marked.flush(); err == nil {
		err = e
	}
	cut := from.N == 0
	*room = from.N
	if err != nil {
		if e := ctx.Err(); e != nil {
			return false, e
		}
		_, err = fmt.Fprintf(out, "\n==> %s <== breaks off: %s\n", head, content.ClipBytes(err.Error(), 300))
		return false, err
	}
	if last.n > 0 && last.c != '\n' {
		if _, err := io.WriteString(out, "\n"); err != nil {
			return false, err
		}
	}
	if cut {
		out.Note(fmt.Sprintf("shown in part, as all files together may hold %d MiB: %q", maxReadBytes>>20, content.ClipBytes(head, 200)))
	}
	return true, nil
}

// silent tells no progress.
type silent struct{ tools.Output }

func (silent) Progress(int64, int64, string) {}

// heading is how the line above a file begins.
const heading = "==> "

// marking sets ">" before each line that could be taken for the one above a file, however many of them it begins with, so
// that each line that begins with the heading stands above a file.
type marking struct {
	to    io.Writer
	fresh bool   // a line begins
	held  []byte // a line's beginning that may become a heading
}

func (m *marking) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 {
		if !m.fresh {
			i := bytes.IndexByte(p, '\n') + 1
			if m.fresh = i > 0; !m.fresh {
				i = len(p)
			}
			if _, err := m.to.Write(p[:i]); err != nil {
				return 0, err
			}
			p = p[i:]
			continue
		}
		m.held = append(m.held, p[0])
		p = p[1:]
		after := bytes.TrimLeft(m.held, ">")
		if len(after) < len(heading) && strings.HasPrefix(heading, string(after)) && len(m.held) < 64 {
			continue
		}
		if string(after) == heading {
			m.held = append([]byte{'>'}, m.held...)
		}
		if err := m.flush(); err != nil {
			return 0, err
		}
	}
	return n, nil
}

// flush writes what was held.
func (m *marking) flush() error {
	if len(m.held) == 0 {
		return nil
	}
	m.fresh = m.held[len(m.held)-1] == '\n'
	_, err := m.to.Write(m.held)
	m.held = m.held[:0]
	return err
}

// lastByte knows what was written last.
type lastByte struct {
	to io.Writer
	n  int64
	c  byte
}

func (l *lastByte) Write(p []byte) (int, error) {
	n, err := l.to.Write(p)
	if n > 0 {
		l.n += int64(n)
		l.c = p[n-1]
	}
	return n, err
}
