package extract

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/klippa-app/go-pdfium"
	pdferrors "github.com/klippa-app/go-pdfium/errors"
	"github.com/klippa-app/go-pdfium/requests"
	"github.com/klippa-app/go-pdfium/webassembly"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/mcp-funnel/mcp-funnel/base/panics"
)

const (
	pdfInstances   = 2    // documents at a time
	pdfMemoryPages = 4096 // of 64 KiB: 256 MiB for each document, three times as much while it grows
)

// engine is PDFium, compiled on first use. Compiling takes 4 s, or 0.1 s with a filled cacheDir.
// Only the current user may write to that directory: its files are executed.
var engine struct {
	mu       sync.Mutex
	cacheDir string
	ready    chan struct{} // nil before the first use; closed once pool or err is set
	pool     pdfium.Pool
	err      error
}

var errEngine = errors.New("PDFium cannot be started")

// pdfPool returns the pool of PDFium instances. Compilation continues in its goroutine if ctx ends first.
func pdfPool(ctx context.Context) (pdfium.Pool, error) {
	engine.mu.Lock()
	if engine.ready == nil {
		engine.ready = make(chan struct{})
		go func(cacheDir string) {
			defer close(engine.ready)
			panics.Into(&engine.err, func() { engine.pool, engine.err = webassembly.Init(pdfConfig(cacheDir)) })
		}(engine.cacheDir)
	}
	engine.mu.Unlock()
	select {
	case <-engine.ready:
		if engine.err != nil {
			return nil, fmt.Errorf("%w: %w", errEngine, engine.err)
		}
		return engine.pool, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// pdfConfig gives PDFium no files and no output. By default the library would mount the root directory and write to
// os.Stdout, which is the protocol stream of a server.
func pdfConfig(cacheDir string) webassembly.Config {
	runtime := wazero.NewRuntimeConfig().
		WithCoreFeatures(api.CoreFeaturesV2 | experimental.CoreFeaturesExceptionHandling).
		WithMemoryLimitPages(pdfMemoryPages).
		WithCloseOnContextDone(true) // a hostile document could loop; this makes PDFium slower by half
	if cacheDir != "" {
		if cache, err := wazero.NewCompilationCacheWithDir(cacheDir); err == nil {
			runtime = runtime.WithCompilationCache(cache)
		}
	}
	return webassembly.Config{
		MaxTotal:      pdfInstances,
		FSConfig:      wazero.NewFSConfig(),
		Stdout:        io.Discard,
		Stderr:        io.Discard,
		RuntimeConfig: runtime,
	}
}

// readPDF uses a new instance for each document, which takes 2 to 9 ms: a document that damages the memory of PDFium
// cannot affect the next one.
func readPDF(ctx context.Context, b *builder, r io.ReaderAt, size int64) error {
	pool, err := pdfPool(ctx)
	if err != nil {
		return err
	}
	in, err := pool.GetInstanceWithContext(ctx)
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = in.Kill() })
	defer func() {
		if stop() {
			_ = in.Close()
		}
	}()
	doc, err := in.OpenDocument(&requests.OpenDocument{
		FileReader: io.NewSectionReader(r, 0, size), FileReaderSize: size,
	})
	if errors.Is(err, pdferrors.ErrPassword) || errors.Is(err, pdferrors.ErrSecurity) {
		return encrypted("PDF with a user password")
	}
	if err != nil {
		return err
	}
	pages, err := in.FPDF_GetPageCount(&requests.FPDF_GetPageCount{Document: doc.Document})
	if err != nil {
		return err
	}
	p := pdfFile{in: in, doc: doc.Document, b: b, on: map[string]bool{}}
	blank, broken := 0, 0
	texts := make([]string, pages.PageCount)
	extras := make([][]extraLine, pages.PageCount)
	for i := range texts {
		texts[i], extras[i], err = p.page(i)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		switch {
		case errors.Is(err, pdferrors.ErrPage):
			broken++
		case err != nil:
			return fmt.Errorf("page %d: %w", i+1, err)
		case collapsed(texts[i]) == "" && len(extras[i]) == 0:
			blank++
		}
		if p.size += len(texts[i]); p.size > maxText {
			return fmt.Errorf("%w: more than %d bytes of text", ErrTooLarge, maxText)
		}
	}
	files, err := in.FPDFDoc_GetAttachmentCount(&requests.FPDFDoc_GetAttachmentCount{Document: doc.Document})
	if err == nil {
		b.missed("attached file", files.AttachmentCount)
	}
	d := newDivided(texts)
	for i, text := range texts {
		text, other := d.words(text)
		if len(other) > 0 {
			extras[i] = append(extras[i], extraLine{"other spellings", "spelled also: " + strings.Join(other, ", ")})
		}
		place := fmt.Sprintf("page %d", i+1)
		for line := range strings.Lines(text) {
			b.add(place, collapsed(line))
		}
		for _, x := range extras[i] {
			b.add(place+", "+x.place, collapsed(x.text))
		}
	}
	if blank+broken == pages.PageCount && broken < max(blank, 1) {
		return fmt.Errorf("%w (%s)", ErrNoText, count(blank, "page"))
	}
	if blank > 0 {
		b.note("%d of %s have no text", blank, count(pages.PageCount, "page"))
	}
	if broken > 0 {
		b.note("%d of %s cannot be read", broken, count(pages.PageCount, "page"))
	}
	return nil
}
