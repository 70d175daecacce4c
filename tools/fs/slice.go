package fs

import (
	"context"
	"errors"
	"fmt"

	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/tools"
)

// Slice returns the tool slice.
//
// Bytes count the text as UTF-8 without byte order mark; they differ from the stored bytes only for files in another
// encoding. A binary source is shown as a hex dump of its stored bytes.
func Slice() tools.Tool {
	return tools.New(tools.Tool{
		Name:        "slice",
		Opens:       tools.OpensSource,
		Title:       "Show a part",
		Description: "Show a part of a file or observation: one range of lines, chars, bytes or records (both ends included), or one JSON value.",
		Rules: []string{
			"Give exactly one of lines, chars, bytes, records and at; only records and at may be combined.",
			"Both ends of a range are included. Lines count from 1; chars, bytes and records count from 0.",
		},
		Effect: tools.ReadOnly,
		Paged:  true,
	}, slice)
}

func slice(ctx context.Context, a sliceArgs, in tools.Input, out tools.Output) error {
	unit, given, r, err := a.parse()
	if err != nil {
		return err
	}
	src, err := in.Sources.Open(ctx, a.Source)
	if err != nil {
		return err
	}
	if unit == "at" {
		if src, err = src.Stored(); err != nil {
			return err
		}
	}
	if unit == "at" || unit == "records" {
		ctx, stop := context.WithCancel(ctx)
		defer stop()
		if src, err = src.Values(ctx); err != nil {
			return errors.Join(err, src.Close())
		}
	}
	defer tools.CloseSource(src, out)
	if src.Encoding == content.NoText && unit != "bytes" {
		if unit == "at" {
			unit = "JSON values"
		}
		return fmt.Errorf("%s is binary, %d bytes, and has no %s: give bytes, as in bytes=\"0-255\"", src.Name, src.Size, unit)
	}
	s := slicer{ctx: ctx, src: src, text: newSourceText(ctx, src, out), out: out, page: out.Page(), fit: in.BytesThatFit}
	if s.fit == nil {
		s.fit = func(text []byte) int { return len(text) }
	}
	switch unit {
	case "lines":
		return s.showLines(r)
	case "chars":
		return s.showChars(r)
	case "bytes":
		if !src.Plain() {
			out.Note(fmt.Sprintf("bytes count the text as UTF-8, without a byte order mark; the stored file has %d bytes",
				src.Size))
		}
		return s.showBytes(r)
	case "records":
		return s.showRecords(r)
	}
	return s.showValue(given, r, a.Records != "")
}
