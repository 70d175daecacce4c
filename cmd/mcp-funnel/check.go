package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/cmd/internal/cli"

	"github.com/mcp-funnel/mcp-funnel/continuation"
	"github.com/mcp-funnel/mcp-funnel/system/osfile"
	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/text/jsontrunc"
)

type check struct {
	File string `arg:"" optional:"" help:"File to check; left out or -: standard input."`
	JSON bool   `env:"-" name:"json" help:"Print what is known as JSON."`
}

func (c *check) Help() string {
	return `A document is whole if it parses; its last character says nothing.
The exit code is 0 for a whole document and 1 for any other.

States: whole; cut (more text can make it whole); broken (no text can);
trailing (text follows the document); empty; "too deep"; ambiguous (a number
at the end of the text: more digits may follow).

Examples:

  mcp-funnel check report.json
  mcp-funnel check --json - < answer.txt`
}

// checkReport is what check prints as JSON.
type checkReport struct {
	State      jsontrunc.State `json:"state"`
	Offset     int64           `json:"offset"`            // byte at which the text ends or breaks, from 0
	Line       int64           `json:"line"`              // of that byte, from 1
	Pointer    string          `json:"pointer"`           // JSON Pointer of the innermost open value, at most 4 KiB
	Inside     string          `json:"inside,omitempty"`  // "string", "after a comma in an array", …
	Last       string          `json:"last,omitempty"`    // the last complete element, at most 4 KiB
	Piece      string          `json:"piece,omitempty"`   // what follows it, at most 4 KiB
	Values     int64           `json:"values"`            // complete top-level values
	Duplicates int64           `json:"duplicates"`        // names that an object has again
	Reason     string          `json:"reason,omitempty"`  // what is wrong
	Outside    string          `json:"outside,omitempty"` // text around a fenced block, which was not checked
}

// maxPointer is the longest JSON Pointer in bytes that is printed.
const maxPointer = 4 << 10

// maxInMemory is the size in bytes up to which a document is read into memory, where a fenced block is found.
const maxInMemory = 64 << 20

func (c *check) Run(ctx context.Context, _ *cli.Settings, w *cli.Streams) error {
	name := cmp.Or(c.File, "-")
	in, closeInput, err := openInput(name, w)
	if err != nil {
		return err
	}
	defer closeInput()
	report, err := checkText(content.WithContext(ctx, in))
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if c.JSON {
		if err := cli.WriteJSON(w.Out, report, ""); err != nil {
			return err
		}
	} else if _, err := fmt.Fprintln(w.Out, content.Visible(name+": "+report.line(), false)); err != nil {
		return err
	}
	if report.State != jsontrunc.Whole {
		return cli.ErrFailed
	}
	return nil
}

// openInput opens a regular file, or standard input for "-". Opening a FIFO would wait for its writer, and a device may
// never end.
func openInput(name string, w *cli.Streams) (io.Reader, func(), error) {
	if name == "-" {
		if cli.IsTerminal(w.In) {
			return nil, nil, cli.Usagef("standard input is a terminal: name a file, or write COMMAND | mcp-funnel …")
		}
		return w.In, func() {}, nil
	}
	f, err := os.OpenFile(name, os.O_RDONLY|osfile.Nonblock, 0) // opening a FIFO would wait for a writer
	if err != nil {
		return nil, nil, err
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		_ = f.Close()
		return nil, nil, fmt.Errorf("%s is not a regular file: give its text on standard input", name)
	}
	return f, func() { _ = f.Close() }, nil
}

// checkText checks a text of any size. If it does not begin like JSON and has up to 64 MiB, a fenced block in it is
// checked.
func checkText(r io.Reader) (checkReport, error) {
	in := bufio.NewReaderSize(r, content.SniffSize)
	head, err := in.Peek(content.SniffSize)
	if err != nil && !errors.Is(err, io.EOF) {
		return checkReport{}, err
	}
	r, outside := io.Reader(in), ""
	if t := bytes.TrimLeft(head, "\xef\xbb\xbf \t\r\n"); len(t) > 0 && t[0] != '{' && t[0] != '[' {
		all, err := io.ReadAll(io.LimitReader(in, maxInMemory))
		if err != nil {
			return checkReport{}, err
		}
		if len(all) < maxInMemory {
			if all, outside, err = continuation.Normalize(all); err != nil {
				return checkReport{State: jsontrunc.Broken, Line: 1, Reason: err.Error()}, nil //nolint:nilerr // that is the report
			}
		}
		r = io.MultiReader(bytes.NewReader(all), in)
	}
	// Only what a byte order mark or zeros show is decoded: one-byte encodings look alike.
	in = bufio.NewReaderSize(r, content.SniffSize)
	head, err = in.Peek(content.SniffSize)
	if err != nil && !errors.Is(err, io.EOF) {
		return checkReport{}, err
	}
	text := io.Reader(in)
	switch e := content.Detect(head, err != nil); e {
	case content.UTF16LE, content.UTF16BE, content.UTF32LE, content.UTF32BE:
		text = e.Reader(in)
	}
	rep, err := jsontrunc.Check(text)
	if err != nil {
		return checkReport{}, err
	}
	out := checkReport{
		State: rep.State, Offset: rep.Offset, Line: rep.Line, Pointer: content.ClipBytes(rep.Pointer, maxPointer),
		Inside: rep.Inside, Last: rep.Last, Piece: strings.TrimLeft(rep.Piece, ", \t\r\n"), Values: rep.Values,
		Duplicates: rep.Duplicates, Reason: rep.Reason, Outside: content.ClipBytes(outside, 400),
	}
	if out.State == jsontrunc.Whole {
		out.Inside, out.Piece = "", ""
	}
	return out, nil
}

// line returns the report as one line of text.
func (r checkReport) line() string {
	place := fmt.Sprintf("line %d, byte %d", r.Line, r.Offset)
	var s string
	switch r.State {
	case jsontrunc.Whole:
		s = "whole, " + content.Plural(r.Values, "value", "values")
	case jsontrunc.Cut:
		s = "cut off at " + place + ", inside " + article(r.Inside)
		if r.Pointer != "" {
			s += " at " + content.ClipBytes(r.Pointer, 200)
		}
		if r.Last != "" {
			s += "; last complete element: " + content.ClipBytes(r.Last, 120)
		}
	case jsontrunc.Empty:
		s = "empty"
	default:
		s = string(r.State) + " at " + place + ": " + r.Reason
	}
	if r.Duplicates > 0 {
		s += "; " + content.Plural(r.Duplicates, "name occurs", "names occur") + " twice in an object"
	}
	if r.Outside != "" {
		s += "; text around the fenced block was not checked"
	}
	return s
}

// article puts an article before the name of a kind of value.
func article(inside string) string {
	switch inside {
	case "string", "key", "number", "literal", "object", "array":
		return content.Article(inside)
	}
	return inside
}
