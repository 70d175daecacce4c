package summary

import (
	"bytes"
	"encoding/hex"
	"image"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"
	"strconv"

	"github.com/mcp-funnel/mcp-funnel/internal/content"
)

// binaryShown is how many first bytes are shown.
const binaryShown = 32

// opaque summarises what is no text: its type and size.
type opaque struct {
	media string
	image string // its width and height, where known
	start []byte
	size  int64
}

func newBinary(prefix []byte, name string) *opaque {
	o := &opaque{media: content.Media(prefix, name)}
	for _, config := range []func(io.Reader) (image.Config, error){png.DecodeConfig, jpeg.DecodeConfig, gif.DecodeConfig} {
		if c, err := config(bytes.NewReader(prefix)); err == nil {
			o.image = strconv.Itoa(c.Width) + "x" + strconv.Itoa(c.Height) + " pixels"
		}
	}
	return o
}

func (o *opaque) write(p []byte) {
	o.size += int64(len(p))
	if room := binaryShown - len(o.start); room > 0 {
		o.start = append(o.start, p[:min(room, len(p))]...)
	}
}

func (o *opaque) close(s *Summary) {
	s.Media = o.media
	s.Total = []string{o.media, counted(o.size, "byte", "bytes")}
	if o.image != "" {
		s.Total = append(s.Total, o.image)
	}
	if len(o.start) > 0 {
		s.Body = []string{"first bytes: " + spaced(hex.EncodeToString(o.start))}
	}
}

// spaced puts a blank after each four hex digits.
func spaced(digits string) string {
	var b bytes.Buffer
	for i := 0; i < len(digits); i += 4 {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(digits[i:min(i+4, len(digits))])
	}
	return b.String()
}
