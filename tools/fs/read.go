package fs

import (
	"context"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"path"
	"slices"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/kinds"
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/system/tree"
	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/text/packed"
	"github.com/mcp-funnel/mcp-funnel/tools"
	"github.com/mcp-funnel/mcp-funnel/tools/source"
)

// maxImage is the largest image that is returned, in bytes: 5 MB as base64, the limit of models.
const maxImage = 3_750_000

// readArgs are the arguments of read.
type readArgs struct {
	Path string `json:"path" jsonschema:"file, glob, or obs:ID" help:"File, glob such as src/*.go, or obs:ID."`
}

// Read returns the tool read.
func Read() tools.Tool {
	return tools.New(tools.Tool{
		Name:        "read",
		Opens:       tools.OpensSource,
		Title:       "Read files",
		Description: "Read a file as text or image, or all files of a glob.",
		Effect:      tools.ReadOnly,
	}, read)
}

// Check implements [tools.Checker].
func (a readArgs) Check() error {
	if a.Path == "" {
		return errors.New("path is empty: name a file, a glob or obs:ID")
	}
	return nil
}

func read(ctx context.Context, a readArgs, in tools.Input, out tools.Output) error {
	if err := a.Check(); err != nil {
		return err
	}
	src, err := in.Sources.Open(ctx, a.Path)
	switch {
	case err == nil:
		defer tools.CloseSource(src, out)
		if strings.HasSuffix(a.Path, "/") {
			return fmt.Errorf("%s is a file, not a directory; remove the trailing /", content.ClipBytes(a.Path, 200))
		}
		if hash := in.Sources.Hash(src); hash != "" {
			out.Note("hash " + hash)
		}
		return readSource(ctx, src, out)
	case tree.IsGlob(a.Path) && !isFinal(err):
		return readGlob(ctx, a.Path, in, out)
	case errors.Is(err, tree.ErrNotFile) && isDirectory(ctx, in.Sources, a.Path):
		return fmt.Errorf("%s is a directory; find with this path lists it, a glob reads files in it",
			content.ClipBytes(a.Path, 200))
	}
	return err
}

// isFinal reports whether an error would remain if the name were read as a glob.
func isFinal(err error) bool {
	return slices.ContainsFunc([]error{
		tree.ErrOutside, tree.ErrDenied, tree.ErrNotFile, iofs.ErrPermission, observations.ErrMalformed, context.Canceled,
		context.DeadlineExceeded,
	}, func(final error) bool { return errors.Is(err, final) })
}

func isDirectory(ctx context.Context, s source.Set, name string) bool {
	locations, err := s.Locate(ctx, name)
	return err == nil && len(locations) > 0 && locations[0].IsDir
}

// readSource writes the text of a source, or an image; for other binaries one line with type and size.
func readSource(ctx context.Context, src *source.Source, out tools.Output) error {
	if src.Binary() {
		return readBinary(ctx, src, out)
	}
	out.Source(src.Name)
	if src.HasStderr() { // kind and totals are those of standard output alone
		stream := out.Streams("")
		return src.Streams(func(toStderr bool, r io.Reader) error {
			return copyText(ctx, stream(toStderr), r, src.Size, out.Progress)
		})
	}
	text, err := src.Text()
	if err != nil {
		return err
	}
	if src.Extent() == 0 {
		out.Note("the file is empty")
	}
	return copyText(ctx, out, text, src.Extent(), out.Progress)
}

// readBinary writes an image, or one line with type and size.
func readBinary(ctx context.Context, src *source.Source, out tools.Output) error {
	media, image, err := detectMedia(src)
	switch {
	case err != nil:
		return err
	case image && !src.Packed() && src.Size <= maxImage:
		if fault := imageFault(src, src.Size); fault != "" {
			_, err = fmt.Fprintf(out, "%s: %s, %d bytes: %s\n", content.VisibleLine(src.Name), media, src.Size, fault)
			return err
		}
		part := out.Part(media, path.Base(src.Name))
		return copyText(ctx, part, io.NewSectionReader(src, 0, src.Size), src.Size, out.Progress)
	case image && !src.Packed():
		_, err = fmt.Fprintf(out, "%s: %s, %d bytes: too large to show; an image may have at most %d bytes\n",
			content.VisibleLine(src.Name), media, src.Size, maxImage)
	case src.IsArchive():
		_, err = fmt.Fprintf(out, "%s: archive, %s, %d bytes; find with this path lists its members\n",
			content.VisibleLine(src.Name), media, src.Size)
	default:
		_, err = fmt.Fprintf(out, "%s: binary, %s, %d bytes; slice with bytes shows parts of it%s\n",
			content.VisibleLine(src.Name), media, src.Size, src.Instead())
	}
	return err
}

// detectMedia returns the MIME type by the first 4 KiB, and whether clients show it as an image.
func detectMedia(src *source.Source) (media string, image bool, err error) {
	prefix, err := src.Head(4 << 10)
	if err != nil {
		return "", false, err
	}
	name := path.Base(src.Name)
	if src.Packed() {
		name = packed.TrimExtension(name)
	}
	media = kinds.Media(prefix, name)
	return media, slices.Contains([]string{"image/png", "image/jpeg", "image/gif", "image/webp"}, media), nil
}

// copyText copies in blocks of 64 KiB, checks the context before each and reports progress after it.
func copyText(
	ctx context.Context, to io.Writer, from io.Reader, total int64, progress func(done, total int64, message string),
) error {
	// a small file is read at once; 512 spare bytes let Read see its end
	buf := make([]byte, min(64<<10, max(total, 0)+512))
	for done := int64(0); ; {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := from.Read(buf)
		if n > 0 {
			if _, err := to.Write(buf[:n]); err != nil {
				return err
			}
			done += int64(n)
			progress(done, total, "bytes read")
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
