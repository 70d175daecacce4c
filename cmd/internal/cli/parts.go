package cli

import (
	"cmp"
	"fmt"
	"log/slog"
	"math"
	"os"

	"github.com/mcp-funnel/mcp-funnel/agents/chat"
	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/text/secrets"
	"github.com/mcp-funnel/mcp-funnel/text/tokens"
)

// Masker returns nil with --no-mask.
func (s *Settings) Masker() *secrets.Masker {
	if !s.Mask {
		return nil
	}
	return secrets.New()
}

// MaskText returns a function that masks the secrets in a text, unless --no-mask is given.
func (s *Settings) MaskText() func(string) string {
	mask := s.Masker()
	return func(text string) string {
		text, _ = mask.String(text)
		return text
	}
}

// Counter returns the counter of the tokens of --model.
func (s *Settings) Counter() (*tokens.Counter, error) {
	m, err := tokens.Parse(s.Model)
	if err != nil {
		return nil, UsageError{fmt.Errorf("--model: %w", err)}
	}
	return tokens.For(m), nil
}

// Endpoint returns a client of the endpoint, and the counter of its tokens.
func (s *Settings) Endpoint() (*chat.Client, *tokens.Counter, error) {
	counter, err := s.Counter()
	if err != nil {
		return nil, nil, err
	}
	o := s.Options().Endpoint
	o.Count = func(text string) int {
		n := counter.Total(text)
		return int(math.Ceil(float64(n.N) * (1 + n.Margin)))
	}
	client, err := chat.New(o)
	if err != nil {
		return nil, nil, UsageError{err}
	}
	return client, counter, nil
}

func (s *Settings) logger(w *Streams) *slog.Logger {
	var level slog.Level
	_ = level.UnmarshalText([]byte(s.LogLevel)) // kong has checked the enum
	mask := s.Masker()
	o := &slog.HandlerOptions{Level: level, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		switch a.Value.Kind() {
		case slog.KindString, slog.KindAny:
			if text, n := mask.String(a.Value.String()); n > 0 {
				a.Value = slog.StringValue(text)
			}
		}
		return a
	}}
	log := slog.New(slog.NewTextHandler(w.Err, o))
	if s.LogFormat == "json" {
		log = slog.New(slog.NewJSONHandler(w.Err, o))
	}
	if s.HTTP != "" {
		log = log.With("replica", s.ReplicaName())
	}
	return log
}

// ReplicaName returns the name of this server among its replicas.
func (s *Settings) ReplicaName() string {
	host, _ := os.Hostname()
	return cmp.Or(s.Replica, host)
}

var replicaShape = content.Pattern(`^[A-Za-z0-9._-]{1,64}$`)
