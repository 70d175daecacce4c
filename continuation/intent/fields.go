package intent

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// DataTypes are the values of dataType.
var DataTypes = []string{"numbers", "text", "documents", "analysis", "code", unclear}

// unclear is the data type of a document that does not say one.
const unclear = "unknown"

// field is one field of a document. A check gets the value and reports its faults under the name at.
type field struct {
	name    string
	allowed string // completes "give …" and "is not …"
	check   func(c *checker, f field, at string, raw jsontext.Value)
}

const (
	someText  = "a text that is not empty"
	threshold = "a number from 0.0 to 1.0"
)

// The fields that have the same rules at every level.
var (
	dataType        = field{"dataType", "one of " + strings.Join(DataTypes, ", "), (*checker).dataType}
	expectedFormats = field{
		"expectedFormats", `a list of file extensions in lower case, without a dot, such as ["pdf"]; [] if unclear`,
		(*checker).formats,
	}
	quality = field{
		"qualityRequirements", "an object {accuracyThreshold, completenessThreshold}", (*checker).quality,
	}
	successCriteria = field{"successCriteria", "a list of texts that are not empty", (*checker).criteria}
	userMessage     = field{"userMessage", someText, (*checker).text}
)

var thresholds = []field{
	{"accuracyThreshold", threshold, (*checker).threshold},
	{"completenessThreshold", threshold, (*checker).threshold},
}

// fields checks the named fields of an object: each must be there, and no other. prefix is "" or ends with a dot.
func (c *checker) fields(prefix string, o object, all []field) {
	c.required(prefix, o, all)
	c.unknown(prefix, o, all, true)
}

// required checks fields of an object that must be there.
func (c *checker) required(prefix string, o object, all []field) {
	for _, f := range all {
		if raw, ok := o[f.name]; ok {
			f.check(c, f, prefix+f.name, raw)
		} else {
			c.fault("%s%s: missing; give %s", prefix, f.name, f.allowed)
		}
	}
}

// optional is fields for an object of which each field may be missing or null.
func (c *checker) optional(prefix string, o object, all []field) {
	for _, f := range all {
		if raw, ok := o[f.name]; ok && raw.Kind() != 'n' {
			f.check(c, f, prefix+f.name, raw)
		}
	}
}

// unknown reports fields that are not among those of the object. If others are allowed (strict is false), only a
// name that is probably a misspelling is a fault.
func (c *checker) unknown(prefix string, o object, all []field, strict bool) {
	names := make([]string, len(all))
	for i, f := range all {
		names[i] = f.name
	}
	for _, name := range slices.Sorted(maps.Keys(o)) {
		if slices.Contains(names, name) {
			continue
		}
		advice, near := "the fields are "+strings.Join(names, ", "), nearest(name, names)
		if near != "" {
			advice = "did you mean " + near + "?"
		} else if !strict {
			continue
		}
		c.fault("%s%s: unknown field; %s", prefix, content.VisibleLine(content.ClipEnd(name, maxShown)), advice)
	}
}

// nearest returns the field that name is a spelling of: with another case, with _ or -, or with up to two wrong bytes.
func nearest(name string, names []string) string {
	plain := func(s string) string {
		return strings.ToLower(strings.NewReplacer("_", "", "-", "", " ", "").Replace(s))
	}
	for _, n := range names {
		if plain(n) == plain(name) {
			return n
		}
	}
	return content.Nearest(name, names)
}

// wrong reports a value that is not what the field allows.
func (c *checker) wrong(f field, at string, raw jsontext.Value) {
	c.fault("%s: %s is not %s", at, shown(raw), f.allowed)
}

// text checks a text that must not be empty.
func (c *checker) text(f field, at string, raw jsontext.Value) {
	if s, ok := textOf(raw); !ok || strings.TrimSpace(s) == "" {
		c.wrong(f, at, raw)
	}
}

// anyText checks a text that may be empty.
func (c *checker) anyText(f field, at string, raw jsontext.Value) {
	if _, ok := textOf(raw); !ok {
		c.wrong(f, at, raw)
	}
}

func (c *checker) dataType(f field, at string, raw jsontext.Value) {
	if s, ok := textOf(raw); !ok || !slices.Contains(DataTypes, s) {
		c.wrong(f, at, raw)
	}
}

var extension = content.Pattern(`^[a-z0-9]{1,12}(\.[a-z0-9]{1,12})?$`)

func (c *checker) formats(f field, at string, raw jsontext.Value) {
	all, ok := listOf(raw)
	if !ok {
		c.wrong(f, at, raw)
	}
	for i, raw := range all {
		if s, ok := textOf(raw); !ok || !extension().MatchString(s) {
			c.fault("%s: %s is not a file extension in lower case, without a dot, such as \"pdf\"", item(at, i), shown(raw))
		}
	}
}

func (c *checker) quality(f field, at string, raw jsontext.Value) {
	if o, ok := objectOf(raw); ok {
		c.fields(at+".", o, thresholds)
	} else {
		c.wrong(f, at, raw)
	}
}

func (c *checker) threshold(f field, at string, raw jsontext.Value) {
	if n, ok := numberOf(raw); !ok || n < 0 || n > 1 {
		c.wrong(f, at, raw)
	}
}

func (c *checker) criteria(f field, at string, raw jsontext.Value) {
	if all, ok := c.texts(f, at, raw); ok && len(all) == 0 {
		c.note("%s: empty; nothing says when the work is finished", at)
	}
}

// texts checks a list of texts that are not empty, and returns them.
func (c *checker) texts(f field, at string, raw jsontext.Value) (texts []string, ok bool) {
	all, ok := listOf(raw)
	if !ok {
		c.wrong(f, at, raw)
		return nil, false
	}
	for i, raw := range all {
		s, ok := textOf(raw)
		if !ok || strings.TrimSpace(s) == "" {
			c.fault("%s: %s is not %s", item(at, i), shown(raw), someText)
		}
		texts = append(texts, s)
	}
	return texts, true
}

// item names an element of a list.
func item(at string, i int) string { return fmt.Sprintf("%s[%d]", at, i) }

// The functions below return a value as a Go type; ok is false if it has another type.

func textOf(raw jsontext.Value) (s string, ok bool) {
	return s, raw.Kind() == '"' && json.Unmarshal(raw, &s) == nil
}

func listOf(raw jsontext.Value) (all []jsontext.Value, ok bool) {
	return all, raw.Kind() == '[' && json.Unmarshal(raw, &all) == nil
}

func objectOf(raw jsontext.Value) (o object, ok bool) {
	return o, raw.Kind() == '{' && json.Unmarshal(raw, &o) == nil
}

func numberOf(raw jsontext.Value) (n float64, ok bool) {
	if raw.Kind() != '0' {
		return 0, false
	}
	n, err := strconv.ParseFloat(strings.TrimSpace(string(raw)), 64) // 1e309 is out of range
	return n, err == nil
}
