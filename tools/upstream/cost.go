package upstream

import (
	"cmp"
	"slices"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/session/stats"
	"github.com/mcp-funnel/mcp-funnel/session/trace"
)

// Cost is what the servers of one name cost and were used for. Figures without a unit are tokens.
type Cost struct {
	Key     string     `json:"key"`             // of the record, the first one of this name
	Server  string     `json:"server"`          // its name; the key if it has none
	Error   string     `json:"error,omitempty"` // why the record cannot be read; then there are no figures
	Tools   int        `json:"tools"`           // that are approved
	Schemas int64      `json:"schemas"`         // of its tools, as a session listed them last; else as they are approved
	Listed  stats.List `json:"listed"`
	Calls   stats.Tool `json:"calls"`      // of all tools
	Unused  []string   `json:"never_used"` // tools that nobody called
	Drop    bool       `json:"drop"`       // the lists of all sessions took more tokens than all outputs have
}

// Costs returns what the servers that were ever started cost.
func (r Records) Costs(of stats.Report, count func(string) int) (all []*Cost, err error) {
	keys, err := r.Keys()
	named := map[string]*Cost{}
	for _, key := range keys {
		one, err := r.Load(key)
		if err != nil || one == nil {
			all = append(all, &Cost{Key: key, Server: key, Error: "it cannot be read: mcp-funnel upstream list says why"})
			continue
		}
		c := named[cmp.Or(one.Server, key)]
		if c == nil {
			c = &Cost{Key: key, Server: cmp.Or(one.Server, key), Listed: of.Lists[one.Server], Unused: []string{}}
			named[c.Server], all = c, append(all, c)
		}
		for _, d := range one.Approved {
			if name := nameOf(d); !slices.Contains(c.Unused, name) {
				c.Unused = append(c.Unused, name)
				c.Tools++
				c.Schemas += int64(count(string(d)))
			}
		}
	}
	for _, t := range of.Upstream {
		if c := named[t.Server]; c != nil {
			c.Calls.Add(t)
			name := strings.TrimSuffix(t.Name, " ("+trace.ViaCommand+")") // called by a script
			c.Unused = slices.DeleteFunc(c.Unused, func(n string) bool { return n == name || clipName(c.Server+"_"+n) == name })
		}
	}
	for _, c := range named {
		c.Schemas, c.Drop = cmp.Or(c.Listed.Last, c.Schemas), c.Listed.Tokens > c.Calls.Seen
	}
	return all, err
}
