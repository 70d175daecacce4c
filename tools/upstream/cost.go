package upstream

import (
	"cmp"
	"slices"

	"github.com/mcp-funnel/mcp-funnel/session/stats"
)

// Cost is what the servers of one name cost and were used for. Figures without a unit are tokens.
type Cost struct {
	Key    string `json:"key"`    // of the record, the first one of this name
	Server string `json:"server"` // its name; the key if it has none
	Tools  int    `json:"tools"`  // that are approved
	// Schemas are those of the tools as a session listed them last; if none did, as they are approved.
	Schemas int64      `json:"schemas"`
	Listed  stats.List `json:"listed"`
	Calls   stats.Tool `json:"calls"`      // of all tools; those of another server's tool with the same name count too
	Unused  []string   `json:"never_used"` // tools that nobody called
	Drop    bool       `json:"drop"`       // the lists of all sessions took more tokens than all outputs have
	Error   error      `json:"-"`          // why the record cannot be read; then only Key and Server are set
}

// Costs returns what the servers that were ever started cost, in the order of their first keys. own are the names of
// this program's tools, whose calls are not theirs.
func (r Records) Costs(of stats.Report, own []string, count func(string) int) (all []*Cost, err error) {
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
		if one == nil {
			all = append(all, &Cost{Key: key, Server: key, Error: err})
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
			if !ok && !slices.Contains(own, name) {
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
		c.Schemas = cmp.Or(c.Listed.Last, c.Schemas)
		c.Drop, c.Calls.Name = c.Listed.Tokens > c.Calls.Seen, c.Server
	}
	return all, err
}
