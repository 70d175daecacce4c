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

	"github.com/mcp-funnel/mcp-funnel/funnel/text"
	"github.com/mcp-funnel/mcp-funnel/internal/content"
	"github.com/mcp-funnel/mcp-funnel/internal/kind"
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/server/jsonrpc"
)

const (
	observationTemplate = observations.URIPrefix + "{id}"
	receiptTemplate     = observationTemplate + "/receipt"
)

// maxResource is the maximum size of an observation that one read returns, in bytes. JSON may double it on the
// wire, and a common client refuses messages over 1 MB.
const maxResource = 512 << 10

// resourcesPage is the number of observations on one page of resources/list.
const resourcesPage = 100

// templates returns the built-in templates: an observation and its receipt.
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
	list := &mcp.ListResourceTemplatesResult{ResourceTemplates: make([]mcp.ResourceTemplate, len(s.offers.Templates))}
	for i, t := range s.offers.Templates {
		list.ResourceTemplates[i] = t.ResourceTemplate
	}
	return list, nil
}

// resource returns the resource with this fixed URI, or nil.
func (s *Server) resource(uri string) *Resource {
	at := slices.IndexFunc(s.offers.Resources, func(r Resource) bool { return r.URI == uri })
	if at < 0 {
		return nil
	}
	return &s.offers.Resources[at]
}

func (s *Server) readResource(ctx context.Context, k *call) (any, error) {
	uri, fault := k.frame.RequiredString("uri")
	if fault != nil {
		return nil, fault
	}
	var read func(context.Context, string) ([]mcp.ResourceContents, error)
	if r := s.resource(uri); r != nil {
		read = r.Read
	} else if at := slices.IndexFunc(s.offers.Templates, func(t Template) bool { return t.URITemplate.Regexp().MatchString(uri) }); at >= 0 {
		read = s.offers.Templates[at].Read
	} else {
		return nil, notFound(
			k.frame.Stateless(), "unknown resource %s; resources are %s and %s", jsonrpc.Quoted(uri), observationTemplate,
			receiptTemplate,
		)
	}
	contents, err := read(ctx, uri)
	if err != nil {
		return nil, err
	}
	return &mcp.ReadResourceResult{Contents: contents}, nil
}

// observations lists the owner's observations, newest first.
func (s *Server) observations(owner string) ([]observations.Observation, error) {
	if s.store == nil {
		return nil, nil
	}
	list, err := s.store.List(owner, false)
	if err != nil {
		return nil, jsonrpc.Faultf(mcp.INTERNAL_ERROR, "cannot list observations: %s", jsonrpc.Echo(err.Error()))
	}
	return list, nil
}

// listResources lists one page of observations, newest first. The first page starts with the resources of
// [Options].Extra.
func (s *Server) listResources(_ context.Context, k *call) (any, error) {
	text, fault := k.frame.StringParam("cursor")
	if fault != nil {
		return nil, fault
	}
	cursor := mcp.Cursor(text)
	kept, err := s.observations(k.conn.account.Owner)
	if err == nil {
		kept, err = afterCursor(kept, cursor)
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
		for _, r := range s.offers.Resources {
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
		r.Title += ": " + s.sanitize(o.Name, false)
	}
	r.Description = totals(o.Stats)
	if len(o.Args) > 0 {
		args, _ := s.mask.String(string(o.Args))
		r.Description += "; " + o.Tool + " " + jsonrpc.Echo(args)
	}
	r.Annotations = &mcp.Annotations{LastModified: o.Created.UTC().Format(time.RFC3339)}
	return r
}

// totals returns the size and kind of an observation, as in "2 lines, 3 chars, text".
func totals(s observations.Stats) string {
	of := func(n int64, one string) string {
		if n == 1 {
			return "1 " + one
		}
		return strconv.FormatInt(n, 10) + " " + one + "s"
	}
	return of(s.Lines, "line") + ", " + of(s.Chars, "char") + ", " + s.Kind
}

// cursorOf returns the cursor of a page whose last observation is o. It holds the time and ID of o, so that the next
// page continues after o even if observations were added or removed meanwhile.
func cursorOf(o observations.Observation) mcp.Cursor {
	text := strconv.FormatInt(o.Created.UnixNano(), 10) + " " + string(o.ID)
	return mcp.Cursor(base64.StdEncoding.EncodeToString([]byte(text)))
}

// afterCursor returns the part of list after the observation in cursor.
func afterCursor(list []observations.Observation, cursor mcp.Cursor) ([]observations.Observation, error) {
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
	// Several observations may have the same time: find the one by its ID, and use the time only if it was removed.
	if at := slices.IndexFunc(list, func(o observations.Observation) bool { return string(o.ID) == id }); at >= 0 {
		return list[at+1:], nil
	}
	at := slices.IndexFunc(list, func(o observations.Observation) bool { return o.Created.Before(last) })
	if at < 0 {
		return nil, nil
	}
	return list[at:], nil
}

// readObservation reads an observation or, if the URI ends in /receipt, its receipt. It returns the receipt also if
// the observation is over 512 KiB.
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
			URI: uri, MIMEType: "text/plain", Text: s.sanitize(t, false),
		}}
	}
	switch {
	case receipt && o.Stats.Receipt == "":
		return text(fmt.Sprintf("obs:%s was shown whole: %s", o.ID, totals(o.Stats))), nil
	case receipt:
		return text(o.Stats.Receipt), nil
	case r.Size() > maxResource:
		return text(fmt.Sprintf(
			"not shown: %d bytes, one read returns at most %d; next: slice {\"source\":\"obs:%s\",\"lines\":\"1-100\"}\n%s",
			r.Size(), maxResource, o.ID, o.Stats.Receipt)), nil
	}
	return s.wholeObservation(uri, r)
}

func (s *Server) open(k *call, name string) (*observations.Reader, error) {
	id, err := observations.ParseID(name)
	if err != nil {
		return nil, notFound(k.frame.Stateless(),
			"%s is not the URI of an observation; write observation:// and the 12 characters after obs:",
			jsonrpc.Quoted(name))
	}
	if s.store == nil {
		return nil, notFound(
			k.frame.Stateless(), "no observation %s%s: this server keeps no observations", observations.Prefix, id,
		)
	}
	r, err := s.store.Open(k.conn.account.Owner, id)
	if err != nil {
		return nil, s.unreadable(k.frame.Stateless(), id, err)
	}
	return r, nil
}

// unreadable converts an error of the store into a fault that says whether the observation expired or is not found.
func (s *Server) unreadable(modern bool, id observations.ID, err error) *jsonrpc.Fault {
	var expired *observations.ExpiredError
	switch {
	case errors.As(err, &expired):
		o := expired.Observation
		args, _ := s.mask.String(string(o.Args))
		return notFound(modern, "%s%s has expired; it came from %s %s: repeat that call",
			observations.Prefix, id, o.Tool, jsonrpc.Echo(args))
	case errors.Is(err, observations.ErrNotFound):
		return notFound(modern, "no observation %s%s; resources/list shows those that exist", observations.Prefix, id)
	}
	return jsonrpc.Faultf(
		mcp.INTERNAL_ERROR, "%s%s cannot be read: %s", observations.Prefix, id, jsonrpc.Echo(err.Error()),
	)
}

// wholeObservation returns a whole observation. Text is decoded to UTF-8, masked and escaped, since it may reach a
// model; binary content is unchanged.
func (s *Server) wholeObservation(uri string, r *observations.Reader) ([]mcp.ResourceContents, error) {
	o := r.Observation
	fail := func(what string, err error) ([]mcp.ResourceContents, error) {
		return nil, jsonrpc.Faultf(
			mcp.INTERNAL_ERROR, "%s%s cannot be %s: %s", observations.Prefix, o.ID, what, jsonrpc.Echo(err.Error()))
	}
	raw := make([]byte, r.Size())
	if _, err := io.ReadFull(io.NewSectionReader(r, 0, r.Size()), raw); err != nil {
		return fail("read", err)
	}
	if content.Kind(o.Stats.Kind) == content.Binary {
		return []mcp.ResourceContents{mcp.BlobResourceContents{
			URI: uri, MIMEType: kind.Media(raw[:min(len(raw), content.SniffSize)], o.File),
			Blob: base64.StdEncoding.EncodeToString(raw),
		}}, nil
	}
	decoded, _, err := content.Decode(bytes.NewReader(raw))
	if err != nil {
		return fail("decoded", err)
	}
	// Decoding to UTF-8 at most triples the size of a text.
	whole, err := io.ReadAll(io.LimitReader(decoded, 3*maxResource))
	if err != nil {
		return fail("decoded", err)
	}
	isJSON := content.Kind(o.Stats.Kind) == content.JSON || content.Kind(o.Stats.Kind) == content.NDJSON
	return []mcp.ResourceContents{mcp.TextResourceContents{
		URI: uri, MIMEType: mimeOf(o), Text: text.Escape(s.sanitize(string(whole), isJSON), text.Standalone),
	}}, nil
}

// mimeOf returns the MIME type of an observation's kind.
func mimeOf(o observations.Observation) string {
	if o.Stats.Ext == "tsv" {
		return kind.Table.MIME([]byte{'\t'})
	}
	return kind.Of(content.Kind(o.Stats.Kind)).MIME(nil)
}

// notFound returns the fault for a missing resource. Its code depends on the era; modern means the stateless one.
func notFound(modern bool, format string, args ...any) *jsonrpc.Fault {
	code := mcp.RESOURCE_NOT_FOUND
	if modern {
		code = mcp.INVALID_PARAMS
	}
	return jsonrpc.Faultf(code, format, args...)
}
