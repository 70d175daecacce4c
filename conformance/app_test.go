package conformance

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/conformance/peers/peer"
	"github.com/mcp-funnel/mcp-funnel/conformance/promise"
)

// hostile are names and lines that would do something in a page that does not show them as text.
var hostile = []string{
	`<script>window.ran = 1</script>`, `<img src=x onerror="window.ran = 1">`, `"><svg onload="window.ran = 1">`,
	`<a href="javascript:window.ran = 1">x</a>`, `<iframe srcdoc="<script>parent.ran = 1</script>"></iframe>`,
	`<link rel=stylesheet href="http://evil.example/a.css">`, `<style>@import "http://evil.example/b.css";</style>`,
	`<meta http-equiv=refresh content="0;url=http://evil.example/">`, `<base href="http://evil.example/">`,
	`<form action="http://evil.example/"><button autofocus>x</button></form>`,
	`</main></body><script>window.ran = 1</script>`,
	`<img src="http://evil.example/c.png">`, `<video src="http://evil.example/d"></video>`, `{{.Page}} ${window.ran = 1}`,
	"\u202e<b>\x1b[31m", `<object data="http://evil.example/e"></object>`,
}

// TestApp shows an answer in a sandboxed frame of a real browser, by the host's half of the SDK of MCP Apps: it is
// shown, paged and searched through the tool, and what it holds neither runs nor loads anything.
func TestApp(t *testing.T) {
	drivesOnly(t)
	chromium := peer.Find(t, "chromium")
	if testing.Short() && !promise.Full() {
		t.Skip("a browser is started by the run without -short")
	}
	t.Parallel()
	root := filepath.Join(t.TempDir(), "root")
	var lines strings.Builder
	for i := range clientMatches {
		fmt.Fprintf(&lines, "needle %d %s\n", i, hostile[i%len(hostile)])
	}
	write(t, filepath.Join(root, `<img src=x onerror="ran=1">.txt`), lines.String())
	for _, protocol := range []string{"2025-11-25", "2026-07-28"} {
		t.Run(protocol, func(t *testing.T) {
			home := plainDir(t)
			ctx, stop := context.WithTimeout(t.Context(), 3*time.Minute)
			defer stop()
			cmd := nodeCommand(t, ctx, "app.mjs", chromium, filepath.Join(home, "profile"), protocol, "--", binary(t), "--root",
				root)
			cmd.Env = append(environment(t), "HOME="+home, "TMPDIR="+home)
			var errs strings.Builder
			cmd.Stderr = &errs
			out, err := cmd.Output()
			expect.Must(t, err, "the client\n%.4000s", errs.String())
			var got struct {
				Tools []struct {
					Name, UI string
					AppOnly  bool
				}
				MIMEType, Shown, First, Second, Answer, Dark, Picture string
				Requests, Errors, Links, Calls, Small, Control        []string
				Sizes                                                 []struct{ Width, Height int }
				Dialogs, Ran                                          int
			}
			expect.Must(t, json.Unmarshal(out, &got), "%.4000s", out)
			if dir := os.Getenv("APP_PICTURES"); dir != "" {
				picture := expect.Value(base64.StdEncoding.DecodeString(got.Picture))(t)
				expect.Must(t, os.WriteFile(filepath.Join(dir, protocol+".png"), picture, 0o600))
			}
			for _, tool := range got.Tools {
				funneled := slices.Contains([]string{"search", "find", "read"}, tool.Name)
				if funneled != (tool.UI == "ui://funnel/observation") || tool.AppOnly != (tool.Name == "funnel_view") {
					t.Errorf("%+v", tool)
				}
			}
			expect.Equal(t, got.MIMEType, "text/html;profile=mcp-app")
			expect.Contains(t, got.Shown, "LARGE OUTPUT DETECTED", "next: ")
			expect.Contains(t, got.First, "obs:", "needle 0 <script>window.ran = 1</script>")
			expect.Contains(t, got.Second, `needle 101 `)
			expect.Contains(t, got.Answer, "needle 2999")
			expect.Equal(t, got.Dark, "rgb(22, 23, 26)")
			if len(got.Sizes) == 0 || got.Sizes[len(got.Sizes)-1].Height > 500 {
				t.Errorf("sizes: %v", got.Sizes)
			}
			if len(got.Requests)+len(got.Errors)+got.Dialogs+got.Ran > 0 {
				t.Errorf("requests %q, errors %q, %d dialogs, %d scripts ran", got.Requests, got.Errors, got.Dialogs, got.Ran)
			}
			expect.Equal(t, strings.Join(got.Links, " "), "https://outside.example/")
			expect.Equal(t, len(got.Small), 0, "calls for an answer of which nothing is stored")
			expect.Equal(t, strings.Join(got.Control, " "), "http://evil.example/x", "the control")
		})
	}
}
