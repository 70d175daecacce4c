package scan

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"path"
	"strings"

	"github.com/gabriel-vasile/mimetype"

	"github.com/mcp-funnel/mcp-funnel/base/runes"
	"github.com/mcp-funnel/mcp-funnel/kinds"
	"github.com/mcp-funnel/mcp-funnel/kinds/outline"
	"github.com/mcp-funnel/mcp-funnel/system/tree"
	"github.com/mcp-funnel/mcp-funnel/text/content"
)

const (
	bufferSize = 256 << 10
	sniffed    = 8 << 10 // bytes by which text is distinguished from binary, and a generated file from a written one
	sampleSize = 4 << 10 // bytes of a text whose tokens are counted
	// The first texts of a scan are sampled, then every 64th: up to some 300 of 15,000.
	sampleFirst, sampleEvery = 32, 64
)

// work looks at files until there are no more.
func (s *scanner) work() {
	buf := make([]byte, bufferSize)
	for j := range s.jobs {
		if s.ctx.Err() == nil {
			s.look(j, buf)
		}
		j.entry.In.Release()
	}
}

func (f *File) unread(err error) {
	f.Error = content.ClipBytes(err.Error(), 200)
	f.Category, f.MIME = Other, "application/octet-stream"
}

func (s *scanner) mark(e tree.Entry) (tree.Mark, error) {
	if e.In != nil {
		return e.In.Mark(e.Path)
	}
	at, err := s.root.Lstat(e.Path)
	if err != nil {
		return tree.Mark{}, err
	}
	return tree.MarkOf(at), nil
}

func (s *scanner) open(e tree.Entry) (tree.Opened, error) {
	if e.In != nil {
		return e.In.Open(e.Path)
	}
	return s.root.Opened(e.Path)
}

// look fills in what the content of a file tells.
func (s *scanner) look(j job, buf []byte) {
	f := j.file
	var err error
	if f.Mark, err = s.mark(j.entry); err != nil {
		f.unread(err)
		return
	}
	if last, ok := s.unchanged(f.Path, f.Mark); ok {
		*f = last
		return
	}
	s.looked.Add(1)
	file, err := s.open(j.entry)
	if err != nil {
		f.unread(err)
		return
	}
	defer func() { _ = file.Close() }()
	var sum hash.Hash
	if s.o.Hash {
		sum = sha256.New()
	}
	var lines runes.LineCounter
	for first := true; ; first = false {
		n, err := io.ReadFull(&file, buf)
		end := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
		if first {
			s.classify(f, buf[:n], end || int64(n) >= f.Size, j.number)
		}
		_, _ = lines.Write(buf[:n]) // never fails
		if sum != nil {
			sum.Write(buf[:n])
		}
		if err != nil && !end {
			f.Error = content.ClipBytes(err.Error(), 200)
		}
		if err != nil {
			break
		}
		if s.ctx.Err() != nil {
			return
		}
	}
	if f.Lines = lines.Lines(); sum != nil {
		f.Hash = hex.EncodeToString(sum.Sum(nil))
	}
}

// mayBeGenerated is a cheap test that fails for most files that are not.
func mayBeGenerated(head []byte) bool {
	return bytes.Contains(head, []byte("enerated")) || bytes.Contains(head, []byte("DO NOT EDIT"))
}

// classify fills in what the first bytes of a file tell.
func (s *scanner) classify(f *File, head []byte, whole bool, number int) {
	prefix := head[:min(len(head), sniffed)]
	f.Binary = content.Detect(prefix, whole && len(prefix) == len(head)) == content.NoText
	if f.Binary {
		f.MIME, _, _ = strings.Cut(mimetype.Detect(prefix).String(), ";")
		f.Category = categoryOf(f)
		return
	}
	kind := content.Text
	if Extension(f.Path) == "(none)" { // an extension says more than what the text looks like
		kind = kinds.Sniff(prefix, whole && len(prefix) == len(head), path.Base(f.Path))
	}
	if f.Language = kinds.Language(f.Path, prefix, kind); f.Language == "Text" {
		f.Language = ""
	}
	f.Generated = mayBeGenerated(prefix) && outline.IsGenerated(prefix)
	f.MIME = cmp.Or(mimes[f.Language], "text/plain")
	f.Category = categoryOf(f)
	if s.o.Count != nil && (number < sampleFirst || number%sampleEvery == 0) {
		sample := head[:min(len(head), sampleSize)]
		f.Sampled, f.SampledTokens = int64(len(sample)), int64(s.o.Count(string(sample)))
	}
}
