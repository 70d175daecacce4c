package server

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcp-funnel/mcp-funnel/funnel"
	"github.com/mcp-funnel/mcp-funnel/internal/content"
	"github.com/mcp-funnel/mcp-funnel/observations"
)

const (
	observationTemplate = observations.URIPrefix + "{id}"
	receiptTemplate     = observationTemplate + "/receipt"
)

// maxResource is how much of an observation one read carries, in bytes. JSON may double it on the
// wire, and a common client refuses messages over 1 MB.
const maxResource = 512 << 10

// resourcesPage is how many resources one page lists.
const resourcesPage = 100

// templates are the server's own.
func (s *Server) templates() []Template {
	return []Template{
		{mcp.NewResourceTemplate(observationTemplate, "observation",
			mcp.WithTemplateDescription("The whole output of one call, as it was kept; over 512 KiB its receipt instead")), s.readObservation},
		{mcp.NewResourceTemplate(receiptTemplate, "receipt",
			mcp.WithTemplateDescription("Totals, shape, head and tail of an observation"),
			mcp.WithTemplateMIMEType("text/plain")), s.readObservation},
	}
}

func (s *Server) listTemplates(_ context.Context, k *call) (any, error) {
	if fault := noCursor(k.frame); fault != nil {
		return nil, fault
	}
	list := &mcp.ListResourceTemplatesResult{ResourceTemplates: make([]mcp.ResourceTemplate, len(s.offered.Templates))}
	for i, t := range s.offered.Templates {
		list.ResourceTemplates[i] = t.ResourceTemplate
	}
	return list, nil
}

// resource is that of a fixed URI; nil where there is none.
func (s *Server) resource(uri string) *Resource {
	at := slices.IndexFunc(s.offered.Resources, func(r Resource) bool { return r.URI == uri })
	if at < 0 {
		return nil
	}
	return &s.offered.Resources[at]
}

func (s *Server) readResource(ctx context.Context, k *call) (any, error) {
	uri, fault := k.frame.needed("uri")
	if fault != nil {
		return nil, fault
	}
	var read func(context.Context, string) ([]mcp.ResourceContents, error)
	if r := s.resource(uri); r != nil {
		read = r.Read
	} else if at := slices.IndexFunc(s.offered.Templates, func(t Template) bool { return t.URITemplate.Regexp().MatchString(uri) }); at >= 0 {
		read = s.offered.Templates[at].Read
	} else {
		return nil, notFound(k.frame.modern(), "unknown resource %s; resources are %s and %s", quoted(uri), observationTemplate, receiptTemplate)
	}
	contents, err := read(ctx, uri)
	if err != nil {
		return nil, err
	}
	return &mcp.ReadResourceResult{Contents: contents}, nil
}

// observations lists what this owner may see, newest first.
func (s *Server) observations(owner string) ([]observations.Observation, error) {
	if s.store == nil {
		return nil, nil
	}
	list, err := s.store.List(owner, false)
	if err != nil {
		return nil, faultf(mcp.INTERNAL_ERROR, "observations cannot be listed: %s", echo(err.Error()))
	}
	return list, nil
}

// listResources lists a page of the observations. They come newest first from a store that changes between
// two pages. What else there is stands at the head of the first page.
func (s *Server) listResources(_ context.Context, k *call) (any, error) {
	text, fault := k.frame.str("cursor")
	if fault != nil {
		return nil, fault
	}
	cursor := mcp.Cursor(text)
	kept, err := s.observations(k.conn.who.Owner)
	if err == nil {
		kept, err = after(kept, cursor)
	}
	if err != nil {
		return nil, err
	}
	list := &mcp.ListResourcesResult{Resources: []mcp.Resource{}}
	if len(kept) > resourcesPage {
		kept = kept[:resourcesPage]
		list.NextCursor = cursorOf(kept[resourcesPage-1])
	}
	if cursor == "" {
		for _, r := range s.offered.Resources {
			list.Resources = append(list.Resources, r.Resource)
		}
	}
	for _, o := range kept {
		list.Resources = append(list.Resources, s.resourceOf(o))
	}
	return list, nil
}

func (s *Server) resourceOf(o observations.Observation) mcp.Resource {
	size := o.Bytes
	r := mcp.NewResource(observations.URIPrefix+string(o.ID), o.File, mcp.WithMIMEType(mimeOf(o)))
	r.Size = &size
	r.Title = o.Tool
	if o.Name != "" {
		r.Title += ": " + s.visible(o.Name, false)
	}
	r.Description = totals(o.Seen)
	if len(o.Args) > 0 {
		args, _ := s.mask.String(string(o.Args))
		r.Description += "; " + o.Tool + " " + echo(args)
	}
	r.Annotations = &mcp.Annotations{LastModified: o.Created.UTC().Format(time.RFC3339)}
	return r
}

// totals are how much an observation holds, and of what kind.
func totals(s observations.Seen) string {
	of := func(n int64, one string) string {
		if n == 1 {
			return "1 " + one
		}
		return strconv.FormatInt(n, 10) + " " + one + "s"
	}
	return of(s.Lines, "line") + ", " + of(s.Chars, "char") + ", " + s.Kind
}

// A cursor names the last observation of a page by its time and ID, so that the next page goes on
// below it whatever was made or removed meanwhile.
func cursorOf(o observations.Observation) mcp.Cursor {
	text := strconv.FormatInt(o.Created.UnixNano(), 10) + " " + string(o.ID)
	return mcp.Cursor(base64.StdEncoding.EncodeToString([]byte(text)))
}

func after(list []observations.Observation, cursor mcp.Cursor) ([]observations.Observation, error) {
	if cursor == "" {
		return list, nil
	}
	text, err := base64.StdEncoding.DecodeString(string(cursor))
	stamp, id, found := strings.Cut(string(text), " ")
	nanos, numberErr := strconv.ParseInt(stamp, 10, 64)
	if err != nil || !found || numberErr != nil {
		return nil, unknownCursor(string(mcp.MethodResourcesList))
	}
	last := time.Unix(0, nanos)
	// The store lists newest first; among equals of one instant the one named is looked for.
	if at := slices.IndexFunc(list, func(o observations.Observation) bool { return string(o.ID) == id }); at >= 0 {
		return list[at+1:], nil
	}
	at := slices.IndexFunc(list, func(o observations.Observation) bool { return o.Created.Before(last) })
	if at < 0 {
		return nil, nil
	}
	return list[at:], nil
}

// readObservation answers both templates.
func (s *Server) readObservation(ctx context.Context, uri string) ([]mcp.ResourceContents, error) {
	k := callOf(ctx)
	name, receipt := strings.CutSuffix(uri, "/receipt")
	r, err := s.open(k, name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.Close() }()
	o := r.Observation
	text := func(t string) []mcp.ResourceContents {
		return []mcp.ResourceContents{mcp.TextResourceContents{
			URI: uri, MIMEType: "text/plain", Text: s.visible(t, false),
		}}
	}
	switch {
	case receipt && o.Seen.Receipt == "":
		return text(fmt.Sprintf("obs:%s was shown whole: %s", o.ID, totals(o.Seen))), nil
	case receipt:
		return text(o.Seen.Receipt), nil
	case r.Size() > maxResource:
		return text(fmt.Sprintf("not shown: %d bytes, one read carries %d; next: slice {\"source\":\"obs:%s\",\"lines\":\"1-100\"}\n%s",
			r.Size(), maxResource, o.ID, o.Seen.Receipt)), nil
	}
	return s.whole(uri, r)
}

func (s *Server) open(k *call, name string) (*observations.Reader, error) {
	id, err := observations.ParseID(name)
	if err != nil {
		return nil, notFound(k.frame.modern(), "%s is not the URI of an observation; it is observation:// and the 12 characters after obs:",
			quoted(name))
	}
	if s.store == nil {
		return nil, notFound(k.frame.modern(), "no observation %s%s: nothing is kept by this server", observations.Prefix, id)
	}
	r, err := s.store.Open(k.conn.who.Owner, id)
	if err != nil {
		return nil, s.unreadable(k.frame.modern(), id, err)
	}
	return r, nil
}

// unreadable words why the store does not give an observation.
func (s *Server) unreadable(modern bool, id observations.ID, err error) *Fault {
	var expired *observations.ExpiredError
	switch {
	case errors.As(err, &expired):
		o := expired.Observation
		args, _ := s.mask.String(string(o.Args))
		return notFound(modern, "%s%s has expired; it came from %s %s: repeat that call",
			observations.Prefix, id, o.Tool, echo(args))
	case errors.Is(err, observations.ErrNotFound):
		return notFound(modern, "no observation %s%s; resources/list names those that are kept", observations.Prefix, id)
	}
	return faultf(mcp.INTERNAL_ERROR, "%s%s cannot be read: %s", observations.Prefix, id, echo(err.Error()))
}

// whole is all of an observation: text decoded to UTF-8, masked, made visible and fenced as every text that
// may reach a model; binary content as it is.
func (s *Server) whole(uri string, r *observations.Reader) ([]mcp.ResourceContents, error) {
	o := r.Observation
	raw := make([]byte, r.Size())
	if _, err := io.ReadFull(io.NewSectionReader(r, 0, r.Size()), raw); err != nil {
		return nil, faultf(mcp.INTERNAL_ERROR, "%s%s cannot be read: %s", observations.Prefix, o.ID, echo(err.Error()))
	}
	if content.Kind(o.Seen.Kind) == content.Binary {
		return []mcp.ResourceContents{mcp.BlobResourceContents{
			URI: uri, MIMEType: content.Media(raw[:min(len(raw), content.SniffSize)], o.File), Blob: base64.StdEncoding.EncodeToString(raw),
		}}, nil
	}
	decoded, _, err := content.Decode(bytes.NewReader(raw))
	if err != nil {
		return nil, faultf(mcp.INTERNAL_ERROR, "%s%s cannot be decoded: %s", observations.Prefix, o.ID, echo(err.Error()))
	}
	// Decoding to UTF-8 at most triples a text.
	text, err := io.ReadAll(io.LimitReader(decoded, 3*maxResource))
	if err != nil {
		return nil, faultf(mcp.INTERNAL_ERROR, "%s%s cannot be decoded: %s", observations.Prefix, o.ID, echo(err.Error()))
	}
	isJSON := content.Kind(o.Seen.Kind) == content.JSON || content.Kind(o.Seen.Kind) == content.NDJSON
	return []mcp.ResourceContents{mcp.TextResourceContents{
		URI: uri, MIMEType: mimeOf(o), Text: funnel.Fence(s.visible(string(text), isJSON)),
	}}, nil
}

// mimeOf is the type an observation is listed under, by its kind.
func mimeOf(o observations.Observation) string {
	switch content.Kind(o.Seen.Kind) {
	case content.JSON:
		return "application/json"
	case content.NDJSON:
		return "application/x-ndjson"
	case content.Table:
		if o.Seen.Ext == "tsv" {
			return "text/tab-separated-values"
		}
		return "text/csv"
	case content.Markdown:
		return "text/markdown"
	case content.Diff:
		return "text/x-diff"
	case content.Binary:
		return "application/octet-stream"
	}
	return "text/plain"
}
