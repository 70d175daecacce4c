package deliver

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/base/lru"
	"github.com/mcp-funnel/mcp-funnel/continuation"
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/tools"
)

// Args are the arguments of deliver.
type Args struct {
	Part   tools.Text `json:"part,omitempty" jsonschema:"may end anywhere; empty: what is expected" help:"Text of this part. It may end anywhere, in the middle of a word too; at most about 8,000 characters are safe with most models. Left out, with neither after: the shape that is expected."`
	After  string     `json:"after,omitempty" jsonschema:"obs:ID so far" help:"The document so far, as the last answer named it: obs:ID. Left out: the part is the first."`
	As     string     `json:"as,omitempty" enum:"document|intent|tasks|action|text|markdown|code" help:"What is delivered: document (the default; JSON, or Markdown with prose around its code), an intent, a task plan or an action, whose fields are then checked, or text, markdown or code, of which nothing is parsed."`
	To     string     `json:"to,omitempty" help:"File in which the document is written when it is whole: a new one, below a directory that may be changed."`
	Intent string     `json:"intent,omitempty" jsonschema:"obs:ID" help:"What to check against: the intent that a task plan, an action or a document belongs to, or for an intent the message that it was taken from."`
}

// Tool returns the tool deliver.
func Tool(o Options) tools.Tool {
	d := &deliverer{
		options: o, branches: lru.New[string, string](maxBranches), refused: lru.New[string, bool](maxBranches),
	}
	return tools.New(tools.Tool{
		Name:  "deliver",
		Title: "Deliver a document",
		Description: "Hand in a JSON document in parts, each as long as you can write. " +
			"The answer says whether it is whole, and word for word where to go on.",
		Effect:  tools.Writes,
		Paged:   true,
		Toolset: Toolset,
	}, d.run)
}

// Check implements [tools.Checker].
func (a Args) Check() error {
	if a.After != "" && !observations.IsName(a.After) {
		return fmt.Errorf("after: %q is no document: give obs:ID as an answer of deliver named it",
			content.ClipBytes(a.After, 100))
	}
	return nil
}

// report is what is sent as _meta["funnel/deliver"].
type report struct {
	State   continuation.State   `json:"state"`
	Verdict continuation.Verdict `json:"verdict"`
	Parts   int                  `json:"parts"`
	Bytes   int                  `json:"bytes"`
	Kept    string               `json:"kept,omitempty"`    // obs:ID of the text so far
	Part    string               `json:"part,omitempty"`    // obs:ID of this part
	Join    string               `json:"join,omitempty"`    // how it was joined
	Restart string               `json:"restart,omitempty"` // exact text that the next part must begin with
	Reason  string               `json:"reason,omitempty"`
	Faults  []string             `json:"faults,omitempty"` // of an intent, tasks or action
}

func (d *deliverer) run(ctx context.Context, a Args, in tools.Input, out tools.Output) error {
	if err := a.Check(); err != nil {
		return err
	}
	empty := strings.TrimSpace(string(a.Part)) == ""
	if empty && a.After == "" {
		return out.Page().Text([]byte(shape(a.As)))
	}
	doc, err := d.open(ctx, a.After, a.As, in)
	if err != nil {
		return err
	}
	given, err := readIntent(ctx, a.Intent, in) // before anything is stored: a wrong name loses no part
	if err != nil {
		return err
	}
	if empty {
		out.Attach(report{State: doc.State(), Verdict: continuation.Refused, Parts: doc.Parts(), Bytes: len(doc.Text()),
			Kept: a.After, Restart: doc.Restart(), Reason: "the part is empty"})
		return out.Page().Text([]byte(doc.Missing(names(a.After, in.Owner))))
	}
	r := doc.Add([]byte(a.Part))
	if r.Verdict == continuation.Refused && d.refusedBefore(in.Owner, a) {
		r.Verdict, r.Reason = continuation.Stop, "this part was refused before"
	}
	r.Reason, r.Dropped = in.Mask(r.Reason), in.Mask(r.Dropped) // they quote the part
	rep := report{
		State: r.State, Verdict: r.Verdict, Parts: doc.Parts(), Bytes: len(doc.Text()), Kept: a.After, Join: r.Join,
		Reason: r.Reason,
	}
	if err := d.store(a, in, out, doc, &rep); err != nil {
		return err
	}
	n := names(rep.Kept, in.Owner)
	n.Part = rep.Part
	n.Outline = keepOutline(doc, r.Verdict, rep.Kept, out)
	text := doc.Answer(r, n)
	if f := strings.TrimSpace(string(a.Part)); r.State == continuation.Broken && a.After == "" && f[0] != '{' {
		text += "If it is meant as text, deliver it with as=text.\n"
	}
	if r.Verdict == continuation.Done {
		var more string
		more, rep.Faults = d.verify(ctx, a.As, in, given, doc.Text())
		for i, f := range rep.Faults {
			rep.Faults[i] = in.Mask(f)
		}
		text += more
	}
	switch {
	case a.To == "":
	case r.Verdict != continuation.Done && d.options.Save != nil:
		text += a.To + " is not written: it is not known that the document is whole; give to again with the part " +
			"that ends it, or write the file with from=" + rep.Kept + "\n"
	case len(rep.Faults) > 0:
		text += a.To + " was not written: the document has the faults above\n"
	default:
		text += d.save(ctx, a.To, doc.Text(), in, out)
	}
	if r.Verdict == continuation.Continue || r.Verdict == continuation.Refused {
		rep.Restart = doc.Restart()
	}
	whole := 0.
	if r.Verdict == continuation.Done && len(rep.Faults) == 0 {
		whole = 1
	}
	out.Count("whole", whole)
	out.Attach(rep)
	return out.Page().Text([]byte(text))
}

// save writes a whole document to a file, and says so, or why not: it is stored in any case.
func (d *deliverer) save(ctx context.Context, to string, text []byte, in tools.Input, out tools.Output) string {
	if d.options.Save == nil {
		return to + " was not written: files are written with --toolsets write and --allow-write DIR only\n"
	}
	says, err := d.options.Save(ctx, to, text, in, out)
	if err != nil {
		return fmt.Sprintf("it was not written to a file: %v\n", err)
	}
	return says
}

// refusedBefore reports whether this part was refused before, by this process.
func (d *deliverer) refusedBefore(owner string, a Args) bool {
	key := fmt.Sprintf("%s\x00%s\x00%x", owner, a.After, sha256.Sum256([]byte(a.Part)))
	_, before := d.refused.Get(key)
	d.refused.Put(key, true, 1)
	return before
}

// keepOutline stores the outline of a document if the answer does not show all of it, and returns its name; "" if it is
// not stored.
func keepOutline(doc *continuation.Document, v continuation.Verdict, kept string, out tools.Output) string {
	lines, abridged := doc.Outline()
	if !abridged || v != continuation.Done && v != continuation.Continue {
		return ""
	}
	all := []byte(strings.Join(lines, "\n") + "\n")
	id, err := out.Store(tools.Stored{Text: all, Name: "outline", From: []string{kept}})
	if err != nil {
		out.Note("the whole outline could not be kept: " + err.Error())
		return ""
	}
	return observations.Prefix + id
}

func names(kept, owner string) continuation.Names {
	n := continuation.Names{Kept: kept}
	if kept == "" {
		return n
	}
	command := "mcp-funnel observations cat "
	if owner != observations.Local {
		command += "--any-owner "
	}
	n.Call, n.File = "deliver after="+kept, command+kept+" > FILE"
	return n
}

// open returns the document that is continued, or a new one.
func (d *deliverer) open(ctx context.Context, after, as string, in tools.Input) (*continuation.Document, error) {
	o := continuation.Options{
		Kind: kindOf(as), MaxParts: d.options.MaxParts, OutlineTokens: d.options.OutlineTokens, Tokens: in.CountTokens,
		AsShown: func(before, text string) bool {
			return in.AsShown(text) && strings.HasSuffix(in.Mask(before+text), text)
		},
	}
	if after == "" {
		return continuation.New(o), nil
	}
	text, of, err := read(ctx, in, "after", after)
	if err != nil {
		return nil, err
	}
	return continuation.Open(text, of.Stats.State, o), nil
}

// store stores the part, and the joined text if it is another one.
func (d *deliverer) store(a Args, in tools.Input, out tools.Output, doc *continuation.Document, rep *report) error {
	kind := cmp.Or(a.As, document)
	args := Args{After: a.After, As: a.As, Intent: a.Intent}
	keep := func(s tools.Stored) (string, error) {
		s.Args = args
		id, err := out.Store(s)
		if err != nil {
			return "", fmt.Errorf("the part could not be kept, so nothing was joined: %w", err)
		}
		return observations.Prefix + id, nil
	}
	var from []string
	if a.After != "" {
		from = append(from, a.After)
	}
	var err error
	if rep.Join == "" || !bytes.Equal(doc.Text(), []byte(a.Part)) {
		name := fmt.Sprintf("%s, part %d", kind, rep.Parts)
		if rep.Join == "" {
			name += ", not joined"
		}
		if rep.Part, err = keep(tools.Stored{Text: []byte(a.Part), Name: name, From: from}); err != nil ||
			rep.Join == "" {
			return err
		}
		from = append(from, rep.Part)
	}
	if len(doc.Text()) > maxDocument {
		kept := "nothing was kept"
		if rep.Part != "" {
			kept = "only the part is kept, as " + rep.Part
		}
		return fmt.Errorf("the document has %d bytes by now, and may have %d (64 MiB); %s",
			len(doc.Text()), int64(maxDocument), kept)
	}
	name := fmt.Sprintf("%s, parts 1-%d", kind, rep.Parts)
	if rep.Parts == 1 {
		name = kind + ", part 1"
	}
	rep.Kept, err = keep(tools.Stored{Text: doc.Text(), Name: name, From: from, State: doc.Stored()})
	if err == nil && a.After != "" {
		key := in.Owner + "\x00" + a.After
		if other, ok := d.branches.Get(key); ok {
			out.Note(fmt.Sprintf("%s was continued before, as %s: this is a second branch of it", a.After, other))
		}
		d.branches.Put(key, rep.Kept, 1)
	}
	return err
}
