package capture

import (
	"bytes"
	"cmp"
	"io"

	"github.com/mcp-funnel/mcp-funnel/base/panics"
	"github.com/mcp-funnel/mcp-funnel/base/runes"
	"github.com/mcp-funnel/mcp-funnel/kinds"
	"github.com/mcp-funnel/mcp-funnel/kinds/digest"
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/text/secrets"
	"github.com/mcp-funnel/mcp-funnel/text/tokens"
)

// smallOutput is the size below which counting tokens takes less time than starting a goroutine. Most outputs of that
// size are shown whole, so their summary is made only if a caller needs it.
const smallOutput = 8 << 10

// Options of a Writer.
type Options struct {
	HeadLines, TailLines int
	Hold                 int   // bytes of the beginning that are held, in case the output is shown whole or recorded late
	Expected             int64 // bytes of the output; 0: unknown
	Counter              *tokens.Counter
	Mask                 *secrets.Masker // of what is shown; nil: nothing is masked
	Whole                io.Writer       // gets all of the text with its secrets masked; its errors are ignored; nil: none
	Redact               bool            // secrets are masked in the recording too
}

// Writer passes every byte of an output once, in order, to the edges, the digest, the token count and the recording. It
// is not safe for concurrent use.
type Writer struct {
	name     string // of the file, if the output is one: a hint for its kind
	edges    *edges
	digest   *kinds.Digest // made for the first chunk
	pending  bool          // the digest has read nothing yet: all of the output is in hold
	tally    *tokens.Tally
	recorder recorder
	hold     hold

	mask       *secrets.Split
	redact     bool
	whole      io.Writer
	shownEdges *edges // of the masked text, from the first secret on; nil: nothing was masked

	buf      []byte // bytes not processed yet, at most the size of the block, or chunkSize
	block    *block // the block that buf is in; nil: buf has memory of its own
	pool     blockPool
	digester *asyncConsumer // nil: the caller's goroutine has processed everything so far
	saver    *asyncConsumer // records and counts tokens; nil if digester is

	streams *Streams // nil: the output has one stream
	news    *News    // nil: nothing was shown before

	encoding content.Encoding // of the first chunk
	decoder  io.WriteCloser   // to UTF-8; nil: the bytes are the text
	decoded  []byte           // text that was not processed yet
	encoded  int64            // bytes that were decoded
	started  bool             // a chunk was processed
}

// NewWriter returns a Writer that records nothing until [Writer.RecordWith] is called.
func NewWriter(o Options) *Writer {
	w := &Writer{
		mask:   o.Mask.Split(),
		redact: o.Redact,
		whole:  o.Whole,
		edges:  newEdges(o.HeadLines, o.TailLines),
		tally:  o.Counter.Tally(),
		hold:   hold{limit: o.Hold},
	}
	if o.Expected > tokens.ExactLimit {
		w.tally.Estimate(1)
	}
	return w
}

// SetName sets the name of the file, if the output is one: a hint for its kind.
func (w *Writer) SetName(name string) { w.name = name }

// RecordWith sets how a recording is opened. That happens when the output is longer than a chunk, or at
// [Captured.Record].
func (w *Writer) RecordWith(open func() (*observations.Recording, error)) { w.recorder.open = open }

// Discard deletes the recording; the output is not recorded.
func (w *Writer) Discard() {
	w.wait()
	w.recorder.discard()
}

// Cut says that n bytes of the output were cut and never reach Write: the recording counts them as dropped.
func (w *Writer) Cut(n int64) { w.recorder.cut += n }

// Begun reports whether anything was written.
func (w *Writer) Begun() bool { return w.started || len(w.buf) > 0 }

// SplitStreams makes the writer remember which bytes are standard error. It must be called before the first Write.
func (w *Writer) SplitStreams() { w.streams = &Streams{} }

// WriteStderr is Write for standard error.
func (w *Writer) WriteStderr(b []byte) (int, error) { return w.write(b, true) }

// Write never fails. If a consumer panicked, Write panics with the same value.
func (w *Writer) Write(b []byte) (int, error) { return w.write(b, false) }

func (w *Writer) write(b []byte, stderr bool) (int, error) {
	written := len(b)
	if w.streams != nil {
		w.streams.add(b, stderr)
		w.mask.Add(len(b), stderr)
	}
	for len(b) > 0 {
		if w.block == nil && len(w.buf)+len(b) > chunkSize/16 {
			w.block = w.pool.acquire()
			w.buf = append(w.block.data, w.buf...)
		}
		room := chunkSize
		if w.block != nil {
			room = cap(w.block.data)
		}
		n := min(room-len(w.buf), len(b))
		w.buf = append(w.buf, b[:n]...)
		b = b[n:]
		if len(w.buf) == room {
			w.flush(false)
			if p := w.failure(); p != nil {
				panic(p)
			}
		}
	}
	return written, nil
}

// flush processes the buffer without the incomplete char at its end, and all of it if it is the last.
func (w *Writer) flush(final bool) {
	n := len(w.buf)
	if !final {
		n = runes.Complete(w.buf)
		w.StartRecording()
	}
	b := w.buf[:n]
	if !w.started && n > 0 {
		w.started = true
		w.digest = kinds.New(w.name)
		if w.encoding = content.Detect(b, final); w.encoding == content.NoText {
			w.tally.Estimate(16) // of little use, and expensive to count
		}
		if w.decoder = w.encoding.Writer((*decoderSink)(w)); w.decoder != nil {
			w.mask.Join() // the streams are known by offsets before decoding
		}
	}
	if w.decoder == nil {
		n = w.process(b, final)
	} else {
		w.decode(b, final)
	}
	if !final {
		w.keepRest(n)
	}
}

// keepRest removes the first n bytes of the buffer. If a consumer may still read the current block, the rest moves to
// another one.
func (w *Writer) keepRest(n int) {
	rest := w.buf[n:]
	if w.digester == nil {
		w.buf = w.buf[:copy(w.buf, rest)]
		return
	}
	old := w.block
	if w.edges.bytes > longOutput {
		w.pool.blockSize = longChunkSize
	}
	w.block = w.pool.acquire()
	w.buf = append(w.block.data, rest...)
	w.pool.release(old)
}

// decode processes the text that b decodes to, and records the bytes of b unless secrets are redacted.
func (w *Writer) decode(b []byte, final bool) {
	w.encoded += int64(len(b))
	if !w.redact {
		w.recorder.write(b)
	}
	w.hold.addEncoded(b)
	_, _ = w.decoder.Write(b) // its sink never fails
	if final {
		_ = w.decoder.Close()
	}
	n := w.process(w.decoded, final)
	w.decoded = w.decoded[:copy(w.decoded, w.decoded[n:])]
}

// decoderSink collects the text that the decoder of a Writer writes, at most three bytes for each byte of a chunk.
type decoderSink Writer

func (s *decoderSink) Write(b []byte) (int, error) {
	s.decoded = append(s.decoded, b...)
	return len(b), nil
}

// process passes on the beginning of a text, up to where a secret could begin that ends after the text, and returns its
// length. The counts are of the text as it is; what may be shown has its secrets masked. Without a secret both are the
// same bytes.
func (w *Writer) process(text []byte, final bool) int {
	n, shown := w.mask.Next(text, final)
	if n == 0 {
		return 0
	}
	b := text[:n]
	if w.redact {
		b = shown
	}
	if w.shownEdges == nil && !sameBytes(b, shown) {
		w.shownEdges = w.edges.clone()
		w.hold.forked, w.hold.plain = true, bytes.Clone(w.hold.shown)
	}
	if w.shownEdges != nil {
		_, _ = w.shownEdges.Write(shown)
	}
	if w.whole != nil {
		_, _ = w.whole.Write(shown)
	}
	w.dispatch(b, shown, final)
	_, _ = w.edges.Write(b)
	w.hold.add(b, shown)
	if w.news != nil {
		w.news.add(shown)
	}
	return n
}

// dispatch records and counts b, and summarizes shown: in two goroutines if more may follow.
func (w *Writer) dispatch(b, shown []byte, final bool) {
	switch {
	case w.digester != nil:
	case final || w.decoder != nil: // decoded text is in no block
		w.recordAndCount(b)
		if w.pending = final && w.edges.bytes == 0 && len(shown) < min(smallOutput, w.hold.limit); !w.pending {
			_, _ = w.digest.Write(shown)
		}
		return
	default:
		w.saver = newAsyncConsumer(&w.pool, w.recordAndCount)
		w.digester = newAsyncConsumer(&w.pool, func(text []byte) { _, _ = w.digest.Write(text) })
	}
	w.saver.enqueue(chunkRef{b, w.block})
	w.digester.enqueue(chunkRef{shown, w.block})
}

func (w *Writer) recordAndCount(b []byte) {
	if w.decoder == nil || w.redact {
		w.recorder.write(b)
	}
	_, _ = w.tally.Write(b)
}

// wait returns when the consumers are idle. Then the caller's goroutine may read all they have written.
func (w *Writer) wait() {
	if w.digester != nil {
		w.saver.wait()
		w.digester.wait()
	}
}

// failure returns the panic of a consumer, nil if none panicked.
func (w *Writer) failure() error { return cmp.Or(w.saver.failure(), w.digester.failure()) }

// sameBytes reports whether two slices are the same memory.
func sameBytes(a, b []byte) bool { return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0]) }

// StartRecording opens the recording now, with what was written so far. If it is called before the first Write, the
// output is never held for its recording: its masked form, which is held too, may be longer than the output.
func (w *Writer) StartRecording() {
	if w.recorder.tried || w.recorder.open == nil {
		return
	}
	w.wait()
	w.recorder.start(w.started, w.hold.overflow, w.hold.asStored(w.decoder != nil, w.redact))
}

// Close returns what was captured. Nothing may be written after it.
func (w *Writer) Close() *Captured {
	w.flush(true)
	w.wait()
	w.pool.release(w.block)
	w.pool.close()
	w.buf, w.block = nil, nil
	failure := w.failure()
	if failure != nil { // some of the output may be missing
		w.recorder.discard()
		w.recorder.err = ErrDefect
	}
	size := w.edges.bytes
	if w.decoder != nil && !w.redact {
		size = w.encoded
	}
	total := w.countRest()
	w.edges.close()
	shown := w.edges
	if w.shownEdges != nil {
		w.shownEdges.close()
		shown = w.shownEdges
	}
	c := &Captured{
		Lines: w.edges.lines, Chars: w.edges.chars, LongestLine: w.edges.longest, Bytes: size,
		Head: shown.head, Tail: shown.lastLines(),
		Masked:   w.mask.Found(),
		Encoding: w.encoding, Decoded: w.decoder != nil, Redacted: w.redact,
		Failure:  failure,
		held:     w.hold,
		sum:      digest.Summary{Kind: content.Text, Records: -1, Matches: -1, Files: -1},
		recorder: &w.recorder,
	}
	w.closeNews(c)
	w.splitStreams(c)
	w.summarize(c)
	c.Tokens = total()
	w.recorder.dropCut()
	return c
}

// splitStreams adds the streams to c. If both wrote, the digest of both is replaced by that of standard output.
func (w *Writer) splitStreams(c *Captured) {
	s := w.streams
	if s == nil || c.Failure != nil || w.decoder != nil || w.redact {
		return // offsets of what was written are not those of what is stored
	}
	c.Streams = *s
	if !s.Mixed() {
		return
	}
	read := w.hold.plainReader()
	if r := w.recorder.recording; r != nil {
		read = r
	} else if w.hold.overflow {
		return
	}
	d, mask := kinds.New(w.name), w.mask.Again()
	var rest []byte
	pass := func(b []byte, final bool) {
		rest = append(rest, b...)
		n, shown := mask.Next(rest, final)
		_, _ = d.Write(shown)
		rest = rest[:copy(rest, rest[n:])]
	}
	buf := make([]byte, chunkSize)
	s.stdout(func(from, to int64) {
		for from < to {
			n, _ := read.ReadAt(buf[:min(int64(len(buf)), to-from)], from)
			if n == 0 {
				return
			}
			pass(buf[:n], false)
			from += int64(n)
		}
	})
	pass(nil, true)
	w.digest, w.pending = d, false
}

// summarize completes the summary of c, or leaves that to its first use.
func (w *Writer) summarize(c *Captured) {
	switch {
	case w.digest == nil || c.Failure != nil:
	case w.pending:
		c.sum.Kind, c.digest = kinds.Sniff(w.hold.shown, true, w.name), w.digest
		if c.JSON() { // its matches are reported even if it is shown whole
			c.Summary()
		}
	default:
		c.sum = w.digest.Close()
	}
}

// countRest counts the last tokens, in a goroutine if there are many. The function it returns waits for the total.
func (w *Writer) countRest() func() tokens.Total {
	var total tokens.Total
	if w.edges.bytes < smallOutput {
		total = w.tally.Total()
		return func() tokens.Total { return total }
	}
	var failure error
	done := make(chan struct{})
	go func() {
		defer close(done)
		panics.Into(&failure, func() { total = w.tally.Total() })
	}()
	return func() tokens.Total {
		<-done
		_ = panics.Again(failure)
		return total
	}
}
