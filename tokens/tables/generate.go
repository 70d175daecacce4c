//go:build ignore

// Generate packs the public rank files of the two encodings, as the module
// tiktoken-go-loader carries them, into NAME.zst: for each token in rank
// order a uvarint length and its bytes.
package main

import (
	"encoding/binary"
	"fmt"
	"os"

	"github.com/klauspost/compress/zstd"
	loader "github.com/pkoukk/tiktoken-go-loader"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

func run() error {
	for _, name := range []string{"o200k_base", "cl100k_base"} {
		ranks, err := loader.NewOfflineLoader().LoadTiktokenBpe(name + ".tiktoken")
		if err != nil {
			return err
		}
		tokens := make([]string, len(ranks))
		for t, rank := range ranks {
			if rank >= len(tokens) || tokens[rank] != "" {
				return fmt.Errorf("%s: ranks are not 0 … n-1", name)
			}
			tokens[rank] = t
		}
		var packed []byte
		for _, t := range tokens {
			packed = binary.AppendUvarint(packed, uint64(len(t)))
			packed = append(packed, t...)
		}
		e, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedBestCompression))
		if err != nil {
			return err
		}
		if err := os.WriteFile("tables/"+name+".zst", e.EncodeAll(packed, nil), 0o644); err != nil {
			return err
		}
	}
	return nil
}
