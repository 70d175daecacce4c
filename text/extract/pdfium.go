package extract

import (
	"bytes"
	"cmp"
	"context"
	_ "embed" // the module
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/mikelolasagasti/xz"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
	"golang.org/x/text/encoding/unicode"

	"github.com/mcp-funnel/mcp-funnel/base/panics"
)

const (
	pdfInstances   = 2    // documents at a time
	pdfMemoryPages = 4096 // of 64 KiB: 256 MiB for each document, three times as much while it grows
)

//go:generate sh -c "xz --check=crc32 --lzma2=preset=9e,dict=8MiB -c $(go list -f {{.Dir}} github.com/klippa-app/.../pdfium_wasm)/*.wasm >pdfium.wasm.xz"

// pdfiumModule is the WebAssembly module of go-pdfium, compressed. The functions of that library are not used: it links
// 500 of them and the module as it is, which makes the program 6 MB larger.
//
//go:embed pdfium.wasm.xz
var pdfiumModule []byte

// engine is PDFium, compiled on first use, which takes 4 s.
var engine = struct {
	start   sync.Once
	cache   wazero.CompilationCache // of tests; nil in the program
	ready   chan struct{}           // closed once module or err is set
	runtime wazero.Runtime
	module  wazero.CompiledModule
	err     error
	slots   chan struct{} // one for each instance
}{ready: make(chan struct{}), slots: make(chan struct{}, pdfInstances)}

var errEngine = errors.New("PDFium cannot be started")

func unpackModule() ([]byte, error) {
	r, err := xz.NewReader(bytes.NewReader(pdfiumModule), 8<<20)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}

// compilePDFium sets the module of the engine. An instance of it has no files, no input and no output.
func compilePDFium() error {
	wasm, err := unpackModule()
	if err != nil {
		return err
	}
	config := wazero.NewRuntimeConfig().
		WithCoreFeatures(api.CoreFeaturesV2 | experimental.CoreFeaturesExceptionHandling).
		WithMemoryLimitPages(pdfMemoryPages).
		WithCloseOnContextDone(true). // a hostile document could loop; this makes PDFium slower by half
		WithCompilationCache(engine.cache)
	ctx := context.Background()
	engine.runtime = wazero.NewRuntimeWithConfig(ctx, config)
	wasi_snapshot_preview1.MustInstantiate(ctx, engine.runtime)
	if engine.module, err = engine.runtime.CompileModule(ctx, wasm); err != nil {
		return err
	}
	env := engine.runtime.NewHostModuleBuilder("env")
	for _, f := range engine.module.ImportedFunctions() {
		from, name, _ := f.Import()
		call := api.GoModuleFunc(func(_ context.Context, _ api.Module, stack []uint64) { clear(stack) }) // has no effect
		switch {
		case from != "env":
			continue
		case name == "FPDF_FILEACCESS_CB":
			call = readBlock
		case !strings.HasSuffix(name, "_CB") && name != "emscripten_notify_memory_growth":
			return fmt.Errorf("the module needs an unknown function %s", name)
		}
		env.NewFunctionBuilder().WithGoModuleFunction(call, f.ParamTypes(), f.ResultTypes()).Export(name)
	}
	_, err = env.Instantiate(ctx)
	return err
}

// readBlock is the function by which PDFium reads a document: (any, offset, buffer, size) → 1 if the buffer is filled.
func readBlock(ctx context.Context, mod api.Module, stack []uint64) {
	block, ok := mod.Memory().Read(uint32(stack[2]), uint32(stack[3]))
	stack[0] = 0
	if r, is := ctx.Value(&engine).(io.ReaderAt); ok && is {
		if n, _ := r.ReadAt(block, int64(uint32(stack[1]))); n == len(block) {
			stack[0] = 1
		}
	}
}

// pdfium is an instance of PDFium. After a call that failed, the next ones do nothing, until failed is called.
type pdfium struct {
	ctx       context.Context
	mod       api.Module
	functions map[string]api.Function
	err       error
}

// newPDFium returns an instance that reads r. It waits for one of the pdfInstances. Compilation continues if ctx ends.
func newPDFium(ctx context.Context, r io.ReaderAt) (*pdfium, error) {
	engine.start.Do(func() {
		go func() {
			defer close(engine.ready)
			panics.Into(&engine.err, func() { engine.err = compilePDFium() })
		}()
	})
	select {
	case <-engine.ready:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if engine.err != nil {
		return nil, fmt.Errorf("%w: %w", errEngine, engine.err)
	}
	select {
	case engine.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	ctx = context.WithValue(ctx, &engine, r) // for readBlock
	mod, err := engine.runtime.InstantiateModule(ctx, engine.module,
		wazero.NewModuleConfig().WithName("").WithStartFunctions("_initialize"))
	if err != nil {
		<-engine.slots
		return nil, err
	}
	p := &pdfium{ctx: ctx, mod: mod, functions: map[string]api.Function{}}
	p.call("FPDF_InitLibrary")
	return p, nil
}

func (p *pdfium) close() {
	_ = p.mod.Close(p.ctx)
	<-engine.slots
}

// failed returns the error of the first call that failed since the last failed.
func (p *pdfium) failed() error {
	err := p.err
	p.err = nil
	return err
}

// call calls a function of PDFium and returns its result: 32 bits with a number, or with the handle of an object.
func (p *pdfium) call(name string, args ...uint64) uint64 {
	f := p.functions[name]
	if f == nil { // finding it takes 12 KB
		f = p.mod.ExportedFunction(name)
		p.functions[name] = f
	}
	var stack [8]uint64
	n := copy(stack[:], args)
	if p.err == nil {
		p.err = f.CallWithStack(p.ctx, stack[:max(n, 1)])
	}
	if p.err != nil {
		return 0
	}
	return uint64(uint32(stack[0]))
}

// buffer calls use with a buffer of PDFium's memory and returns the first bytes of it; use returns their number.
func (p *pdfium) buffer(size uint64, use func(at uint64) (n uint64)) []byte {
	at := p.call("malloc", size)
	if at == 0 {
		p.err = cmp.Or(p.err, errors.New("PDFium has no memory left"))
		return nil
	}
	n := min(use(at), size)
	view, _ := p.mod.Memory().Read(uint32(at), uint32(n))
	data := slices.Clone(view)
	p.call("free", at)
	return data
}

// bytes returns what a function writes to a buffer. The last two parameters of the function are the buffer and its
// length; if that is too short, the function only returns the length that it needs.
func (p *pdfium) bytes(name string, args ...uint64) []byte {
	args = append(args, 0, 0)
	size := p.call(name, args...)
	if size == 0 {
		return nil
	}
	return p.buffer(size, func(at uint64) uint64 {
		args[len(args)-2], args[len(args)-1] = at, size
		return p.call(name, args...)
	})
}

// text returns what bytes does, as a string.
func (p *pdfium) text(name string, args ...uint64) string { return fromUTF16(p.bytes(name, args...)) }

// fromUTF16 decodes little-endian UTF-16, without the 0 at its end.
func fromUTF16(b []byte) string {
	b, _ = unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM).NewDecoder().Bytes(b)
	return strings.TrimSuffix(string(b), "\x00")
}
