package kinds

import (
	"path"
	"slices"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/kinds/values"
	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// Files of settings are recognised by their names: their lines look like those of other texts. One that does not parse
// is of its kind too, and the error says where.
var (
	TOML = structured(Kind{
		Name: content.TOML, Ext: "toml", MIME: fixed("application/toml"),
		Sniff: func(s *Sample) bool {
			return s.ext == ".toml" ||
				named(s, "cargo.lock", "poetry.lock", "uv.lock", "pdm.lock", "pipfile", "gopkg.lock")
		},
		RecordIs: "the document", RecordNote: "dates are strings",
	}, values.TOML)

	INI = structured(Kind{
		Name: content.INI, Ext: "ini", MIME: fixed("text/plain"),
		Sniff:    func(s *Sample) bool { return s.ext == ".ini" || s.ext == ".cfg" || named(s, ".editorconfig") },
		RecordIs: "an object of the sections, with their keys as strings",
	}, values.INI)

	Properties = structured(Kind{
		Name: content.Properties, Ext: "properties", MIME: fixed("text/plain"),
		Sniff:    func(s *Sample) bool { return s.ext == ".properties" },
		RecordIs: "an object of the keys, as strings",
	}, values.Properties)

	Env = structured(Kind{
		Name: content.Env, Ext: "env", MIME: fixed("text/plain"),
		Sniff: func(s *Sample) bool {
			base := strings.ToLower(path.Base(s.name))
			return s.ext == ".env" || strings.HasPrefix(base, ".env.") && s.ext != ".md"
		},
		RecordIs: "an object of the variables, as strings",
	}, values.Env)
)

// named reports whether a text has one of these file names, in lower case.
func named(s *Sample, names ...string) bool {
	return slices.Contains(names, strings.ToLower(path.Base(s.name)))
}
