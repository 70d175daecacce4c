package cli

import (
	"context"
	"time"
)

// Do opens an app for the work of a command, and closes it after that. The first signal cancels the context of the
// work; its progress is drawn under a name on a terminal, and cleared before Do returns.
func Do(
	ctx context.Context, s *Settings, w *Streams, name string, work func(context.Context, *App, *Bar) error,
) error {
	app, err := s.Open(w, true)
	if err != nil {
		return err
	}
	defer app.Close()
	ctx, stop := UntilSignal(ctx)
	defer stop()
	bar := NewBar(w.Err, name, time.Now())
	defer bar.End()
	return work(ctx, app, bar)
}
