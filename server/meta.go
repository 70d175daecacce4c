package server

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/funnel"
	"github.com/mcp-funnel/mcp-funnel/session/usage"
	"github.com/mcp-funnel/mcp-funnel/system/jsonrpc"
)

// limitsMetaKey is the member of _meta in which a client sets limits of one call: an object with the names of limits,
// such as page_tokens, and uncut.
const limitsMetaKey = "funnel/limits"

// addMeta adds to a request what the client declares in _meta: its usage, the session it means, and limits.
func (k *call) addMeta(r *funnel.Request) *jsonrpc.Fault {
	h := k.conn.agreed.Load()
	r.Client = funnel.Client{Name: h.client.Name, Version: h.client.Version}
	if fault := k.addLimits(r); fault != nil {
		return fault
	}
	if raw := k.frame.Meta(usage.MetaKey); raw != nil {
		u, err := usage.ParseMeta(raw)
		if err != nil {
			return jsonrpc.BadParams("%s", err)
		}
		r.Usage = &u
	}
	r.Who = k.session()
	if pull := k.conn.server.options.PullUsage; pull != nil && r.Usage == nil {
		r.Usage = pull(r.Who.ID)
	}
	return nil
}

// addLimits adds the limits of _meta["funnel/limits"].
func (k *call) addLimits(r *funnel.Request) *jsonrpc.Fault {
	raw := k.frame.Meta(limitsMetaKey)
	if raw == nil {
		return nil
	}
	var set map[string]json.RawMessage
	if json.Unmarshal(raw, &set) != nil || set == nil {
		return jsonrpc.BadParams("%s must be an object, such as {\"page_tokens\":8000}", limitsMetaKey)
	}
	for _, name := range slices.Sorted(maps.Keys(set)) {
		value := bytes.TrimSpace(set[name])
		var err error
		if name == "uncut" {
			err = json.Unmarshal(value, &r.Uncut)
		} else {
			var n int
			if err = json.Unmarshal(value, &n); err == nil {
				if err = r.Limits.Set(name, n); err != nil {
					return jsonrpc.BadParams("%s: %s; or uncut", limitsMetaKey, err)
				}
			}
		}
		if err != nil {
			return jsonrpc.BadParams("%s: %s must be %s", limitsMetaKey, jsonrpc.Quoted(name),
				map[bool]string{true: "true or false", false: "a whole number"}[strings.EqualFold(name, "uncut")])
		}
	}
	return nil
}

// passedMeta returns the members of _meta that an upstream server gets too, such as traceparent: all but those that
// describe this connection, or that are for this server.
func (k *call) passedMeta() map[string]json.RawMessage {
	var meta map[string]json.RawMessage
	_ = json.Unmarshal(k.frame.Params["_meta"], &meta) // jsonrpc has checked it; nil if it is missing
	maps.DeleteFunc(meta, func(name string, _ json.RawMessage) bool {
		return name == "progressToken" || strings.HasPrefix(name, metaPrefix) ||
			strings.HasPrefix(name, "io.modelcontextprotocol/")
	})
	return meta
}

// session returns the session to which a call counts: the one that the client names, else that of the connection. Roots
// and observations always belong to the session of the connection.
func (k *call) session() funnel.Session {
	who := k.conn.account
	name := k.conn.server.options.SessionOf
	if name == nil {
		return who
	}
	var meta map[string]any
	_ = json.Unmarshal(k.frame.Params["_meta"], &meta) // jsonrpc has checked it; nil if it is missing
	if id := name(who.Owner, meta); id != "" {
		who.ID = id
	}
	return who
}
