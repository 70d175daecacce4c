package deliver

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/continuation"
	"github.com/mcp-funnel/mcp-funnel/continuation/intent"
	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/tools"
	"github.com/mcp-funnel/mcp-funnel/tools/source"
)

// document is what is delivered by default.
const document = "document"

// kindOf returns what the text is to be read as.
func kindOf(as string) continuation.Kind {
	switch as {
	case "", document:
		return continuation.Any
	case "text", "markdown", "code":
		return continuation.Text
	}
	return continuation.JSON
}

// shape says what is expected of a part.
func shape(as string) string {
	if text := intent.Shape(intent.Level(as)); text != "" {
		return text + "\nSend it with deliver as=" + as + " part=TEXT.\n"
	}
	if kindOf(as) == continuation.Text {
		return "Any " + as + ": nothing of it is parsed, and only you know whether it is complete.\n" +
			"Send it with deliver as=" + as + " part=TEXT.\n"
	}
	return `{"sections": [{"id": "intro", "content_type": "heading", "elements": [{"level": 1, "text": "…"}]}]}
content_type is heading {level, text}, paragraph {text}, bullet_list or numbered_list {items}, ` +
		`table {headers, rows} or code_block {language, code}; other JSON is taken too.
Send it with deliver part=TEXT. Stop wherever you must: the answer says word for word how the next part begins.
`
}

// readIntent returns the text of the argument intent; nil if it was not given.
func readIntent(ctx context.Context, name string, in tools.Input) ([]byte, error) {
	if name == "" {
		return nil, nil
	}
	text, _, err := read(ctx, in, "intent", name)
	return text, err
}

// verify checks a whole intent, plan or action, and says of a document what to compare it with: with given, the text of
// the argument intent. It returns the lines to show, and the faults.
func (d *deliverer) verify(
	ctx context.Context, as string, in tools.Input, given, text []byte,
) (show string, faults []string) {
	if as == "" || as == document {
		return expectations(given), nil
	}
	o := intent.Options{
		Window: d.options.Window,
		Known:  func(name string) bool { return exists(ctx, in, name) },
		Tokens: func(b []byte) int64 {
			c := in.NewTokenCounter()
			_, _ = c.Write(b) // never fails
			n, margin := c.Total()
			return int64(math.Ceil(float64(n) * (1 + margin)))
		},
	}
	if as == string(intent.Intent) {
		o.Message = given // the message that it was taken from
	} else {
		o.Intent = given
	}
	r := intent.Check(intent.Level(as), text, o)
	var b strings.Builder
	if len(r.Faults) == 0 {
		fmt.Fprintf(&b, "VALID: the fields of the %s have the forms they must have. Whether they are true is not checked.\n", as)
	} else {
		fmt.Fprintf(&b, "NOT VALID: %s. Deliver the %s again, from its beginning:\n",
			content.Plural(int64(len(r.Faults)), "fault", "faults"), as)
		for _, f := range r.Faults {
			b.WriteString("- " + f + "\n")
		}
	}
	for _, n := range r.Notes {
		b.WriteString("note: " + n + "\n")
	}
	return b.String(), r.Faults
}

// exists reports whether a name is that of a source: Locate alone does not look for observations. The name of a place
// of them is none.
func exists(ctx context.Context, in tools.Input, name string) bool {
	locations, err := in.Sources.Locate(ctx, name)
	for _, l := range locations {
		if _, named := l.Place.(source.NamedPlace); named && l.Path == "." {
			return false
		}
		if err == nil {
			_, err = l.Place.Describe(ctx, l.Path)
		}
	}
	return err == nil
}

// maxCriteria is how many success criteria an answer repeats.
const maxCriteria = 12

// expectations says what an intent expects of a document: the criteria to look at, and formats that JSON is none of.
func expectations(given []byte) string {
	var i struct {
		ExpectedFormats []string `json:"expectedFormats"`
		SuccessCriteria []string `json:"successCriteria"`
	}
	if len(bytes.TrimSpace(given)) == 0 || json.Unmarshal(given, &i) != nil {
		return ""
	}
	var b strings.Builder
	if len(i.ExpectedFormats) > 0 {
		fmt.Fprintf(&b, "Expected format: %s; this is JSON.\n", content.ClipBytes(strings.Join(i.ExpectedFormats, ", "), 100))
	}
	for n, c := range i.SuccessCriteria {
		if n == maxCriteria {
			fmt.Fprintf(&b, "and %s\n", content.Plural(int64(len(i.SuccessCriteria)-n), "more criterion", "more criteria"))
			break
		}
		b.WriteString("Check: " + content.ClipBytes(c, 200) + "\n")
	}
	return b.String()
}
