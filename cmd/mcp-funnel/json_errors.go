package main

import (
	"bytes"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
)

// wantsJSON reports whether a command line asks for log lines in JSON. It may be a wrong one.
func wantsJSON(args []string) bool {
	const flag = "--log-format"
	at := slices.Index(args, flag)
	return slices.Contains(args, flag+"=json") || at >= 0 && at+1 < len(args) && args[at+1] == "json" ||
		at < 0 && os.Getenv("MCP_FUNNEL_LOG_FORMAT") == "json"
}

// jsonErrors writes the messages of this program as log lines in JSON, and all else as it is.
type jsonErrors struct{ io.Writer }

// Write implements [io.Writer]. One call writes one message.
func (w jsonErrors) Write(b []byte) (int, error) {
	for _, begin := range []string{"mcp-funnel: ", "see: "} {
		if message, ok := bytes.CutPrefix(b, []byte(begin)); ok {
			slog.New(slog.NewJSONHandler(w.Writer, nil)).Error(strings.TrimSpace(string(message)))
			return len(b), nil
		}
	}
	return w.Writer.Write(b)
}
