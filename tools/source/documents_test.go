package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/system/worker"
)

// TestWhyADocumentHasNoText: a reader that ran out of time is neither too large nor broken, and the next call tries
// again.
func TestWhyADocumentHasNoText(t *testing.T) {
	d := NewDocuments(t.TempDir())
	for i, c := range []struct {
		ended error
		want  string
		kept  bool
	}{
		{&worker.Error{Cause: context.DeadlineExceeded}, tookTooLong, false},
		{&worker.Error{Cause: worker.ErrCPU}, tookTooLong, false},
		{&worker.Error{Cause: worker.ErrMemory}, "too large", true},
		{&worker.Error{Cause: worker.ErrCrashed}, "broken", true}, {errors.New("no worker"), "broken", true},
		{io.EOF, "broken", true}, {nil, "broken", true},
	} {
		key := fmt.Sprintf("%032d", i)
		d.remember(key, &Document{Failed: failureOf(c.ended)})
		if got := failureOf(c.ended); !strings.HasPrefix(got, c.want) || (d.recall(key) != nil) != c.kept {
			t.Errorf("%v: %q, kept %v", c.ended, got, !c.kept)
		}
	}
}
