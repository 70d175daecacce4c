package server

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcp-funnel/mcp-funnel/kinds"
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/system/jsonrpc"
	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// resourcesPage is the number of observations on one page of resources/list.
const resourcesPage = 100

func (s resourceArea) listTemplates(_ context.Context, k *call) (any, error) {
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
func (s resourceArea) resource(uri string) *Resource {
	at := slices.IndexFunc(s.offers.Resources, func(r Resource) bool { return r.URI == uri })
	if at < 0 {
		return nil
	}
	return &s.offers.Resources[at]
}

func (s resourceArea) readResource(ctx context.Context, k *call) (any, error) {
	uri, fault := k.frame.RequiredString("uri")
	if fault != nil {
		return nil, fault
	}
	if app := k.app(); app != nil && uri == appURI {
		return &mcp.ReadResourceResult{Contents: []mcp.ResourceContents{mcp.TextResourceContents{
			URI: uri, MIMEType: appMIME, Text: app.Document(), Meta: map[string]any{"ui": json.RawMessage(documentUI)},
		}}}, nil
	}
	var read func(context.Context, string) ([]mcp.ResourceContents, error)
	if r := s.resource(uri); r != nil {
		read = r.Read
	} else if at := slices.IndexFunc(s.offers.Templates, func(t Template) bool { return t.URITemplate.Regexp().MatchString(uri) }); at >= 0 {
		read = s.offers.Templates[at].Read
	} else {
		return nil, notFound(
			k.frame.Stateless(), "unknown resource %s; resources are %s", jsonrpc.Quoted(uri),
			strings.Join(templateNames(), ", "),
		)
	}
	contents, err := read(ctx, uri)
	if err != nil {
		return nil, err
	}
	return &mcp.ReadResourceResult{Contents: contents}, nil
}

// observations lists the owner's observations, newest first.
func (s resourceArea) observations(owner string) ([]*observations.Observation, error) {
	if s.options.Store == nil {
		return nil, nil
	}
	list, _, err := s.options.Store.Listing(owner, false, false)
	if err != nil {
		return nil, jsonrpc.Faultf(mcp.INTERNAL_ERROR, "cannot list observations: %s", jsonrpc.Echo(err.Error()))
	}
	slices.SortFunc(list, observations.Newest)
	return list, nil
}

// listResources lists one page of observations, newest first. The first page starts with the resources of
// [Options].Extra.
func (s resourceArea) listResources(_ context.Context, k *call) (any, error) {
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

func (s resourceArea) resourceOf(o *observations.Observation) mcp.Resource {
	size := o.Bytes
	r := mcp.NewResource(observations.URIPrefix+string(o.ID), o.File, mcp.WithMIMEType(mimeOf(*o)))
	r.Size = &size
	r.Title = o.Tool
	if o.Name != "" {
		r.Title += ": " + s.sanitize(o.Name, false)
	}
	r.Description = totals(o.Stats)
	if len(o.Args) > 0 {
		args, _ := s.options.Mask.String(string(o.Args))
		r.Description += "; " + o.Tool + " " + jsonrpc.Echo(args)
	}
	r.Annotations = &mcp.Annotations{LastModified: o.Created.UTC().Format(time.RFC3339)}
	return r
}

// totals returns the size and kind of an observation, as in "2 lines, 3 chars, text".
func totals(s observations.Stats) string {
	return content.Plural(s.Lines, "line", "lines") + ", " + content.Plural(s.Chars, "char", "chars") + ", " + s.Kind
}

// cursorOf returns the cursor of a page whose last observation is o. It holds the time and ID of o, so that the next
// page continues after o even if observations were added or removed meanwhile.
func cursorOf(o *observations.Observation) mcp.Cursor {
	text := strconv.FormatInt(o.Created.UnixNano(), 10) + " " + string(o.ID)
	return mcp.Cursor(base64.StdEncoding.EncodeToString([]byte(text)))
}

// afterCursor returns the part of list after the observation in cursor, which may have been removed. list is in the
// order of [observations.Newest].
func afterCursor(list []*observations.Observation, cursor mcp.Cursor) ([]*observations.Observation, error) {
	if cursor == "" {
		return list, nil
	}
	text, err := base64.StdEncoding.DecodeString(string(cursor))
	stamp, id, found := strings.Cut(string(text), " ")
	nanos, numberErr := strconv.ParseInt(stamp, 10, 64)
	if err != nil || !found || numberErr != nil {
		return nil, unknownCursor(string(mcp.MethodResourcesList))
	}
	last := &observations.Observation{Created: time.Unix(0, nanos), ID: observations.ID(id)}
	at := slices.IndexFunc(list, func(o *observations.Observation) bool { return observations.Newest(o, last) > 0 })
	if at < 0 {
		return nil, nil
	}
	return list[at:], nil
}

func (s resourceArea) open(k *call, name string) (*observations.Reader, error) {
	id, err := observations.ParseID(name)
	if err != nil {
		return nil, notFound(k.frame.Stateless(),
			"%s is not the URI of an observation; write observation:// and the 12 characters after obs:",
			jsonrpc.Quoted(name))
	}
	if s.options.Store == nil {
		return nil, notFound(
			k.frame.Stateless(), "no observation %s%s: this server keeps no observations", observations.Prefix, id,
		)
	}
	r, err := s.options.Store.Open(k.conn.account.Owner, id)
	if err != nil {
		return nil, s.unreadable(k.frame.Stateless(), id, err)
	}
	return r, nil
}

// unreadable converts an error of the store into a fault that says whether the observation expired or is not found.
func (s resourceArea) unreadable(modern bool, id observations.ID, err error) *jsonrpc.Fault {
	var expired *observations.ExpiredError
	switch {
	case errors.As(err, &expired):
		o := expired.Observation
		args, _ := s.options.Mask.String(string(o.Args))
		return notFound(modern, "%s%s has expired; it came from %s %s: repeat that call",
			observations.Prefix, id, o.Tool, jsonrpc.Echo(args))
	case errors.Is(err, observations.ErrNotFound):
		return notFound(modern, "no observation %s%s; resources/list shows those that exist", observations.Prefix, id)
	}
	return jsonrpc.Faultf(
		mcp.INTERNAL_ERROR, "%s%s cannot be read: %s", observations.Prefix, id, jsonrpc.Echo(err.Error()),
	)
}

// mimeOf returns the MIME type of an observation's kind.
func mimeOf(o observations.Observation) string {
	if o.Stats.Ext == "tsv" {
		return kinds.Table.MIME([]byte{'\t'})
	}
	return kinds.Of(content.Kind(o.Stats.Kind)).MIME(nil)
}

// notFound returns the fault for a missing resource. Its code depends on the era; modern means the stateless one.
func notFound(modern bool, format string, args ...any) *jsonrpc.Fault {
	code := mcp.RESOURCE_NOT_FOUND
	if modern {
		code = mcp.INVALID_PARAMS
	}
	return jsonrpc.Faultf(code, format, args...)
}
