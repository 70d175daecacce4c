package funnel

import (
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"strings"
	"syscall"

	"github.com/mcp-funnel/mcp-funnel/funnel/capture"
	"github.com/mcp-funnel/mcp-funnel/funnel/text"
	"github.com/mcp-funnel/mcp-funnel/kinds"
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/tools"
)

// newRecording opens the recording of the output.
func (c *call) newRecording() (*observations.Recording, error) {
	if c.request.Keep == Never {
		return nil, errors.New("keeping was not asked for")
	}
	return c.openRecording(cmp.Or(c.request.Name, c.output.name), c.request.Args, c.output.origin)
}

// openRecording opens a recording of this call.
func (c *call) openRecording(name string, args json.RawMessage, origin []string) (*observations.Recording, error) {
	o := c.options
	switch {
	case o.Store == nil && o.NoStore != nil:
		return nil, o.NoStore
	case o.Store == nil:
		return nil, errors.New("there is no store")
	}
	if o.Redact {
		args = o.Mask.JSON(args)
		name, _ = o.Mask.String(name)
	}
	return o.Store.Record(observations.Provenance{
		Owner:  c.request.Who.Owner,
		Tool:   c.request.Tool.Name,
		Name:   name,
		Args:   args,
		Origin: origin,
	})
}

// storeText implements [tools.Output.Store].
func (c *call) storeText(s tools.Stored) (string, error) {
	args, err := content.PlainJSON(s.Args)
	if err != nil {
		return "", err
	}
	w := capture.NewWriter(capture.Options{
		Hold: len(s.Text), Counter: c.options.Counter, Mask: c.options.Mask, Redact: c.options.Redact,
	})
	w.RecordWith(func() (*observations.Recording, error) { return c.openRecording(s.Name, args, s.From) })
	w.StartRecording()
	_, _ = w.Write(s.Text) // never fails
	if s.Long != nil {
		_, err = io.Copy(w, s.Long)
	}
	captured := w.Close()
	defer captured.Discard()
	if err != nil {
		return "", err
	}
	if s.Exact && c.options.Redact && captured.Masked > 0 {
		return "", errors.New("it has secrets, and this store masks them (--redact-store)")
	}
	rec, err := captured.Recording()
	if rec == nil {
		return "", errors.New(c.storeCause(err))
	}
	if rec.Dropped() > 0 {
		return "", errors.New(c.storeCause(rec.Err()))
	}
	stats := c.stats(captured, success)
	stats.State = s.State
	obs, err := rec.Commit(stats)
	if err != nil {
		c.logError("keep: a text could not be kept", "tool", c.request.Tool.Name, "error", err)
		return "", errors.New(c.storeCause(err))
	}
	return string(obs.ID), nil
}

// stats returns what is stored with an output.
func (c *call) stats(captured *capture.Captured, status string) observations.Stats {
	model, name := c.options.Counter.Model(), captured.Kind()
	return observations.Stats{
		Kind: string(name), Ext: kinds.Of(name).Ext,
		Lines: captured.Lines, Chars: captured.Chars, LongestLine: captured.LongestLine,
		Tokens: captured.Tokens.N, TokensMargin: captured.Tokens.Margin,
		Vocabulary: string(model.Encoding), Factor: model.Factor, FactorError: model.Error,
		Status: status,
	}
}

// commit stores the output with its receipt, unless it was stored already or could not be.
func (c *call) commit(status, receipt string) {
	rec, _ := c.captured.Recording()
	if rec == nil || c.observation != nil || c.keepErr != nil {
		return
	}
	if rec.Size() == 0 && rec.Dropped() > 0 {
		c.keepErr = rec.Err()
		return
	}
	if c.request.Complete && (status != success || rec.Dropped() > 0) {
		c.keepErr = cmp.Or(rec.Err(), errors.New("it is not complete"))
		return
	}
	receipt = c.reply.maskText(receipt)
	if c.redacted() {
		if c.output.counts == nil {
			c.output.counts = map[string]float64{}
		}
		c.output.counts["redacted"] = float64(c.captured.Masked)
	}
	stats := c.stats(c.captured, status)
	stats.Receipt, stats.Counts, stats.Stderr = receipt, c.output.counts, c.captured.Streams.Ranges()
	obs, err := rec.Commit(stats)
	if err != nil {
		c.keepErr = err
		c.logError("keep: the output could not be kept", "tool", c.request.Tool.Name, "error", err)
		return
	}
	c.observation = &obs
	c.supersede(obs)
	if c.output.stored != nil {
		c.output.stored(string(obs.ID))
	}
}

// supersede deletes the observation that the stored output replaces, unless it is pinned or has more; see
// [tools.Output.Answered].
func (c *call) supersede(by observations.Observation) {
	id, err := observations.ParseID(c.output.replaces)
	if err != nil { // the output replaces none
		return
	}
	old, err := c.options.Store.Stat(by.Owner, id)
	if err == nil && !old.Pinned && by.Dropped == 0 && by.Bytes >= old.Bytes {
		_ = c.options.Store.Replace(by.Owner, id, by.ID) // else it expires like others
	}
}

// redacted reports whether secrets were masked in the stored output.
func (c *call) redacted() bool { return c.captured.Redacted && c.captured.Masked > 0 }

// notKept returns why the output is not stored; "" if it is stored or can be read from its source.
func (c *call) notKept() string {
	rec, err := c.captured.Recording()
	switch {
	case c.output.source != "":
		return ""
	case c.keepErr != nil:
		return c.storeCause(c.keepErr)
	case rec == nil && c.output.paged:
		return "it stands in its source"
	case rec == nil:
		return c.storeCause(err)
	case rec.Size() == 0 && rec.Dropped() > 0:
		return c.storeCause(rec.Err())
	}
	return ""
}

// storeCause returns why an output was not stored. If the operating system refused, it says that the store is meant,
// and what to do; it names the store's directory to callers on this machine only.
func (c *call) storeCause(err error) string {
	cause, dir, happened := shortCause(err), "", "cannot be written to"
	advice := "; make it writable, or choose another with --store"
	var unopened *observations.OpenError
	var errno syscall.Errno
	var remote interface{ Short() string }
	switch {
	case errors.As(err, &remote):
		return cause
	case errors.As(err, &unopened):
		dir, happened, advice = unopened.Dir, "cannot be used", "; choose another with --store"
		if strings.Contains(cause, "--store") {
			advice = ""
		}
	case errors.Is(err, observations.ErrNoRoom), c.options.Store == nil, !errors.As(err, &errno):
		return cause
	default:
		dir = c.options.Store.Dir()
		if errors.Is(err, syscall.ENOSPC) {
			advice = "; free space on its disk, or choose another with --store"
		}
	}
	name := "the store"
	if c.options.SavedTo {
		name += " " + text.VisibleLine(content.ClipEnd(dir, 120), false)
	}
	return name + " " + happened + ": " + cause + advice
}

// pathWord matches a word that may be an absolute path.
var pathWord = content.Pattern(`(^|[\s"'(])(?:[A-Za-z]:)?[/\\][^\s:,;()]+`)

// shortCause returns in a few words why an output was not stored. It omits paths, which are for the operator and not
// for the model.
func shortCause(err error) string {
	var path *fs.PathError
	var link interface{ Unwrap() error }
	var errno syscall.Errno
	var remote interface{ Short() string } // without the names of hosts
	switch {
	case err == nil:
		return "unknown cause"
	case errors.As(err, &remote):
		return remote.Short()
	case errors.Is(err, observations.ErrNoRoom): // it names the limit, and no path
		return content.ClipBytes(strings.TrimPrefix(err.Error(), "not kept: "), 160)
	case errors.As(err, &errno):
		return errno.Error()
	case errors.As(err, &path):
		return shortCause(path.Err)
	case errors.As(err, &link) && strings.ContainsAny(err.Error(), `/\`):
		return shortCause(link.Unwrap())
	}
	return content.ClipBytes(text.VisibleLine(pathWord().ReplaceAllString(err.Error(), "$1…"), false), 160)
}

// places returns where the caller can read the stored output without a tool: the path of its file and the URL of a link;
// "" for none.
func (c *call) places() (file, link string) {
	o := c.observation
	if o == nil {
		return "", ""
	}
	if c.options.SavedTo {
		file = c.options.Store.SavedTo(*o)
	}
	if c.link == "" && c.options.Link != nil {
		c.link = c.options.Link(c.request.Who.Owner, o.ID)
	}
	return file, c.link
}
