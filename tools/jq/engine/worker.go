package engine

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime/debug"
)

// WorkerName is the name of [Worker] for worker.Main.
const WorkerName = "jq"

// Worker runs a job in a worker process. The input starts with the job, a line of JSON; after the end of the input,
// further rows are only counted. The text is the passed file; on Windows, where files cannot be passed, the text is the
// rest of the input.
func Worker(ctx context.Context, in io.Reader, files []*os.File, out io.Writer) error {
	input := bufio.NewReaderSize(in, 64<<10)
	line, err := input.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("no job: %w", err)
	}
	var j Job
	if err := json.Unmarshal(line, &j); err != nil {
		return fmt.Errorf("job: %w", err)
	}
	debug.SetGCPercent(garbage)
	w := &frames{w: bufio.NewWriterSize(out, frameMost)}
	go w.flushLoop()
	var text io.Reader = input
	if len(files) > 0 {
		text = files[0]
		if j.Size > 0 {
			text = io.NewSectionReader(files[0], 0, j.Size)
		}
		go func() {
			_, _ = io.Copy(io.Discard, input)
			w.enough.Store(true)
		}()
	}
	o, err := j.Run(ctx, text, w)
	if err != nil {
		return err
	}
	return w.end(o)
}

// garbage is GOGC of a worker, in percent. Most filters need little memory; for the others the memory limit, which
// system/worker sets, makes the collector run earlier.
const garbage = 400
