package jq

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/mcp-funnel/mcp-funnel/kinds/record"
	"github.com/mcp-funnel/mcp-funnel/system/worker"
	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/tools"
	"github.com/mcp-funnel/mcp-funnel/tools/jq/engine"
)

// Choice chooses rows of a table, and may order them. Test and Shown are its condition and all of it as a person writes
// them; Filter is the same for [number, row], counted from 0, and its results are numbers. With Slurp it runs on all rows.
type Choice struct {
	Test, Shown, Filter string
	Slurp               bool
}

// chooseFor is how long a choice may take.
const chooseFor = 2 * time.Minute

// Rows calls visit with the number of each row until that returns false. It runs in a worker with the default limit
// of memory, for at most 2 minutes. A row on which the filter fails is no result, but an error after the others.
func (c Choice) Rows(ctx context.Context, text func() (io.Reader, error), visit func(row int64) bool) error {
	for _, f := range []string{c.Test, c.Shown} { // a condition with a bracket too many would not be what is shown
		if err := (args{Filter: tools.OneQuery(f)}).Check(); err != nil {
			return err
		}
	}
	ctx, stop := context.WithTimeout(ctx, chooseFor)
	defer stop()
	open := func() (io.Reader, error) {
		t, err := text()
		if err != nil {
			return nil, err
		}
		r, w := io.Pipe()
		context.AfterFunc(ctx, func() { _ = r.CloseWithError(ctx.Err()) })
		go func() {
			b := bufio.NewWriterSize(w, 64<<10)
			err := record.IndexedRows(ctx, t, b)
			if _, ok := err.(*content.Remarks); ok { //nolint:errorlint // nothing but remarks, which whoever shows rows has
				err = nil
			}
			_ = w.CloseWithError(cmp.Or(err, b.Flush()))
		}()
		return r, nil
	}
	to, in := chosen{visit: visit, stop: stop}, engine.WorkerInput{Open: open}
	job := engine.Job{Filter: c.Filter, Slurp: c.Slurp}
	out, err := engine.RunWorker(ctx, job, in, worker.MachineMemory(), 0, &to, nil)
	if err == nil && out.Unsure {
		job.Whole = true
		out, err = engine.RunWorker(ctx, job, in, worker.MachineMemory(), 0, &to, nil)
	}
	switch {
	case to.ended:
		return nil
	case err != nil:
		return fmt.Errorf("the filter was stopped: %w", err)
	case out.Compile != "":
		return errors.New(out.Compile)
	case out.First != nil:
		return fmt.Errorf("the filter failed on %s, first on row %d: %s",
			content.Plural(out.Failed, "row", "rows"), out.First.Record, out.First.Message)
	}
	return nil
}

// chosen receives the numbers of rows.
type chosen struct {
	visit func(row int64) bool
	stop  func() // ends the worker
	ended bool
}

func (c *chosen) Wanted() bool   { return !c.ended }
func (c *chosen) Progress(int64) {}
func (c *chosen) Part(b []byte, _ bool) error {
	row, err := strconv.ParseInt(string(b), 10, 64)
	if err == nil && !c.ended && !c.visit(row) {
		c.ended = true
		c.stop()
	}
	return err
}
