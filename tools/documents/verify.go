package documents

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/internal/content"
	"github.com/mcp-funnel/mcp-funnel/internal/intent"
	"github.com/mcp-funnel/mcp-funnel/tools"
)

// document is what is delivered by default.
const document = "document"

// shape says what is expected of a part.
func shape(as string) string {
	if text := intent.Shape(intent.Level(as)); text != "" {
		return text + "\nSend it with deliver as=" + as + " part=TEXT.\n"
	}
	return `{"sections": [{"id": "intro", "content_type": "heading", "elements": [{"level": 1, "text": "…"}]}]}
content_type is heading {level, text}, paragraph {text}, bullet_list or numbered_list {items}, ` +
		`table {headers, rows} or code_block {language, code}; other JSON is taken too.
Send it with deliver part=TEXT. Stop wherever you must: the answer says word for word how the next part begins.
`
}

// verify checks a whole intent, plan or action, and says of a document what to compare it with. It returns the lines to
// show, and the faults.
func (d *deliverer) verify(ctx context.Context, a Args, in tools.Input, text []byte) (string, []string, error) {
	var kept []byte
	if a.Intent != "" {
		src, err := in.Sources.Open(ctx, a.Intent)
		if err != nil {
			return "", nil, fmt.Errorf("intent: %w", err)
		}
		defer func() { _ = src.Close() }()
		if kept, err = readAll(src); err != nil {
			return "", nil, fmt.Errorf("intent %s: %w", a.Intent, err)
		}
	}
	if a.As == "" || a.As == document {
		return expectations(kept), nil, nil
	}
	o := intent.Options{
		Window: d.options.Window,
		Known: func(name string) bool {
			_, err := in.Sources.Locate(ctx, name)
			return err == nil
		},
	}
	if in.NewTokenCounter != nil {
		o.Tokens = func(b []byte) int64 {
			c := in.NewTokenCounter()
			_, _ = c.Write(b) // never fails
			n, margin := c.Total()
			return int64(math.Ceil(float64(n) * (1 + margin)))
		}
	}
	if a.As == string(intent.Intent) {
		o.Message = kept // the message that it was taken from
	} else {
		o.Intent = kept
	}
	r := intent.Check(intent.Level(a.As), text, o)
	var b strings.Builder
	if len(r.Faults) == 0 {
		fmt.Fprintf(&b, "VALID: every field of the %s is as it must be.\n", a.As)
	} else {
		fmt.Fprintf(&b, "NOT VALID: %s. Mend them and deliver the %s again, from its beginning:\n",
			content.Plural(int64(len(r.Faults)), "fault", "faults"), a.As)
		for _, f := range r.Faults {
			b.WriteString("- " + f + "\n")
		}
	}
	for _, n := range r.Notes {
		b.WriteString("note: " + n + "\n")
	}
	return b.String(), r.Faults, nil
}

// maxCriteria is how many success criteria an answer repeats.
const maxCriteria = 12

// expectations says what an intent expects of a document: the criteria to look at, and formats that JSON is none of.
func expectations(kept []byte) string {
	var i struct {
		ExpectedFormats []string `json:"expectedFormats"`
		SuccessCriteria []string `json:"successCriteria"`
	}
	if len(bytes.TrimSpace(kept)) == 0 || json.Unmarshal(kept, &i) != nil {
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
