package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcp-funnel/mcp-funnel/base/panics"
	"github.com/mcp-funnel/mcp-funnel/system/jsonrpc"
	"github.com/mcp-funnel/mcp-funnel/system/mcpclient"
	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/tools"
)

// exchange is one call of a tool, and the questions that the server asks meanwhile. It can outlive a run of the tool: a
// client of the stateless protocol answers by repeating its call, which joins the exchange. Nothing is sent twice.
type exchange struct {
	ctx       context.Context // ends with the exchange
	cancel    context.CancelFunc
	questions chan *question
	done      chan struct{} // closed when result and err are set
	result    json.RawMessage
	err       error
	asked     []*question // questions so far; only the attending run uses them
	expiry    *time.Timer // cancels the exchange if no run attends it
	cancelled atomic.Bool // by its client, or because nobody repeated the call

	mu         sync.Mutex
	out        tools.Output // output of the attending run; nil: no run attends
	fractional bool         // see progress
}

// question is a question of the server and the channel for its reply.
type question struct {
	tools.Question
	ctx      context.Context // ends with the server's request
	reply    chan reply
	answered bool
}

type reply struct {
	result json.RawMessage
	err    error
}

const (
	unattended = time.Minute // how long an exchange waits for a repeated call
	maxOpen    = 64          // concurrent calls of one server
	maxRounds  = 10          // rounds of questions in one request of the stateless protocol
)

// call sends a call of a tool to the server and returns its result. key names the call: its tool and arguments.
func (s *Server) call(
	ctx context.Context, key string, params json.RawMessage, p connection, modern bool, in tools.Input, out tools.Output,
) (json.RawMessage, error) {
	s.mu.Lock()
	var e *exchange
	if all := s.waiting[key]; in.Repeated && len(all) > 0 {
		e = all[0]
		s.forget(key, e)
	}
	switch {
	case e != nil:
		e.expiry.Stop()
	case in.Repeated:
		s.mu.Unlock()
		return nil, fmt.Errorf("the call that this one repeats has ended: the server waits %s for a reply. It was not sent again; "+
			"repeat the call without requestState", unattended)
	case len(s.open) >= maxOpen:
		s.mu.Unlock()
		return nil, fmt.Errorf("busy: %d calls of the server %s are running; wait for one to end and try again",
			maxOpen, s.options.Name)
	default:
		e = &exchange{questions: make(chan *question), done: make(chan struct{}), out: out}
		e.ctx, e.cancel = context.WithCancel(s.life)
		if modern && s.options.Remote != nil {
			tool := definition(s.record.Approved, nameOf(params))
			e.ctx = mcpclient.WithHeaders(e.ctx, mcpclient.ParamHeaders(tool, params))
		}
		s.open = append(s.open, e)
		go s.hold(e, p, modern, params)
	}
	s.mu.Unlock()
	e.attend(out)
	defer e.attend(nil)
	result, err := e.attended(ctx, in.Ask)
	if !errors.Is(err, tools.ErrAsked) {
		e.cancelled.Store(ctx.Err() != nil)
		e.cancel()
		return result, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting[key] = append(s.waiting[key], e)
	e.expiry = time.AfterFunc(unattended, func() { s.expire(key, e) })
	return result, err
}

// expire ends an exchange that waits, unless a repeated call has just joined it.
func (s *Server) expire(key string, e *exchange) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.forget(key, e) {
		e.cancelled.Store(true)
		e.cancel()
	}
}

// forget removes an exchange from those that wait, and reports whether it was one. The caller holds the lock.
func (s *Server) forget(key string, e *exchange) bool {
	all := s.waiting[key]
	at := slices.Index(all, e)
	if at < 0 {
		return false
	}
	if s.waiting[key] = slices.Delete(all, at, at+1); len(s.waiting[key]) == 0 {
		delete(s.waiting, key)
	}
	return true
}

// hold sends the call, stores its result in the exchange, and ends the exchange.
func (s *Server) hold(e *exchange, p connection, modern bool, params json.RawMessage) {
	panics.Into(&e.err, func() {
		e.result, e.err = s.send(e.ctx, p, modern, "tools/call", params, e.progress, e.ask)
	})
	s.mu.Lock()
	s.open = slices.DeleteFunc(s.open, func(o *exchange) bool { return o == e })
	s.mu.Unlock()
	close(e.done)
	e.cancel()
}

func (e *exchange) attend(out tools.Output) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.out = out
}

func (e *exchange) isAttended() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.out != nil
}

// progress passes progress on. [tools.Output.Progress] takes integers: if the total is 1, and from the first fraction
// on, values are multiplied by 100, so that they keep growing.
func (e *exchange) progress(params json.RawMessage) {
	var at struct {
		Progress float64 `json:"progress"`
		Total    float64 `json:"total"`
		Message  string  `json:"message"`
	}
	const most = 1 << 53
	if json.Unmarshal(params, &at) != nil || math.Abs(at.Progress) > most || math.Abs(at.Total) > most {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if at.Total == 1 || at.Progress != math.Trunc(at.Progress) || at.Total != math.Trunc(at.Total) {
		e.fractional = true
	}
	if e.fractional {
		at.Progress, at.Total = math.Round(100*at.Progress), math.Round(100*at.Total)
	}
	if e.out != nil {
		e.out.Progress(int64(at.Progress), int64(at.Total), at.Message)
	}
}

// ask passes a question of the server to the attending run, and returns the reply of that run's client.
func (e *exchange) ask(ctx context.Context, q tools.Question) (json.RawMessage, error) {
	one := &question{Question: q, ctx: ctx, reply: make(chan reply, 1)}
	select {
	case e.questions <- one:
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-e.done:
		return nil, errNobody
	}
	select {
	case r := <-one.reply:
		return r.result, r.err
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-e.done:
		return nil, errNobody
	}
}

var errNobody = errors.New("the call that the question belongs to has ended")

// attended passes the server's questions to ask, in their order, and returns the result of the call. A repeated run
// starts with the first question again: ask answers the earlier ones at once.
func (e *exchange) attended(ctx context.Context, ask tools.Asker) (json.RawMessage, error) {
	for i := 0; ; i++ {
		if i == len(e.asked) {
			select {
			case q := <-e.questions:
				e.asked = append(e.asked, q)
			case <-e.done:
				return e.result, e.err
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		q := e.asked[i]
		asking, stop := context.WithCancel(ctx)
		if !q.answered { // the context of an answered question has ended
			defer context.AfterFunc(e.ctx, stop)()
			defer context.AfterFunc(q.ctx, stop)()
		}
		result, err := ask(asking, q.Question)
		stop()
		if errors.Is(err, tools.ErrAsked) {
			return nil, err
		}
		if !q.answered {
			q.answered = true
			q.reply <- reply{result, err}
		}
	}
}

// send sends a request to the server and returns its result. If the result of a server of the stateless protocol is a
// question, send answers it by ask and repeats the request; if ask is nil, send returns the question.
func (s *Server) send(
	ctx context.Context, p connection, modern bool, method string, params json.RawMessage,
	progress func(json.RawMessage), ask tools.Asker,
) (json.RawMessage, error) {
	for range maxRounds {
		sent := params
		if modern {
			var err error
			if sent, err = s.declared(params); err != nil {
				return nil, err
			}
		}
		raw, err := p.Call(ctx, method, sent, progress)
		if err != nil || !modern || ask == nil || !bytes.Contains(raw, []byte(`"input_required"`)) {
			return raw, err
		}
		var r struct {
			Type     string                    `json:"resultType"`
			Requests map[string]tools.Question `json:"inputRequests"`
			State    json.RawMessage           `json:"requestState"`
		}
		if err := json.Unmarshal(raw, &r); err != nil || r.Type != "input_required" {
			return raw, nil //nolint:nilerr // another result that contains the word
		}
		responses := map[string]json.RawMessage{}
		for _, name := range slices.Sorted(maps.Keys(r.Requests)) {
			if responses[name], err = ask(ctx, s.options.named(r.Requests[name])); err != nil {
				return nil, err
			}
		}
		if params, err = answering(params, responses, r.State); err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("the server has asked in %d rounds, and still has no result", maxRounds)
}

// answering adds the replies to the params of a request.
func answering(
	params json.RawMessage, responses map[string]json.RawMessage, state json.RawMessage,
) (json.RawMessage, error) {
	all := map[string]json.RawMessage{}
	replies, err := json.Marshal(responses)
	if err = errors.Join(err, json.Unmarshal(params, &all)); err != nil {
		return nil, err
	}
	if all["inputResponses"] = replies; state != nil {
		all["requestState"] = state
	}
	return json.Marshal(all)
}

// named puts the server's name before the message of a question if there are several servers, because the client knows
// only this one. It makes hidden characters of the message visible.
func (o *Options) named(q tools.Question) tools.Question {
	message := memberOf(q.Params, "message")
	clean := content.Visible(message, false)
	if o.many {
		clean = o.Name + ": " + clean
	}
	if message == "" || clean == message {
		return q
	}
	if params, err := withMember(q.Params, "message", clean); err == nil {
		q.Params = params
	}
	return q
}

// asking returns the exchange through which the client is asked: the latest that a run attends, else the latest; nil if
// there is none.
func (s *Server) asking() (chosen *exchange) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.open {
		if attends := e.isAttended(); chosen == nil || attends || !chosen.isAttended() {
			chosen = e
		}
	}
	return chosen
}

// answer passes a request of the server to the client. A client without sessions is asked through an open call. The
// request does not say which call it belongs to: if the chosen one ends, another asks.
func (s *Server) answer(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	q := s.options.named(tools.Question{Method: method, Params: params})
	if method != "roots/list" {
		var stop func()
		ctx, stop = s.whileWanted(ctx)
		defer stop()
	}
	ask := s.client.Ask
	var err error
	var result json.RawMessage
	for ask == nil {
		e := s.asking()
		if e == nil {
			ask = tools.NoClient
			break
		}
		if result, err = e.ask(ctx, q); !errors.Is(err, errNobody) {
			return result, err
		}
	}
	result, err = ask(ctx, q)
	if err != nil && context.Cause(ctx) == errNobody { //nolint:errorlint // the cause itself
		err = errNobody
	}
	if lacks := (*tools.CapabilityError)(nil); errors.As(err, &lacks) {
		return nil, jsonrpc.Faultf(mcpclient.MethodNotFound, "%s", lacks)
	}
	return result, err
}

// whileWanted returns a context that also ends when all calls that are open now have ended, and one was cancelled: the
// question may belong to that one.
func (s *Server) whileWanted(ctx context.Context) (wanted context.Context, stop func()) {
	wanted, end := context.WithCancelCause(ctx)
	s.mu.Lock()
	open := slices.Clone(s.open)
	s.mu.Unlock()
	var left atomic.Int32
	left.Store(int32(len(open))) //nolint:gosec // at most maxOpen
	var stops []func() bool
	for _, e := range open {
		stops = append(stops, context.AfterFunc(e.ctx, func() {
			if left.Add(-1) == 0 && slices.ContainsFunc(open, func(e *exchange) bool { return e.cancelled.Load() }) {
				end(errNobody)
			}
		}))
	}
	return wanted, func() {
		for _, one := range stops {
			one()
		}
		end(nil)
	}
}
