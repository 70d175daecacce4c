package server

import (
	"context"
	"slices"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcp-funnel/mcp-funnel/system/jsonrpc"
	"github.com/mcp-funnel/mcp-funnel/tools"
	"github.com/mcp-funnel/mcp-funnel/tools/investigate"
	"github.com/mcp-funnel/mcp-funnel/tools/source"
)

// Reports of investigations are resources where the toolset investigation is offered.
const (
	reportURIPrefix = "investigation://"
	reportURIEnd    = "/report"
	reportURI       = reportURIPrefix + "{id}" + reportURIEnd
	investigations  = "inv:" // the place
)

// offersToolset reports whether tools of a toolset are offered.
func (s *Server) offersToolset(name string) bool {
	return slices.ContainsFunc(s.options.Tools, func(t tools.Tool) bool { return t.Toolset == name })
}

// reportTemplates returns the template of reports; none if no investigations are offered.
func (s resourceArea) reportTemplates() []Template {
	if !s.offersToolset(investigate.Toolset) {
		return nil
	}
	return []Template{{
		mcp.NewResourceTemplate(reportURI, "report",
			mcp.WithTemplateDescription("The report of an investigation, as investigate show=report showed it last")),
		s.readReport,
	}}
}

// readReport reads a report as the tool read does.
func (s resourceArea) readReport(ctx context.Context, uri string) ([]mcp.ResourceContents, error) {
	id := strings.TrimSuffix(strings.TrimPrefix(uri, reportURIPrefix), reportURIEnd)
	answer, err := s.readWith(ctx, uri, "read", "reports", map[string]string{"path": investigations + id + reportURIEnd})
	if err != nil {
		return nil, err
	}
	if answer.Failed {
		return nil, notFound(callOf(ctx).frame.Stateless(), "%s: %s", jsonrpc.Quoted(uri), jsonrpc.Echo(textOf(answer)))
	}
	return s.resourceText(uri, "text/markdown", answer), nil
}

// completeInvestigation proposes IDs of investigations, each with prefix.
func (s completionArea) completeInvestigation(ctx context.Context, prefix, value string) (*mcp.Completion, error) {
	out := &mcp.Completion{}
	if !s.offersToolset(investigate.Toolset) {
		return out, nil
	}
	locations, err := s.options.Sources(callOf(ctx).conn.account).Locate(ctx, investigations)
	if err != nil {
		return out, nil //nolint:nilerr // there is nothing to propose
	}
	for _, l := range locations {
		_, err = l.List(ctx, source.ListOptions{Newest: true}, func(e source.Entry) error {
			propose(out, prefix+e.Path, value)
			return nil
		})
		if err != nil {
			return out, nil //nolint:nilerr // as above
		}
	}
	out.HasMore = out.Total > len(out.Values)
	return out, nil
}
