package fs

import (
	"fmt"
	"image"
	_ "image/gif" // registers the format
	_ "image/jpeg"
	_ "image/png"
	"io"
	"sync"

	_ "golang.org/x/image/webp"
)

// Limits of images. A client's API refuses a conversation with an image that it cannot take, and goes on refusing it:
// Anthropic's takes at most 8,000 pixels a side.
const (
	maxSide   = 8000
	maxPixels = 24 << 20 // 96 MiB in memory when decoded
)

// decoding is held while an image is decoded: several at once would need more memory than the server may use.
var decoding sync.Mutex

// imageFault returns why an image cannot be shown; "" if it can. It decodes the image to find out; of a GIF, the first
// frame.
func imageFault(r io.ReaderAt, size int64) string {
	c, _, err := image.DecodeConfig(io.NewSectionReader(r, 0, size))
	switch {
	case err != nil:
		return fmt.Sprintf("damaged (%v), so not shown as an image", err)
	case c.Width > maxSide || c.Height > maxSide:
		return fmt.Sprintf("%d × %d pixels: too large to show; an image may have at most %d a side", c.Width, c.Height, maxSide)
	case c.Width*c.Height > maxPixels:
		return fmt.Sprintf("%d × %d pixels: too large to show; an image may have at most %d in all", c.Width, c.Height, maxPixels)
	}
	decoding.Lock()
	defer decoding.Unlock()
	if _, _, err := image.Decode(io.NewSectionReader(r, 0, size)); err != nil {
		return fmt.Sprintf("damaged (%v), so not shown as an image", err)
	}
	return ""
}
