package kinds

import (
	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// Sniff returns the kind of a text from its first bytes. whole reports whether prefix is the complete text. name is
// a file name or ""; its extension only decides ambiguous cases and never makes invalid JSON count as JSON.
//
// The first kind of [All] whose Sniff matches wins. Lines that begin with "file:line:", as search tools print them,
// are text. Source code is text whatever it quotes, unless it is JSON; the name ([content.IsSource]) or the
// [content.FileHeader] at the start identifies source code.
func Sniff(prefix []byte, whole bool, name string) content.Kind {
	s := newSample(prefix, whole, name)
	for _, k := range All {
		if k.Sniff(s) {
			return k.Name
		}
	}
	return content.Text
}

// Media returns the MIME type of a text, without parameters, from the first bytes and the file name.
func Media(prefix []byte, name string) string {
	prefix = prefix[:min(len(prefix), content.SniffSize)]
	return Of(Sniff(prefix, len(prefix) < content.SniffSize, name)).MIME(prefix)
}
