package upstream

import (
	"cmp"
	"slices"

	"github.com/mcp-funnel/mcp-funnel/session/stats"
	"github.com/mcp-funnel/mcp-funnel/tools"
)

// Cost is what the servers of one name cost and were used for. Figures without a unit are tokens.
type Cost struct {
	Key     string     `json:"key"`             // of the record, the first one of this name
	Server  string     `json:"server"`          // its name; the key if it has none
	Error   string     `json:"error,omitempty"` // why the record cannot be read; then there are no figures
	Tools   int        `json:"tools"`           // that are approved
	Schemas int64      `json:"schemas"`         // of its tools, as a session listed them last; else as they are approved
	Listed  stats.List `json:"listed"`
	Calls   stats.Tool `json:"calls"`      // of all tools; those of another server's tool with the same name count too
	Unused  []string   `json:"never_used"` // tools that nobody called
	Drop    bool       `json:"drop"`       // the lists of all sessions took more tokens than all outputs have
}

// Costs returns what the servers that were ever started cost. own are the tools of this program, whose calls are not
// theirs.
func (r Records) Costs(of stats.Report, own []tools.Tool, count func(string) int) (all []*Cost, err error) {
	called := map[string]stats.Tool{}
	for _, t := range slices.Concat(of.Observed, of.Tools) { // a tool may have been passed on whole at first
		sum := called[t.Name]
		sum.Add(t)
		called[t.Name] = sum
	}
	keys, err := r.Keys()
	named, counted := map[string]*Cost{}, map[[2]string]bool{}
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
			name := nameOf(d)
			if counted[[2]string{c.Server, name}] {
				continue
			}
			counted[[2]string{c.Server, name}] = true
			sum, ok := called[one.Server+"_"+name]
			if !ok && !slices.ContainsFunc(own, func(t tools.Tool) bool { return t.Name == name }) {
				sum = called[name]
			}
			if c.Calls.Add(sum); sum.Calls == 0 {
				c.Unused = append(c.Unused, name)
			}
			c.Tools++
			c.Schemas += int64(count(string(d)))
		}
	}
	for _, c := range named {
		c.Schemas, c.Drop = cmp.Or(c.Listed.Last, c.Schemas), c.Listed.Tokens > c.Calls.Seen
	}
	return all, err
}
