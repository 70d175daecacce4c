package fs

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/system/tree"
	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/tools"
	"github.com/mcp-funnel/mcp-funnel/tools/source"
)

// Limits of one read of several files. Notes report what exceeds them.
const (
	maxRead      = 1000
	maxReadBytes = 64 << 20
)

// readGlob writes each file that matches a glob below a line with its name. A single match is read like a named file.
func readGlob(ctx context.Context, name string, in tools.Input, out tools.Output) error {
	m, err := in.Sources.Match(ctx, name, maxRead, func(r tree.Report) {
		out.Progress(r.Files, 0, fmt.Sprintf("%d files walked", r.Files))
	}, out.Note)
	if err != nil {
		return err
	}
	names := m.Names
	reportWalk(m.Report, out)
	switch {
	case len(names) == 0:
		f := finder{report: m.Report}
		out.Count("files_found", 0)
		out.Note(strings.Replace(f.explainNoMatch(), ": all=true includes them", ": name them to read them", 1))
		return nil
	case len(names) == 1:
		src, err := in.Sources.Open(ctx, names[0])
		if err != nil {
			return err
		}
		defer tools.CloseSource(src, out)
		return readSource(ctx, src, out)
	}
	if m.More {
		out.Note(fmt.Sprintf("only the first %d files are read; there are more", maxRead))
	}
	return readFiles(ctx, names, m.Report.Files, in, out)
}

// readFiles writes the named files. Its progress continues from the number of files walked.
func readFiles(ctx context.Context, names []string, walked int64, in tools.Input, out tools.Output) error {
	room := int64(maxReadBytes)
	var read, failed int64
	var decoded source.Decoded
	defer func() {
		if note := decoded.NoteAll(); note != "" {
			out.Note(note)
		}
	}()
	for i, name := range names {
		if room <= 0 {
			out.Note(fmt.Sprintf("%s not read: the files before already have %d MiB, the limit for one call",
				content.Plural(int64(len(names)-i), "file is", "files are"), maxReadBytes>>20))
			break
		}
		left := room
		ok, err := readWithHeading(ctx, name, &room, &decoded, in, out)
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
		out.Note(content.Plural(failed, "file is", "files are") +
			" not shown as text; the line with the name of each says why")
	}
	return nil
}

// readWithHeading writes one of several files below its heading. ok is false if its text was not written; an error
// ends the call.
func readWithHeading(
	ctx context.Context, name string, room *int64, decoded *source.Decoded, in tools.Input, out tools.Output,
) (ok bool, err error) {
	head := content.VisibleLine(name)
	notRead := func(err error) (bool, error) {
		_, err = fmt.Fprintf(out, "==> %s <== not read: %s\n", head, content.ClipBytes(err.Error(), 300))
		return false, err
	}
	src, err := in.Sources.Open(ctx, name)
	if err != nil {
		if e := ctx.Err(); e != nil {
			return false, e
		}
		return notRead(err)
	}
	defer func() {
		if caveat := src.Caveat(); caveat != "" {
			out.Note(caveat)
		}
		_ = src.Close()
	}()
	if src.Binary() {
		media, _, err := detectMedia(src)
		if err != nil {
			return notRead(err)
		}
		_, err = fmt.Fprintf(out, "==> %s <== not text: %s, %d bytes; read it alone\n", head, media, src.Size)
		return false, err
	}
	text, err := src.Text()
	if err != nil {
		return notRead(err)
	}
	if _, err := fmt.Fprintf(out, "==> %s <==\n", head); err != nil {
		return false, err
	}
	from := &io.LimitedReader{R: text, N: *room}
	open, err := copyBelowHeading(ctx, out, from, src.Size)
	decoded.Add(name, src.Coding())
	cut := from.N == 0
	*room = from.N
	if err != nil {
		if e := ctx.Err(); e != nil {
			return false, e
		}
		_, err = fmt.Fprintf(out, "\n==> %s <== truncated: %s\n", head, content.ClipBytes(err.Error(), 300))
		return false, err
	}
	if open {
		if _, err := io.WriteString(out, "\n"); err != nil {
			return false, err
		}
	}
	if cut {
		out.Note(fmt.Sprintf("shown in part, because all files together may have at most %d MiB: %q", maxReadBytes>>20,
			content.ClipBytes(head, 200)))
	}
	return true, nil
}

// heading is the prefix of the line above each file.
const heading = "==> "

// copyBelowHeading copies a text, with ">" before each line that looks like a heading, with any number of ">" in front,
// so that only headings of this program begin with "==> ". open reports whether the last line has no line end.
func copyBelowHeading(ctx context.Context, to io.Writer, from io.Reader, size int64) (open bool, err error) {
	buffer := int(min(window, size+512)) // of a small file, all of it
	in, out := bufio.NewReaderSize(content.WithContext(ctx, from), buffer), bufio.NewWriterSize(to, buffer)
	for err == nil || errors.Is(err, bufio.ErrBufferFull) { // a line longer than the buffer goes on
		var line []byte
		line, err = in.ReadSlice('\n')
		if !open && bytes.HasPrefix(bytes.TrimLeft(line, ">"), []byte(heading)) {
			_ = out.WriteByte('>') // Flush returns the error
		}
		if _, failed := out.Write(line); failed != nil {
			return open, failed
		}
		if n := len(line); n > 0 {
			open = line[n-1] != '\n'
		}
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return open, errors.Join(err, out.Flush())
}
