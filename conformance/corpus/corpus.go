// Package corpus has realistic inputs for tests: a novel, a megabyte of JSON, and texts derived or generated from them.
// Every call returns the same bytes.
//
// Only tests import it.
package corpus

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"

	"github.com/klauspost/compress/zstd"
)

//go:embed testdata/*.zst
var packed embed.FS

// unpacked returns a function that decompresses a file of testdata. All callers share one copy and must not change it.
func unpacked(name string) func() []byte {
	return sync.OnceValue(func() []byte {
		b, err := packed.ReadFile("testdata/" + name + ".zst")
		if err != nil {
			panic(err)
		}
		d, err := zstd.NewReader(nil)
		if err != nil {
			panic(err)
		}
		defer d.Close()
		if b, err = d.DecodeAll(b, nil); err != nil {
			panic(err)
		}
		return b
	})
}

// generated returns a function that generates a text once. All callers share it and must not change it.
func generated(write func(b *bytes.Buffer)) func() []byte {
	return sync.OnceValue(func() []byte {
		var b bytes.Buffer
		write(&b)
		return b.Bytes()
	})
}

// WarAndPeace is Tolstoy's novel in English (public domain): 3.3 MB of plain text with CRLF lines.
var WarAndPeace = unpacked("war-and-peace.txt")

// JSON1MB is an indented array of dummy records (MIT licence, Microsoft Edge demos): name, language, id, bio, version.
var JSON1MB = unpacked("1MB.json")

// JSON1MBMinified is JSON1MB on one line.
var JSON1MBMinified = sync.OnceValue(func() []byte {
	var b bytes.Buffer
	if err := json.Compact(&b, JSON1MB()); err != nil {
		panic(err)
	}
	return b.Bytes()
})

// JSON5MB has the records of JSON1MB five times, each with a different id.
var JSON5MB = sync.OnceValue(func() []byte {
	var all []struct {
		Name     string  `json:"name"`
		Language string  `json:"language"`
		ID       string  `json:"id"`
		Bio      string  `json:"bio"`
		Version  float64 `json:"version"`
	}
	if err := json.Unmarshal(JSON1MB(), &all); err != nil {
		panic(err)
	}
	many := all[:0:0]
	for copied := range 5 {
		for _, r := range all {
			r.ID = fmt.Sprintf("%s-%d", r.ID, copied)
			many = append(many, r)
		}
	}
	b, err := json.MarshalIndent(many, "", "  ")
	if err != nil {
		panic(err)
	}
	return append(b, '\n')
})

// PanicLine is the number of the line of [PanicLog] at which its only panic begins, counted from 1.
const PanicLine = 50_001

// PanicLog is a log of 100,000 lines with one Go panic and its stack in the middle.
var PanicLog = generated(func(b *bytes.Buffer) {
	r := rand.New(rand.NewPCG(1, 2))
	line := func(i int) {
		at := fmt.Sprintf("2026-11-20T%02d:%02d:%02d.%03dZ", i/3600%24, i/60%60, i%60, r.IntN(1000))
		switch n := r.IntN(100); {
		case n < 60:
			fmt.Fprintf(b, "%s INFO  request served method=GET path=/v1/items/%d status=200 took=%dms\n",
				at, r.IntN(10000), r.IntN(300))
		case n < 90:
			fmt.Fprintf(b, "%s DEBUG cache lookup key=item:%d hit=%t\n", at, r.IntN(10000), r.IntN(2) == 0)
		default:
			fmt.Fprintf(b, "%s INFO  worker %d finished job %d in %dms\n", at, r.IntN(16), r.IntN(1_000_000), r.IntN(5000))
		}
	}
	for i := range PanicLine - 1 {
		line(i)
	}
	b.WriteString("panic: runtime error: index out of range [7] with length 3\n\n" +
		"goroutine 4711 [running]:\nexample.com/shop/cart.(*Cart).Remove(0xc0001a2000, 0x7)\n" +
		"\t/src/shop/cart/cart.go:88 +0x1d4\nexample.com/shop/api.handleRemove(...)\n\t/src/shop/api/remove.go:31\n")
	for i := range 100_000 - PanicLine - 6 {
		line(PanicLine + i)
	}
})

// CSV20k is a table of 20,000 rows under a header of 7 columns; some fields are quoted, some hold commas and newlines.
var CSV20k = generated(func(b *bytes.Buffer) {
	r := rand.New(rand.NewPCG(3, 4))
	b.WriteString("id,customer,country,amount,currency,paid,comment\n")
	countries := []string{"DE", "FR", "JP", "BR", "US", "IN"}
	for i := range 20_000 {
		comment := ""
		switch r.IntN(20) {
		case 0:
			comment = `"left at the door, twice"`
		case 1:
			comment = "\"he said \"\"no\"\"\nand left\""
		}
		fmt.Fprintf(b, "%d,customer-%04d,%s,%d.%02d,EUR,%t,%s\n",
			i, r.IntN(3000), countries[r.IntN(6)], r.IntN(900), r.IntN(100), r.IntN(2) == 0, comment)
	}
})

// RareKeyRecord is the index of the record of [RareKey9k] that has the key "legacy_ref".
const RareKeyRecord = 6_543

// RareKey9k is NDJSON of 9,000 records; exactly one has the key "legacy_ref".
var RareKey9k = generated(func(b *bytes.Buffer) {
	r := rand.New(rand.NewPCG(5, 6))
	for i := range 9_000 {
		rare := ""
		if i == RareKeyRecord {
			rare = `,"legacy_ref":"A-17/3"`
		}
		fmt.Fprintf(b, `{"id":%d,"user":{"name":"user%d","tags":["t%d","t%d"]},"score":%d.%d,"ok":%t%s}`+"\n",
			i, r.IntN(500), r.IntN(9), r.IntN(9), r.IntN(100), r.IntN(10), r.IntN(2) == 0, rare)
	}
})

// CJK is 400 kB of Chinese, Japanese and Korean text without spaces, in lines of uneven length.
var CJK = generated(func(b *bytes.Buffer) {
	r := rand.New(rand.NewPCG(7, 8))
	words := []string{"数据", "観察", "결과", "大规模输出", "保持する", "도구", "収据", "検索結果", "文件", "파일", "、", "。", "「重要」", "永不丢失"}
	for b.Len() < 400_000 {
		for range 5 + r.IntN(60) {
			b.WriteString(words[r.IntN(len(words))])
		}
		b.WriteByte('\n')
	}
})

// Random returns n pseudo-random bytes.
func Random(n int) []byte {
	var seed [32]byte
	copy(seed[:], "mcp-funnel corpus")
	b := make([]byte, n)
	_, _ = rand.NewChaCha8(seed).Read(b) // never fails
	return b
}

// WarAndPeaceDiff is a unified diff of the novel with 6 % of its lines edited,
// 3 lines of context, hunks merged where their contexts touch. The edits are replacements, one line for one.
var WarAndPeaceDiff = sync.OnceValue(func() []byte {
	old := slices.Collect(strings.Lines(string(WarAndPeace())))
	r := rand.New(rand.NewPCG(9, 10))
	edited := make([]bool, len(old))
	for i := range edited {
		edited[i] = r.IntN(100) < 6
	}
	var b strings.Builder
	b.WriteString(
		"diff --git a/war-and-peace.txt b/war-and-peace.txt\nindex 3b18e51..a8f5f16 100644\n--- a/war-and-peace.txt\n+++ b/war-and-peace.txt\n",
	)
	const context = 3
	for i := 0; i < len(old); {
		if !edited[i] {
			i++
			continue
		}
		from, to := max(0, i-context), i+1
		for j := i + 1; j < len(old) && j <= to+2*context-1; j++ {
			if edited[j] {
				to = j + 1
			}
		}
		i = to
		to = min(len(old), to+context)
		fmt.Fprintf(&b, "@@ -%d,%d +%d,%d @@\n", from+1, to-from, from+1, to-from)
		for j := from; j < to; j++ {
			line := strings.TrimRight(old[j], "\r\n")
			if edited[j] {
				fmt.Fprintf(&b, "-%s\n+%s [edited]\n", line, line)
			} else {
				fmt.Fprintf(&b, " %s\n", line)
			}
		}
	}
	return []byte(b.String())
})
