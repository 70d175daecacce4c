// Package generation makes an endpoint write a JSON document: after a reply that was cut off it asks for the next part,
// until the document is whole.
//
// Parsing decides whether it is whole; what the endpoint reports as its reason to finish is only passed on.
package generation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mcp-funnel/mcp-funnel/agents/chat"
	"github.com/mcp-funnel/mcp-funnel/continuation"
)

// Options of Generate.
type Options struct {
	System   string // first message; "": none
	Prompt   string
	Document continuation.Options
	// Report is called after each reply; nil: it is not. joined is what became of it.
	Report func(part int, r chat.Reply, joined continuation.Result, document *continuation.Document)
	// Progress is called with the bytes of the reply that is being written; nil: it is not.
	Progress func(part, bytes int)
}

// Outcome is what Generate made.
type Outcome struct {
	Text     []byte
	Verdict  continuation.Verdict
	State    continuation.State
	Reason   string     // why it is not whole
	Requests int        // that were sent
	Usage    chat.Usage // of all requests
	Finish   []string   // the endpoint's reason to finish, of each reply
	Review   []string   // what to look at in a whole document
	Masked   int        // secrets that were masked in what was sent
}

// retryAfter is the time after which a request is sent once more that failed inside of the endpoint.
const retryAfter = time.Second

// errEmpty reports that the model sent an empty reply twice in a row.
var errEmpty = errors.New("the model wrote nothing")

// generator is one run of Generate.
type generator struct {
	client  *chat.Client
	options Options
	doc     *continuation.Document
	out     Outcome
	refused string // why the last part was not joined; "" if it was
}

// Generate asks for the document and for its parts until it is whole, or more parts cannot help. The outcome has what
// was written so far even if there is an error.
func Generate(ctx context.Context, client *chat.Client, o Options) (Outcome, error) {
	o.Document.Kind = continuation.JSON
	g := &generator{client: client, options: o, doc: continuation.New(o.Document)}
	var err error
	for part := 1; ; part++ {
		var more bool
		if more, err = g.next(ctx, part); !more {
			break
		}
	}
	g.out.Text, g.out.State = g.doc.Text(), g.doc.State()
	if g.out.Verdict == continuation.Done {
		g.out.Review = g.doc.Review()
	}
	return g.out, err
}

// next asks for one part. more says that another one is due.
func (g *generator) next(ctx context.Context, part int) (more bool, err error) {
	request := g.request(part)
	reply, err := g.send(ctx, part, request)
	text := reply.Text
	if err != nil && strings.TrimSpace(text) == "" {
		return false, err
	}
	broken := err // the stream broke off: what was received is a part like any other
	if request.Prefill {
		text = g.doc.Prefilled(text)
	}
	r := g.doc.Add([]byte(text))
	g.out.Verdict, g.out.Reason, g.refused = r.Verdict, r.Reason, ""
	if r.Join == "" {
		g.refused = r.Reason
	}
	if g.options.Report != nil {
		g.options.Report(part, reply, r, g.doc)
	}
	var report *chat.ReportError
	switch {
	case r.Verdict == continuation.Done:
		return false, nil
	case broken != nil && (ctx.Err() != nil || errors.As(broken, &report)):
		return false, broken
	case r.Verdict == continuation.Continue, r.Verdict == continuation.Refused:
		return true, nil
	}
	return false, nil
}

// send sends a request. An empty reply that used up its limit is asked for once more with twice the limit: a model that
// thinks aloud may have used it for that.
func (g *generator) send(ctx context.Context, part int, r chat.Request) (chat.Reply, error) {
	if g.options.Progress != nil {
		r.Progress = func(bytes int) { g.options.Progress(part, bytes) }
	}
	reply, err := g.complete(ctx, r)
	if err != nil || strings.TrimSpace(reply.Text) != "" {
		return reply, err
	}
	if reply.FinishReason != "length" {
		return reply, fmt.Errorf("%w; the endpoint's reason: %q", errEmpty, reply.FinishReason)
	}
	limit := cmp.Or(g.client.MaxTokens(), reply.Usage.Completion)
	if r.MaxTokens = 2 * limit; limit == 0 {
		return reply, fmt.Errorf("%w, and reached a limit that it does not name", errEmpty)
	}
	reply, err = g.complete(ctx, r)
	switch {
	case errors.Is(err, chat.ErrTooLong):
		return reply, fmt.Errorf("%w within %d tokens, and the context window has no room for more: %w", errEmpty, limit, err)
	case err == nil && strings.TrimSpace(reply.Text) == "":
		return reply, fmt.Errorf("%w, with %d tokens and with %d: its thinking may take them all", errEmpty, limit, 2*limit)
	}
	return reply, err
}

// complete sends a request, and once more if the endpoint fails with a status that may be of the moment.
func (g *generator) complete(ctx context.Context, r chat.Request) (chat.Reply, error) {
	reply, err := g.once(ctx, r)
	status, ok := errors.AsType[*chat.StatusError](err)
	if !ok || !slices.Contains([]int{500, 502, 504}, status.Status) {
		return reply, err
	}
	select {
	case <-ctx.Done():
		return reply, err
	case <-time.After(retryAfter):
		return g.once(ctx, r)
	}
}

func (g *generator) once(ctx context.Context, r chat.Request) (chat.Reply, error) {
	reply, err := g.client.Complete(ctx, r)
	if errors.Is(err, chat.ErrTooLong) { // it was not sent
		return reply, err
	}
	g.out.Requests++
	g.out.Masked += reply.Masked
	g.out.Usage.Prompt += reply.Usage.Prompt
	g.out.Usage.Completion += reply.Usage.Completion
	g.out.Usage.Cached += reply.Usage.Cached
	g.out.Finish = append(g.out.Finish, reply.FinishReason)
	return reply, err
}

// request returns the request for a part: the task, what was delivered so far, and where to go on.
func (g *generator) request(part int) chat.Request {
	r := chat.Request{Stream: true}
	if g.options.System != "" {
		r.Messages = append(r.Messages, chat.Message{Role: "system", Content: g.options.System})
	}
	prompt := g.options.Prompt
	if part > 1 && len(g.doc.Text()) > 0 {
		prompt += "\n\n" + g.doc.Answer(continuation.Result{Verdict: continuation.Continue, State: g.doc.State()},
			continuation.Names{})
		if g.refused != "" {
			prompt += "\nWhat you wrote last was not joined: " + g.refused + ". Write only the document's text."
		}
	}
	r.Messages = append(r.Messages, chat.Message{Role: "user", Content: prompt})
	if part > 1 && g.client.Prefills() && g.doc.State() == continuation.Cut {
		r.Messages = append(r.Messages, chat.Message{Role: "assistant", Content: g.doc.Restart()})
		r.Prefill = true
	}
	return r
}
