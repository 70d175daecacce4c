package extract

import (
	"bufio"
	"bytes"
	"compress/zlib"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode"

	"github.com/go-pdf/fpdf"
	"github.com/tetratelabs/wazero"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

// TestMain stores compiled code for the other runs of these tests.
func TestMain(m *testing.M) {
	if dir, err := os.UserCacheDir(); err == nil {
		// wazero executes what is in that directory
		engine.cache, _ = wazero.NewCompilationCacheWithDir(filepath.Join(dir, "mcp-funnel-test", "pdfium"))
	}
	os.Exit(m.Run())
}

// pdfOf returns a PDF with a page for each text. A page of "" has a picture.
func pdfOf(t testing.TB, change func(*fpdf.Fpdf), pages ...string) []byte {
	t.Helper()
	f := fpdf.New("P", "mm", "A4", "")
	f.SetFont("Helvetica", "", 12)
	if change != nil {
		change(f)
	}
	for _, text := range pages {
		f.AddPage()
		if text == "" {
			f.Rect(20, 20, 100, 100, "F")
			continue
		}
		f.MultiCell(0, 6, text, "", "", false)
	}
	var buf bytes.Buffer
	expect.Must(t, f.Output(&buf))
	return buf.Bytes()
}

func pdfSample(t testing.TB) []byte {
	return pdfOf(t, nil, "Annual report\nRevenue of 450,000 EUR", "", "The last page")
}

func TestPDF(t *testing.T) {
	golden(t, "pdf", pdfSample(t),
		"page 1: Annual report",
		"page 1: Revenue of 450,000 EUR",
		"page 3: The last page",
		"[1 of 3 pages have no text]",
	)
}

func TestPDFAttachedFile(t *testing.T) {
	golden(t, "pdf", pdfOf(t, func(f *fpdf.Fpdf) {
		f.SetAttachments([]fpdf.Attachment{{Content: []byte("a"), Filename: "a.xml"}})
	}, "invoice"), "page 1: invoice", "[not read: 1 attached file]")
}

func TestPDFBad(t *testing.T) {
	skipLarge(t)
	protect := func(user string) func(*fpdf.Fpdf) {
		return func(f *fpdf.Fpdf) { f.SetProtection(fpdf.CnProtectPrint, user, "owner") }
	}
	refuses(t, "pdf", map[string]refusal{
		"scan":                {pdfOf(t, nil, "", ""), ErrNoText},
		"password":            {pdfOf(t, protect("secret"), "text"), ErrEncrypted},
		"owner password only": {pdfOf(t, protect(""), "text"), nil},
		"only a header":       {[]byte("%PDF-1.7\n"), ErrBroken},
		"stream bomb":         {pdfBomb(t), ErrBroken},
	})
}

// rawPDF returns a PDF with a page of lines, with annotations and further objects from 6 on.
func rawPDF(lines []string, annotations, catalog string, objects ...string) []byte {
	text := "BT /F1 12 Tf 50 740 Td 16 TL (" + strings.Join(lines, ") Tj T* (") + ") Tj ET"
	all := append([]string{
		"<</Type/Catalog/Pages 2 0 R" + catalog + ">>",
		"<</Type/Pages/Count 1/Kids[3 0 R]>>",
		"<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]/Resources<</Font<</F1 5 0 R>>>>/Contents 4 0 R/Annots[" +
			annotations + "]>>",
		fmt.Sprintf("<</Length %d>>stream\n%s\nendstream", len(text), text),
		"<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>",
	}, objects...)
	var file bytes.Buffer
	file.WriteString("%PDF-1.7\n")
	for i, o := range all {
		fmt.Fprintf(&file, "%d 0 obj%s\nendobj\n", i+1, o)
	}
	file.WriteString("trailer<</Root 1 0 R>>\n")
	return file.Bytes()
}

func TestPDFAnnotations(t *testing.T) {
	link := func(rect, uri string) string {
		return "<</Type/Annot/Subtype/Link/Rect[" + rect + "]/A<</S/URI/URI(" + uri + ")>>>>"
	}
	golden(t, "pdf", rawPDF([]string{"our guide", "https://a.example/x"},
		"<</Type/Annot/Subtype/FreeText/Rect[60 60 200 80]/Contents(Deposit 1,800 euro)>>"+
			"<</Type/Annot/Subtype/Text/Rect[60 90 80 110]/Contents(wrong year)/Popup 6 0 R>>6 0 R"+
			"<</Type/Annot/Subtype/Stamp/Rect[60 90 80 110]>>"+
			link("45 735 300 755", "https://a.example/guide")+link("45 719 300 735", "https://a.example/x")+
			"7 0 R 8 0 R 9 0 R 10 0 R 12 0 R",
		"/AcroForm<</Fields[7 0 R 8 0 R 9 0 R 11 0 R 12 0 R]>>",
		"<</Type/Annot/Subtype/Popup/Rect[0 0 9 9]/Contents(wrong year)>>",
		"<</Type/Annot/Subtype/Widget/FT/Tx/T(name)/V(Ada 42)/Rect[60 200 200 220]>>",
		"<</Type/Annot/Subtype/Widget/FT/Btn/T(agree)/V/Yes/AS/Yes/AP<</N<</on 13 0 R>>>>/Rect[60 230 70 240]>>",
		"<</Type/Annot/Subtype/Widget/FT/Btn/T(news)/AS/Off/AP<</N<</Yes 13 0 R>>>>/Rect[60 250 70 260]>>",
		"<</Type/Annot/Subtype/Widget/Parent 11 0 R/Rect[60 270 70 280]>>",
		"<</FT/Ch/Ff 131072/T(city)/Opt[(Oslo)(Bergen)]/V(Bergen)/Kids[10 0 R]>>",
		"<</Type/Annot/Subtype/Widget/FT/Tx/T(empty)/Rect[60 290 200 300]>>",
		"<</Type/XObject/Subtype/Form/BBox[0 0 9 9]/Length 0>>stream\n\nendstream"),
		"page 1: our guide",
		"page 1: https://a.example/x",
		"page 1, text boxes: Deposit 1,800 euro",
		"page 1, comments: wrong year",
		"page 1, links: our guide <https://a.example/guide>",
		"page 1, form: name: Ada 42",
		"page 1, form: agree: ☑",
		"page 1, form: news: ☐",
		"page 1, form: city: Bergen",
		"[not read: 1 stamp]",
	)
}

func TestPDFHyphens(t *testing.T) {
	golden(t, "pdf", rawPDF([]string{
		"the well-", "known INV-", "2043 for the govern-", "ment, and e-", "mail of state-of-", "the-art Anglo-",
		"Saxon govern-", "ment. A co-", "operation, the co-operation of a part-", "ner and partner",
	}, "", ""),
		"page 1: the wellknown INV-2043 for the government, and e-mail of state-of-the-art Anglo-Saxon government. "+
			"A co-operation, the co-operation of a partner and partner",
		"page 1, other spellings: spelled also: well-known, govern-ment, email",
	)
}

// pdfBomb returns a PDF of 0.7 MB whose page has 700 MiB of content, more than the memory of an instance.
func pdfBomb(t *testing.T) []byte {
	t.Helper()
	var content, file bytes.Buffer
	z := zlib.NewWriter(&content)
	for blanks := bytes.Repeat([]byte(" "), 1<<20); content.Len() < 700<<10; {
		if _, err := z.Write(blanks); err != nil {
			t.Fatal(err)
		}
	}
	expect.Must(t, z.Close())
	file.WriteString("%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n")
	file.WriteString("2 0 obj<</Type/Pages/Count 1/Kids[3 0 R]>>endobj\n")
	file.WriteString("3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]/Contents 4 0 R>>endobj\n4 0 obj")
	fmt.Fprintf(&file, "<</Length %d/Filter/FlateDecode>>stream\n%s\nendstream endobj\n", content.Len(), content.Bytes())
	file.WriteString("trailer<</Root 1 0 R>>\n")
	return file.Bytes()
}

// TestPDFConcurrent reads more documents at a time than there are instances.
func TestPDFConcurrent(t *testing.T) {
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			word := fmt.Sprintf("document-%d", i)
			x, err := read(t, "pdf", pdfOf(t, nil, word))
			if err != nil || string(x.Body) != word+"\n" {
				t.Errorf("got %q, %v", x.Body, err)
			}
		})
	}
	all.Wait()
}

// TestPDFDeadline checks that the deadline ends a page that takes long, and that later documents can be read.
func TestPDFDeadline(t *testing.T) {
	data := pdfOf(t, nil, slices.Repeat([]string{strings.Repeat("many words on a page ", 100)}, 300)...)
	for range pdfInstances + 1 {
		ctx, cancel := context.WithTimeout(t.Context(), 150*time.Millisecond)
		_, err := Read(ctx, "pdf", bytes.NewReader(data), int64(len(data)))
		cancel()
		expect.ErrorIs(t, err, context.DeadlineExceeded, "ended")
	}
	if _, err := read(t, "pdf", pdfSample(t)); err != nil {
		t.Error(err)
	}
}

// TestPDFiumHasNoFiles checks that PDFium cannot open a file that exists.
func TestPDFiumHasNoFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.pdf")
	expect.Must(t, os.WriteFile(path, pdfSample(t), 0o600))
	p, err := newPDFium(t.Context(), nil)
	expect.Must(t, err)
	defer p.close()
	var opened uint64
	p.buffer(uint64(len(path)+1), func(name uint64) uint64 {
		p.mod.Memory().WriteString(uint32(name), path+"\x00")
		opened = p.call("FPDF_LoadDocument", name, 0)
		return 0
	})
	expect.Equal(t, p.call("FPDF_GetLastError"), 2, "PDFium's error: no such file")
	if err := p.failed(); err != nil || opened != 0 {
		t.Errorf("PDFium opened %s: %v", path, err)
	}
}

// TestPDFiumModule compares the compressed module with the one of go-pdfium. If it differs, run go generate.
func TestPDFiumModule(t *testing.T) {
	const name = "github.com/klippa-app/go-pdfium/internal/pdfium_wasm"
	out, err := exec.CommandContext(t.Context(), "go", "list", "-f", "{{.Dir}}", name).Output()
	expect.Must(t, err)
	want, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(out)), "pdfium.wasm"))
	expect.Must(t, err)
	got, err := unpackModule()
	expect.Must(t, err)
	if !bytes.Equal(got, want) {
		t.Errorf("the module has %d bytes that are not the %d bytes of go-pdfium", len(got), len(want))
	}
}

// TestPDFWords compares words with pdftotext, on the PDF files of a module that makes some, or on those below
// EXTRACT_PDFS. Up to twelve files of each producer count; files of fewer than 60 words do not, nor those with text
// that is clipped and not seen.
func TestPDFWords(t *testing.T) {
	if _, err := exec.LookPath("pdftotext"); err != nil {
		expect.MustEqual(t, os.Getenv("CI"), "", err)
		t.Skip("pdftotext is not installed")
	}
	root := os.Getenv("EXTRACT_PDFS")
	if root == "" {
		out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/go-pdf/fpdf").Output()
		expect.Must(t, err)
		root = strings.TrimSpace(string(out))
	}
	var files []string
	_ = filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && strings.EqualFold(filepath.Ext(path), ".pdf") &&
			!strings.Contains(path, "Clip") {
			files = append(files, path)
		}
		return nil
	})
	compared := 0
	defer func() {
		if compared == 0 {
			t.Error("no file was compared")
		}
	}()
	producers := map[string]int{}
	for _, file := range files {
		producer := producerOf(t, file)
		if producers[producer] == 12 {
			continue
		}
		out, err := exec.CommandContext(t.Context(), "pdftotext", "-enc", "UTF-8", file, "-").Output()
		want := wordsOf(string(out))
		if err != nil || len(want) < 60 {
			continue
		}
		data, err := os.ReadFile(file)
		expect.Must(t, err)
		start := time.Now()
		x, err := read(t, "pdf", data)
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		producers[producer]++
		compared++
		share := shared(want, wordsOf(string(x.Body)))
		t.Logf("%5.1f %% of %6d words, %5d ms, %8d bytes, %s, %s", 100*share, len(want), time.Since(start).Milliseconds(),
			len(data), producer, filepath.Base(file))
		if share < 0.95 {
			t.Errorf("%s: only %.1f %% of the words of pdftotext", file, 100*share)
		}
	}
}

// producerOf returns the first word of the name of the program that made a PDF.
func producerOf(t *testing.T, file string) string {
	t.Helper()
	out, _ := exec.CommandContext(t.Context(), "pdfinfo", file).Output()
	for s := bufio.NewScanner(bytes.NewReader(out)); s.Scan(); {
		if name, ok := strings.CutPrefix(s.Text(), "Producer:"); ok && strings.TrimSpace(name) != "" {
			return strings.Split(strings.Fields(name)[0], "-")[0]
		}
	}
	return "unknown"
}

func wordsOf(text string) []string {
	return strings.FieldsFunc(ligatures.Replace(text), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
}

// shared returns the share of words that are also in got, each as often as it is in got.
func shared(words, got []string) float64 {
	have, found := map[string]int{}, 0
	for _, w := range got {
		have[w]++
	}
	for _, w := range words {
		if have[w] > 0 {
			have[w]--
			found++
		}
	}
	return float64(found) / float64(len(words))
}
