package view

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

// BenchmarkPages measures the first paint and a jump to the middle of large texts in a browser, beside a page that shows
// nothing; with VIEW_BENCH=full a log of 1 GiB, JSON of 300 MiB in one line and a table of 2 M rows, else a hundredth of
// them. heap is the browser's JavaScript heap, rss the growth of the server. Each figure is the median of five.
func BenchmarkPages(b *testing.B) {
	scale := 100
	if os.Getenv("VIEW_BENCH") == "full" {
		scale = 1
	}
	d := newDesk(b)
	d.flags = []string{"--max-observation", "2GiB", "--quota", "8GiB"}
	texts := map[string]func(f *os.File){
		"log": func(f *os.File) {
			for i, n := 0, 0; n < 1<<30/scale; i++ {
				k, _ := fmt.Fprintf(f, "2026-11-29T%02d:%02d:%02d.%03dZ %s scheduler: task %d finished in %d ms worker=%d\n", i/3600000%24, i/60000%60, i/1000%60, i%1000,
					[]string{"INFO", "INFO", "WARN", "ERROR"}[rand.IntN(4)], i, i%313, i%16)
				n += k
			}
		},
		"json": func(f *os.File) {
			n, _ := f.WriteString(`{"meta":{"a":1},"items":[{}`)
			for i := 0; n < 300<<20/scale; i++ {
				k, _ := fmt.Fprintf(f, `,{"id":%d,"name":"user %d","tags":["a","b"],"at":{"x":1.5,"y":null}}`, i, i)
				n += k
			}
			_, _ = f.WriteString(`],"end":true}`)
		},
		"table": func(f *os.File) {
			_, _ = f.WriteString("id,name,amount,day\n")
			for i := range 2_000_000 / scale {
				_, _ = fmt.Fprintf(f, "%d,customer %d,%d.%02d,2026-%02d-%02d\n", i, i%977, i%1000, i%100, i%12+1, i%28+1)
			}
		},
	}
	ids := map[string]string{}
	for name, write := range texts {
		path := filepath.Join(d.dir, name)
		f, err := os.Create(path)
		expect.Must(b, err)
		write(f)
		expect.Must(b, f.Close())
		cmd := d.command(b.Context(), "keep", "--name="+name)
		cmd.Stdin = expect.Value(os.Open(path))(b)
		out, err := cmd.CombinedOutput()
		expect.Must(b, err, "%s", out)
		ids[name] = string(idPattern.FindSubmatch(out)[1])
		expect.Must(b, os.Remove(path))
	}
	d.open()
	idle := rss(b, d.pid)
	middle := map[string]string{
		"log": "top=" + strconv.Itoa(6_000_000/scale), "json": "at=%2Fitems&top=" + strconv.Itoa(2_000_000/scale), "table": "top=" + strconv.Itoa(1_000_000/scale),
	}
	var pages []pageOf
	for range 5 {
		pages = append(pages, pageOf{"empty", "/view/servers"})
		for _, name := range []string{"log", "json", "table"} {
			pages = append(pages, pageOf{name, "/view/obs/" + ids[name]}, pageOf{name + "-middle", "/view/obs/" + ids[name] + "?" + middle[name]})
		}
	}
	paint, heap := map[string][]float64{}, map[string][]float64{}
	for _, s := range d.browse(pages, []variant{{Name: "light"}}, "", false) { // the code of the viewer works once: no b.Loop
		expect.Equal(b, s.Status, 200, s.Page)
		paint[s.Page], heap[s.Page] = append(paint[s.Page], s.Paint), append(heap[s.Page], s.Heap)
	}
	for name, all := range paint {
		b.ReportMetric(median(all), name+"-ms")
		b.ReportMetric(slices.Max(all), name+"-max-ms")
		b.ReportMetric(median(all)/median(paint["empty"]), name+"-ratio")
		b.ReportMetric(median(heap[name])/(1<<20), name+"-heap-MiB")
	}
	b.ReportMetric(float64(rss(b, d.pid)-idle)/1024, "rss-MiB")
	b.ReportMetric(0, "ns/op")
}

func median(all []float64) float64 {
	slices.Sort(all)
	return all[len(all)/2]
}

var rssLine = regexp.MustCompile(`RssAnon:\s+(\d+) kB`)

// rss returns the memory of a process that is no file, in KiB.
func rss(b *testing.B, pid int) int {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		b.Skip("the memory of a process is not known on this system")
	}
	n, err := strconv.Atoi(string(rssLine.FindSubmatch(text)[1]))
	expect.Must(b, err)
	return n
}
