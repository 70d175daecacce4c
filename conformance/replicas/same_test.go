package replicas

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

// sameCalls are calls of all tools. $1, $2 … are the observations that were kept so far.
var sameCalls = []struct {
	tool string
	args object
}{
	{"search", object{"pattern": "word1 is"}},                                       // $1, in a row
	{"run", object{"command": "cat list/03.json"}},                                  // $2
	{"run", object{"command": "seq -f 'row %.0f of the numbers' 60000"}},            // $3, in an object
	{"run", object{"command": "for i in 1 2 3 4 5 6 7 8; do cat text/*.txt; done"}}, // $4, read in ranges first
	{"run", object{"command": "echo a few words"}},
	{"run", object{"command": "printf 'a\\xff\\xfeb\\0c'; cat text/01.txt"}}, // $5
	{"find", object{"path": "list", "glob": "*1.json"}},
	{"read", object{"path": "small.txt"}},
	{"read", object{"path": "text/07.txt"}},
	{"read", object{"path": "$1"}},
	{"read", object{"path": "$3"}},
	{"grep", object{"source": "$1", "pattern": "every3th"}},
	{"grep", object{"source": "$3", "pattern": "row 59\\d99", "context": 2}},
	{"grep", object{"source": "$4", "pattern": "line 399 of file 39"}},
	{"grep", object{"source": "$4", "pattern": "nothing of it"}},
	{"grep", object{"source": "$5", "pattern": "word3"}},
	{"grep", object{"source": "$3", "pattern": "7777", "save": true}}, // $6
	{"slice", object{"source": "$3", "lines": "30000-30003"}},
	{"slice", object{"source": "$4", "lines": "100000-100010"}},
	{"slice", object{"source": "$4", "bytes": "5000000-5000100"}},
	{"slice", object{"source": "$5", "lines": "1-3"}},
	{"slice", object{"source": "$3", "lines": "70000-70001"}},
	{"jq", object{"source": "$2", "filter": "map(select(.ok)) | length"}},
	{"jq", object{"source": "$2", "filter": ".[] | .name"}},
	{"jq", object{"source": "$2", "filter": "map(.id)", "save": true}}, // $7
	{"jq", object{"source": "$1", "filter": ".x"}},
	{"search", object{"pattern": "every5th", "path": "obs:", "glob": "nothing*"}},
	{"search", object{"pattern": "row 41(11|12)1", "path": "obs:"}},
	{"search", object{"pattern": "record 9[07]0", "path": "$2"}},
	{"find", object{"path": "obs:"}},
	{"find", object{"path": "obs:", "glob": "*run*"}},
	{"run", object{"command": "wc -lc < $OBS/$bare3; sha256sum $OBS/$bare1 - < $OBS/$bare4"}},
	{"slice", object{"source": "obs:000000000000", "lines": "1-2"}},
	{"grep", object{"source": "obs:notanid", "pattern": "x"}},
	{"read", object{"path": "obs:000000000000"}},
}

// exchange makes all calls at a server, and returns the results with IDs and times replaced.
func exchange(t *testing.T, c *client) (all []string) {
	t.Helper()
	var kept []string
	for _, call := range sameCalls {
		var names []string
		for i, id := range kept {
			names = append(names, fmt.Sprint("$", i+1), id, fmt.Sprint("$bare", i+1), strings.TrimPrefix(id, "obs:"))
		}
		args := object{}
		for k, v := range call.args {
			if text, ok := v.(string); ok {
				v = strings.NewReplacer(names...).Replace(text)
			}
			args[k] = v
		}
		result, _, err := c.send(t.Context(), "tools/call", object{"name": call.tool, "arguments": args})
		text := string(result)
		if err != nil {
			text = err.Error()
		}
		var a struct {
			Meta struct {
				Receipt struct {
					ID string `json:"observation_id"`
				} `json:"funnel/receipt"`
			} `json:"_meta"`
		}
		_ = json.Unmarshal(result, &a)
		if id := "obs:" + a.Meta.Receipt.ID; id != "obs:" && !strings.Contains(strings.Join(kept, " "), id) {
			kept = append(kept, id)
		}
		for i, id := range kept {
			text = strings.ReplaceAll(text, strings.TrimPrefix(id, "obs:"), fmt.Sprintf("ID%010d", i+1))
		}
		for what, as := range times {
			text = what.ReplaceAllString(text, as)
		}
		all = append(all, text)
	}
	if len(kept) < 7 {
		t.Errorf("only %d observations were kept", len(kept))
	}
	return all
}

// times are what differs between two runs of the same calls: times, replicas, and the token counts of IDs.
var times = map[*regexp.Regexp]string{
	regexp.MustCompile(`\d{8}T\d{6}`):                                      "TIME",
	regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`):                  "TIME",
	regexp.MustCompile(`"(duration_ms|shown_tokens|total_tokens)":[\d.]+`): `"$1":0`,
	regexp.MustCompile(`"id":\d+,"error"`):                                 `"id":0,"error"`,
	regexp.MustCompile(`"funnel/replica":"[a-z]+"`):                        "REPLICA",
}

// TestToolsAreSame compares the answers of all tools, byte by byte, of a server with a directory and of two replicas in
// turn: what one has kept, the other one reads.
func TestToolsAreSame(t *testing.T) {
	t.Parallel()
	m := newTeam(t, newFakeObjects(t), "anna")
	flags := []string{
		"--root", m.root, "--token-file", filepath.Join(m.dir, "tokens"), "--min-free", "0",
		"--toolsets", "core,shell", "--sandbox", "best-effort",
		"--receipt-tokens", "4000", // so that no ID has more tokens than there is room
	}
	local := serve(t, "local", append(flags, "--store", filepath.Join(t.TempDir(), "store"), "--replica", "local")...)
	for _, name := range []string{"a", "b"} {
		m.balancer.add(serve(t, name, append(append(flags, m.store(t.TempDir())...), "--replica", name)...))
	}
	got := exchange(t, open(t, m.balancer.URL, m.tokens["anna"], stateless))
	want := exchange(t, open(t, local.url, m.tokens["anna"], stateless))
	for i, call := range sameCalls {
		expect.Equal(t, got[i], want[i], "%s %v", call.tool, call.args)
	}
}
