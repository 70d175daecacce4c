package conformance

import (
	"bytes"
	"context"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/conformance/promise"
)

// fixture starts the fixture server over HTTP and returns its address, "http://127.0.0.1:PORT".
func fixture(t testing.TB, args ...string) string {
	t.Helper()
	cmd := exec.Command(
		program(t, "fixture"),
		append([]string{"-http", "127.0.0.1:0", "-store", filepath.Join(t.TempDir(), "store")}, args...)...,
	) //nolint:noctx // it ends with the test
	return listening(t, cmd, "serving at ").url
}

// unchecked are the scenarios of the suite that end without a check, each with its reason. The suite counts them as
// passed.
var unchecked = map[string]string{
	"server-sse-polling": "it is about resuming a stream, which is not offered: where nothing is told before the answer, that is JSON, and the scenario ends there",
}

// TestSuite runs the official conformance suite against the fixture server. Every scenario must pass, and each except
// those of unchecked must check something.
func TestSuite(t *testing.T) {
	drivesOnly(t)
	t.Parallel()
	url := fixture(t) + "/mcp"
	for suite, checks := range map[string]int{"active": 39, "all": 43} {
		if suite == "active" && !promise.Full() {
			continue // a part of all, and what TestSuiteOfWrap runs
		}
		t.Run(suite, func(t *testing.T) {
			t.Parallel()
			said, err := runSuite(t, "conformance", url, "--suite", suite)
			summary := closing(said)
			t.Logf("conformance 0.1.16, suite %s:\n%s", suite, summary)
			m := suiteTotal.FindStringSubmatch(summary)
			switch {
			case err != nil:
				t.Errorf("%v\n%s", err, failures(said))
			case m == nil || m[2] != "0" || strings.Contains(summary, "✗"):
				t.Error("the suite did not pass")
			case count(m[1]) < checks:
				t.Errorf("%s checks passed; the suite has %d", m[1], checks)
			}
			scenarios := suiteScenario.FindAllStringSubmatch(summary, -1)
			if len(scenarios) < 30 {
				t.Errorf("the summary tells of %d scenarios; the suite has more", len(scenarios))
			}
			for _, m := range scenarios {
				switch why := unchecked[m[1]]; {
				case count(m[2]) == 0 && why == "":
					t.Errorf("%s checked nothing", m[1])
				case count(m[2]) > 0 && why != "":
					t.Errorf("%s checks something: it is no exception any more", m[1])
				case why != "":
					t.Logf("%s checks nothing: %s", m[1], why)
				}
			}
		})
	}
	// Servers that lose or delay messages do so only in some runs.
	for _, scenario := range []string{"tools-call-with-progress", "tools-call-with-logging"} {
		t.Run(scenario, func(t *testing.T) {
			t.Parallel()
			times := promise.Size(5, 20)
			ctx, stop := context.WithTimeout(t.Context(), 2*time.Minute)
			defer stop()
			out, err := nodeCommand(t, ctx, "again.mjs", strconv.Itoa(times), scenario, url).CombinedOutput()
			t.Logf("%s", out)
			expect.OK(t, err)
		})
	}
}

// TestSuiteOfWrap runs the suite against the fixture server behind wrap: no scenario may fail that the bare server
// passes (TestSuite). The suite sends no token: a proxy adds it.
func TestSuiteOfWrap(t *testing.T) {
	drivesOnly(t)
	t.Parallel()
	cmd := exec.Command(
		binary(t), "--store", filepath.Join(t.TempDir(), "ours"), "--min-free", "0", "wrap", "--http", "127.0.0.1:0", "--",
		program(t, "fixture"), "-store", filepath.Join(t.TempDir(), "theirs"),
	) //nolint:noctx // it ends with the test
	cmd.Env = append(environment(t), "MCP_FUNNEL_TOKEN="+testToken)
	target := expect.Value(url.Parse(strings.TrimSuffix(listening(t, cmd, "serving MCP at ").url, "/mcp")))(t)
	proxy := httptest.NewServer(&httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		r.Out.Host = r.In.Host // a scenario asks for other hosts
		r.Out.Header.Set("Authorization", "Bearer "+testToken)
	}})
	defer proxy.Close()
	said, err := runSuite(t, "conformance", proxy.URL+"/mcp", "--suite", "active")
	summary := closing(said)
	t.Logf("conformance 0.1.16, behind wrap:\n%s", summary)
	if m := suiteTotal.FindStringSubmatch(summary); err != nil || m == nil || m[2] != "0" || count(m[1]) < 39 {
		t.Errorf("%v\n%s", err, failures(said))
	}
}

// TestSuiteToCome runs the next version of the suite, which is pinned as the version in use is, against the fixture
// server in the stateless era. Every check must pass, and no fewer than today.
func TestSuiteToCome(t *testing.T) {
	drivesOnly(t)
	if testing.Short() {
		t.Skip("it takes ten seconds: the run without -short has it")
	}
	t.Parallel()
	const checks = 149
	said, err := runSuite(t, "conformance-next", fixture(t)+"/mcp", "--suite", "all", "--spec-version", "2026-07-28")
	summary := closing(said)
	t.Logf("conformance 0.2.0-alpha.12, protocol 2026-07-28:\n%s", summary)
	switch m := suiteTotal.FindStringSubmatch(summary); {
	case err != nil:
		t.Errorf("%v\n%s", err, failures(said))
	case m == nil || m[2] != "0" || strings.Contains(summary, "✗"):
		t.Errorf("the suite did not pass\n%s", failures(said))
	case count(m[1]) < checks:
		t.Errorf("%s checks passed; the suite has %d", m[1], checks)
	}
}

var (
	suiteTotal    = regexp.MustCompile(`Total: (\d+) passed, (\d+) failed`)
	suiteScenario = regexp.MustCompile(`(?m)^. (\S+): (\d+) passed, \d+ failed`)
	colours       = regexp.MustCompile(`\x1b\[[0-9;]*m`)
)

func count(s string) int {
	n, _ := strconv.Atoi(s)
	return n
}

// runSuite runs one of the two installed versions of the suite.
func runSuite(t *testing.T, version, url string, args ...string) (string, error) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), 3*time.Minute)
	defer stop()
	cmd := nodeCommand(
		t, ctx, "node_modules/@modelcontextprotocol/"+version+"/dist/index.js",
		append([]string{"server", "--url", url}, args...)...,
	)
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), "NO_COLOR=1")
	out, err := cmd.CombinedOutput()
	return string(colours.ReplaceAll(out, nil)), err
}

// closing returns the lines of the summary.
func closing(said string) string {
	if at := strings.Index(said, "=== SUMMARY ==="); at >= 0 {
		return strings.TrimSpace(said[at:])
	}
	return said
}

// failures returns the lines before the summary that report a failure.
func failures(said string) string {
	before, _, _ := strings.Cut(said, "=== SUMMARY ===")
	var b bytes.Buffer
	for line := range strings.Lines(before) {
		if strings.Contains(line, "FAILURE") || strings.Contains(line, "rror:") {
			b.WriteString(line)
		}
	}
	return b.String()
}
