package kinds

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"image"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"
	"slices"
	"strconv"

	"github.com/mcp-funnel/mcp-funnel/kinds/digest"
	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// Binary is data that is not text in any encoding.
var Binary = &Kind{
	Name:       content.Binary,
	Ext:        "bin",
	MIME:       binaryMIME,
	Sniff:      func(s *Sample) bool { return s.binary },
	Summarizer: func(_ string, prefix []byte) digest.Summarizer { return newBinary(prefix) },
	Records: func(context.Context, io.Reader, func(int64, content.Span) bool) error {
		return errors.New("a binary has no records")
	},
	RecordIs: "none",
	Shares:   Shares{Says: 0.3, Shape: 0.3, Body: 0.5},
}

var binaryMIME = detected("application/octet-stream")

// binaryShown is the number of leading bytes shown.
const binaryShown = 32

// opaque summarises binary data: type, size, first bytes.
type opaque struct {
	media string
	image string // width and height of an image, if known
	start []byte
	size  int64
}

func newBinary(prefix []byte) *opaque {
	o := &opaque{media: binaryMIME(prefix)}
	for _, config := range []func(io.Reader) (image.Config, error){png.DecodeConfig, jpeg.DecodeConfig, gif.DecodeConfig} {
		if c, err := config(bytes.NewReader(prefix)); err == nil {
			o.image = strconv.Itoa(c.Width) + "x" + strconv.Itoa(c.Height) + " pixels"
		}
	}
	return o
}

func (o *opaque) Add(p []byte) {
	o.size += int64(len(p))
	if room := binaryShown - len(o.start); room > 0 {
		o.start = append(o.start, p[:min(room, len(p))]...)
	}
}

func (o *opaque) Finish(s *digest.Summary) {
	s.Media = o.media
	s.Total = []string{o.media, content.Plural(o.size, "byte", "bytes")}
	if o.image != "" {
		s.Total = append(s.Total, o.image)
	}
	if len(o.start) > 0 {
		line := "first bytes:"
		for pair := range slices.Chunk(o.start, 2) {
			line += " " + hex.EncodeToString(pair)
		}
		s.Body = []string{line}
	}
}
