package cases

import (
	"encoding/json"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/built"
	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/conformance/promise"
	"github.com/mcp-funnel/mcp-funnel/system/mcpclient"
)

func TestDocuments(t *testing.T) {
	read := func(dir, file string, has ...string) one {
		return one{dir: dir, args: call("read", "path="+file), has: has}
	}
	try(t, []one{
		{
			dir: "formulas", args: call("read", "path=math.docx"),
			has: []string{"1/2 tablet", "10^6 cells", "5 m^2", "10^9 per litre"}, lacks: []string{"12 tablet", "106", "109"},
		},
		read("formulas", "sup.html.eml", "10^6 units", "5 m^2", "1_a", "1/2 cup", "3⁄4 spoon", "2½ kg"),
		read("formulas", "formula.odt", "Half is 1/2 of it"),
		read("formulas", "power.odt", "Limit: 10^6 cells."),
		read("documents", "altchunk.docx",
			"Report of the week.\nThe delivery to Tromsø is delayed by nine days.\nEnd of report."),
		read("documents", "sym.docx", "Approved: ☑ yes ☐ no", "Temperature ≥ 5 µg"),
		read("documents", "smartart.docx", "Process overview:\nCollect samples at Kiruna"),
		read("documents", "vml.docx", "CONFIDENTIAL DRAFT 7", "Box text old style"),
		read("documents", "comments.docx", "Approved\nApproved\nPlease check the amount"),
		read("documents", "comments.pptx", "Move launch to 9 June", "Budget is wrong, use 88k"),
		read("documents", "link.docx", "this form <https://forms.example/apply-2026> by 3 May.",
			"Leave portal <https://intra.example/leave>"),
		read("documents", "links.html.eml", "the guide <https://docs.example/guide-77>", "us <mailto:help@x.example>"),
		read("documents", "alttext.docx", "Map of the quarry near Larvik"),
		read("documents", "alt.pptx", "Photo of the dam at Vemork"),
		read("documents", "gridspan.docx", "Item | 2024 |  | 2025 | \n | Plan | Actual | Plan | Actual"),
		read("documents", "rowspan.html.eml", "North | Oslo | 5\n | Bergen | 7\nTotal |  | 12"),
	})
}

// TestPDF has one server for all calls, because each process compiles the reader of PDF on its first use.
func TestPDF(t *testing.T) {
	pdf := serve(t, "pdf")
	for _, c := range []struct {
		tool, file, pattern, has string
	}{
		{tool: "read", file: "freetext.pdf", has: "Rent contract\\nDeposit 1,800 euro"},
		{tool: "search", file: "hyph2.pdf", pattern: "well-known", has: "spelled also: well-known"},
		{tool: "search", file: "hyph2.pdf", pattern: "wellknown", has: "The wellknown author"},
	} {
		t.Run(c.file+" "+c.pattern, func(t *testing.T) {
			args := map[string]any{"path": c.file}
			if c.pattern != "" {
				args["pattern"] = c.pattern
			}
			expect.Contains(t, pdf(t, c.tool, args), c.has)
		})
	}
}

// serve starts a server on a directory of inputs. It returns a function that calls a tool, again while the answer says
// that the same call goes on.
func serve(t *testing.T, dir string) func(t *testing.T, tool string, args map[string]any) string {
	t.Helper()
	if promise.UnderRace {
		t.Skip("it drives a program that is built without the race detector: tried by the run without it")
	}
	args := []string{built.Program(t, "cmd/mcp-funnel"), "--root", filepath.Join(work, "inputs", dir), "--store", t.TempDir()}
	server := expect.Value(mcpclient.Command{Args: args}.Start(slog.New(slog.DiscardHandler), mcpclient.Handler{}))(t)
	t.Cleanup(server.Close)
	request := func(t *testing.T, method string, params any) string {
		t.Helper()
		b := expect.Value(json.Marshal(params))(t)
		result := expect.Value(server.Call(t.Context(), method, b, nil))(t)
		return string(result)
	}
	request(t, "initialize", map[string]any{
		"protocolVersion": "2025-11-25", "capabilities": struct{}{}, "clientInfo": map[string]string{"name": "cases", "version": "1"},
	})
	return func(t *testing.T, tool string, args map[string]any) (result string) {
		t.Helper()
		for result == "" || strings.Contains(result, "the same call goes on") {
			result = request(t, "tools/call", map[string]any{"name": tool, "arguments": args})
		}
		return result
	}
}
