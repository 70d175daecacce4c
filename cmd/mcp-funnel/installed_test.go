package main

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

func TestChannels(t *testing.T) {
	dpkg := "/var/lib/dpkg/info/mcp-funnel.list"
	for _, k := range []struct{ program, file, name string }{
		{"/home/u/.npm/_npx/1a2b/node_modules/mcp-funnel-linux-x64/mcp-funnel", "", "npx"},
		{"/usr/lib/node_modules/mcp-funnel/node_modules/mcp-funnel-linux-x64/mcp-funnel", dpkg, "an npm package"},
		{"/Users/u/Claude Extensions/x/mcp-funnel", "/Users/u/Claude Extensions/x/manifest.json", "a bundle (.mcpb)"},
		{"/opt/homebrew/Caskroom/mcp-funnel/0.1.0/mcp-funnel", "", "Homebrew"},
		{"C:/Users/u/scoop/apps/mcp-funnel/current/mcp-funnel.exe", "", "Scoop"},
		{"C:/Users/u/AppData/Local/Microsoft/WinGet/Packages/x/mcp-funnel.exe", "", "winget"},
		{"/usr/bin/mcp-funnel", dpkg, "a .deb package"},
		{"/usr/bin/mcp-funnel", "/lib/apk/db/installed", "an .apk package"},
		{"/usr/bin/mcp-funnel", "/usr/lib/rpm", "an .rpm package"},
		{"/usr/bin/mcp-funnel", "", "hand"},
		{"/mcp-funnel", "/etc/mcp-funnel.container", "a container image"},
		{"/home/u/x/mcp-funnel", "/home/u/x/completions", "an archive"},
		{"/home/u/mcp-funnel/bin/mcp-funnel", dpkg, "hand"},
	} {
		got := channelOf(k.program, func(file string) bool { return file == k.file })
		expect.Equal(t, got.name, k.name, "%s", k.program)
		expect.Equal(t, got.update != "", true, "%s: how it is updated", k.program)
	}
	_, out, _ := try(t, "doctor")
	expect.Contains(t, out, "installed", "version "+versionText(), "to update: ")
}

func TestReady(t *testing.T) {
	status := http.StatusOK
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/readyz" {
			w.WriteHeader(http.StatusOK)
			return
		}
		w.Header().Set("Location", "/elsewhere")
		w.WriteHeader(status)
	}))
	_, port, err := net.SplitHostPort(s.Listener.Addr().String())
	expect.OK(t, err)
	for _, addr := range []string{port, ":" + port, "127.0.0.1:" + port, "0.0.0.0:" + port} {
		code, out, said := runs(t, "--http", addr, "doctor", "--ready")
		expect.Equal(t, code, done, "%s: %s", addr, said)
		expect.Equal(t, out+said, "", addr)
	}
	code, _, _ := runs(t, "doctor", "--ready")
	expect.Equal(t, code, done, "without --http")
	status = http.StatusServiceUnavailable
	code, _, said := runs(t, "--http", port, "doctor", "--ready")
	expect.Equal(t, code, failed, said)
	expect.Contains(t, said, "/readyz: it answers 503")
	status = http.StatusFound // to where all is well
	code, _, said = runs(t, "--http", port, "doctor", "--ready")
	expect.Equal(t, code, failed, said)
	s.Close()
	code, _, said = runs(t, "--http", port, "doctor", "--ready")
	expect.Equal(t, code, failed, said)
	code, _, said = runs(t, "--http", "x:y", "doctor", "--ready")
	expect.Equal(t, code, usage, said)
}

func TestArchivedVersion(t *testing.T) {
	const hash = "0123456789abcdef0123456789abcdef01234567"
	for text, want := range map[string]string{
		"v0.1.0\n" + hash + "\n2026-11-29T12:00:00+02:00\n":       "v0.1.0",
		"v0.1.0-3-g0123456\n" + hash + "\n2026-11-29T12:00:00Z\n": "v0.1.0-3-g0123456",
		"\n" + hash + "\n2026-11-29T12:00:00+02:00\n":             "v0.0.0-20261129100000-0123456789ab",
		"$Format:%(describe)$\n$Format:%H$\n$Format:%cI$\n":       "",
		"":                                     "",
		"\nshort\n2026-11-29T12:00:00+02:00\n": "",
		"%(describe:tags=true,match=v[0-9]*)\n" + hash + "\n2026-11-29T12:00:00+02:00\n": "v0.0.0-20261129100000-0123456789ab",
		"v0.1.0\x1b[31m\n" + hash + "\n2026-11-29T12:00:00Z\n":                           "v0.0.0-20261129120000-0123456789ab",
		"v1" + strings.Repeat("0", 100) + "\n" + hash + "\n2026-11-29T12:00:00Z\n":       "",
		"\nzzzzzzzzzzzzzzzz\n2026-11-29T12:00:00Z\n":                                     "",
		"\n" + hash + "\nyesterday\n":                                                    "",
	} {
		expect.Equal(t, archivedVersion(text), want, "%q", text)
	}
	expect.Equal(t, strings.Count(archived, "\n"), 3, "lines of archived.txt: %q", archived)
}

// The manual page has every command and setting that --help has.
func TestManualPage(t *testing.T) {
	code, page, said := runs(t, "man")
	expect.Equal(t, code, done, said)
	for _, want := range []string{
		".TH MCP", ".SH NAME", ".SS \\&observations list", "\\-\\-large\\-lines", "\\-\\-context\\-window", ".SH EXIT STATUS",
	} {
		expect.Contains(t, page, want)
	}
	expect.Equal(t, strings.Contains(page, "__complete"), false, "hidden commands")
	for line := range strings.Lines(page) {
		if strings.HasPrefix(line, "'") || strings.Contains(line, "\\\\") {
			t.Errorf("groff would not print %q", line)
		}
	}
}
