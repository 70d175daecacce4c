package server

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcp-funnel/mcp-funnel/funnel"
	"github.com/mcp-funnel/mcp-funnel/kinds"
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/session/trace"
	"github.com/mcp-funnel/mcp-funnel/system/jsonrpc"
	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/tools"
)

// Parts of an observation that the end of its URI names.
const (
	partReceipt = "/receipt"
	partWhole   = "/whole"
	partLines   = "/lines/"
	partRecords = "/records/"
)

// maxWhole is the maximum size of an observation that /whole returns, in bytes: clients hold a message several times.
const maxWhole = 16 << 20

// templates returns the templates of an observation and its parts.
func (s resourceArea) templates() []Template {
	list := make([]Template, 0, len(observationTemplates))
	for _, t := range observationTemplates {
		list = append(list, Template{
			mcp.NewResourceTemplate(
				observations.URIPrefix+"{id}"+t.end,
				t.name,
				mcp.WithTemplateDescription(t.description),
			),
			s.readObservation,
		})
	}
	return list
}

var observationTemplates = []struct{ end, name, description string }{
	{"", "observation", "The output of one call; over one page its receipt instead"},
	{partReceipt, "receipt", "Totals, shape, head and tail of an observation"},
	{partLines + "{range}", "lines", "Lines of an observation, counted from 1: 5, 5-9, 5- or -9"},
	{partRecords + "{range}", "records", "Records of an observation, counted from 0: 5, 5-9, 5- or -9"},
	{partWhole, "whole", "The whole output, for clients that do not pass it on to a model; at most 16 MiB"},
}

func templateNames() (names []string) {
	for _, t := range observationTemplates {
		names = append(names, observations.URIPrefix+"{id}"+t.end)
	}
	return names
}

// readObservation reads an observation or the part of it that the end of the URI names. What is read passes the funnel
// like the answer of a tool, so that it is counted, traced and no larger than one.
func (s resourceArea) readObservation(ctx context.Context, uri string) ([]mcp.ResourceContents, error) {
	rest := strings.TrimPrefix(uri, observations.URIPrefix)
	id, part, _ := strings.Cut(rest, "/")
	if part != "" {
		part = "/" + part
	}
	r, err := s.open(callOf(ctx), observations.URIPrefix+id)
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.Close() }()
	for _, by := range []string{partLines, partRecords} {
		if span, ok := strings.CutPrefix(part, by); ok {
			return s.readRange(ctx, uri, r.Observation, strings.Trim(by, "/"), span)
		}
	}
	o := r.Observation
	fits := s.options.Funnel.FitsPage(o.Stats.Tokens, max(o.Stats.Chars, int64(1))) && r.Size() <= maxWhole
	switch {
	case part == partReceipt:
		return s.aboutObservation(ctx, uri, o, receiptOf(o))
	case part == partWhole && r.Size() > maxWhole:
		return s.aboutObservation(ctx, uri, o, fmt.Sprintf(
			"not shown: %d bytes, one read returns at most %d; read ranges: %s", r.Size(), maxWhole, ranges(o)))
	case part != partWhole && (!fits || r.Size() > maxPageBytes):
		return s.aboutObservation(ctx, uri, o, receiptOf(o)+"\nparts: "+ranges(o))
	}
	raw := make([]byte, r.Size())
	if _, err := io.ReadFull(io.NewSectionReader(r, 0, r.Size()), raw); err != nil {
		return nil, jsonrpc.Faultf(
			mcp.INTERNAL_ERROR, "%s%s cannot be read: %s", observations.Prefix, o.ID, jsonrpc.Echo(err.Error()))
	}
	if content.Kind(o.Stats.Kind) == content.Binary {
		return []mcp.ResourceContents{mcp.BlobResourceContents{
			URI: uri, MIMEType: kinds.Media(raw[:min(len(raw), content.SniffSize)], o.File),
			Blob: base64.StdEncoding.EncodeToString(raw),
		}}, nil
	}
	return s.readText(ctx, uri, o, string(raw), part == partWhole)
}

// maxPageBytes is the size above which nothing is shown as a page; a page has 40,000 chars.
const maxPageBytes = 160_000

// receiptOf returns the receipt of an observation, or its totals if it was shown whole.
func receiptOf(o observations.Observation) string {
	if o.Stats.Receipt == "" {
		return fmt.Sprintf("obs:%s was shown whole: %s", o.ID, totals(o.Stats))
	}
	return o.Stats.Receipt
}

// ranges returns the URIs of parts of an observation.
func ranges(o observations.Observation) string {
	uri := observations.URIPrefix + string(o.ID)
	return uri + partLines + "1-50, " + uri + partRecords + "0-9, " + uri + partWhole
}

// readRange reads lines or records of an observation, as the tool slice does.
func (s resourceArea) readRange(
	ctx context.Context, uri string, o observations.Observation, by, span string,
) ([]mcp.ResourceContents, error) {
	answer, err := s.readWith(ctx, uri, "slice", "ranges", map[string]string{"source": nameOf(o), by: span})
	if err != nil {
		return nil, err
	}
	if answer.Failed {
		return nil, jsonrpc.BadParams("%s: %s", jsonrpc.Quoted(uri), jsonrpc.Echo(textOf(answer)))
	}
	return s.resourceText(uri, "text/plain", answer), nil
}

// aboutObservation shows a text of this server's own.
func (s resourceArea) aboutObservation(ctx context.Context, uri string, o observations.Observation, about string) (
	[]mcp.ResourceContents, error,
) {
	r := funnel.Request{
		Tool: tools.Tool{Name: viaResource}, Args: sourceArgument(o), Via: trace.ViaResource, About: nameOf(o),
	}
	if fault := callOf(ctx).addMeta(&r); fault != nil {
		return nil, fault
	}
	return s.resourceText(uri, "text/plain", s.options.Funnel.Show(r, s.sanitize(about, false))), nil
}

// readText shows the text of an observation. An uncut text is shown whole or not at all.
func (s resourceArea) readText(
	ctx context.Context, uri string, o observations.Observation, shown string, uncut bool,
) ([]mcp.ResourceContents, error) {
	type named struct {
		Source string `json:"source"`
	}
	read := tools.New(tools.Tool{Name: viaResource, Title: "Resource", Description: "Reads an observation."},
		func(_ context.Context, _ named, _ tools.Input, out tools.Output) error {
			out.Source(nameOf(o))
			_, err := io.WriteString(out, shown)
			return err
		})
	read.Toolset = viaResource // what is read is shown as it is, not laid out
	answer, err := s.readThrough(ctx, funnel.Request{Tool: read, Args: sourceArgument(o), Uncut: uncut})
	if err != nil {
		return nil, err
	}
	mime := "text/plain"
	if answer.Receipts[0].Complete {
		mime = mimeOf(o)
	}
	return s.resourceText(uri, mime, answer), nil
}

const viaResource = "resource"

// nameOf returns the name of an observation, obs:ID.
func nameOf(o observations.Observation) string { return observations.Prefix + string(o.ID) }

// sourceArgument returns the arguments of a tool that reads an observation.
func sourceArgument(o observations.Observation) json.RawMessage {
	return fmt.Appendf(nil, `{"source":%q}`, nameOf(o)) // an ID has letters and digits only
}

// readWith runs one of the server's tools to read what a URI names; what names the kind of such sources.
func (s resourceArea) readWith(
	ctx context.Context, uri, tool, what string, args map[string]string,
) (funnel.Answer, error) {
	at := slices.IndexFunc(s.options.Tools, func(t tools.Tool) bool { return t.Name == tool })
	if at < 0 {
		return funnel.Answer{}, jsonrpc.BadParams("%s: this server has no tool that reads %s", jsonrpc.Quoted(uri), what)
	}
	raw, _ := json.Marshal(args) // cannot fail
	return s.readThrough(ctx, funnel.Request{Tool: s.options.Tools[at], Args: raw})
}

// readThrough passes a read through the funnel.
func (s resourceArea) readThrough(ctx context.Context, r funnel.Request) (funnel.Answer, error) {
	k := callOf(ctx)
	r.Sources, r.Keep, r.Via = s.options.Sources(k.conn.account), funnel.Never, trace.ViaResource
	if fault := k.addMeta(&r); fault != nil {
		return funnel.Answer{}, fault
	}
	return s.run(ctx, r)
}

// resourceText returns the texts of an answer as one content.
func (s resourceArea) resourceText(uri, mime string, a funnel.Answer) []mcp.ResourceContents {
	return []mcp.ResourceContents{mcp.TextResourceContents{URI: uri, MIMEType: mime, Text: textOf(a)}}
}

// textOf returns the texts of an answer.
func textOf(a funnel.Answer) string {
	texts := make([]string, len(a.Blocks))
	for i, block := range a.Blocks {
		texts[i] = block.Text
	}
	return strings.Join(texts, "\n")
}
