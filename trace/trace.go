// Package trace records tool calls: one Call and one JSON line per call. Totals and telemetry are computed from it.
//
// It stores no output: observations do that.
package trace

import "time"

// Version of the lines written now. Readers skip lines of other versions.
const Version = 1

// Retention is how long a day's file is kept.
const Retention = 30 * 24 * time.Hour

// Call is one tool call: what was asked, seen and shown, and its cost.
type Call struct {
	V           int       `json:"v"`  // set by Append
	At          time.Time `json:"at"` // UTC, start
	Session     string    `json:"session"`
	Owner       string    `json:"owner"`
	Tool        string    `json:"tool"`
	CallHash    string    `json:"call_hash"`
	Name        string    `json:"name,omitempty"` // what the tool called its output: the programs of a command
	Status      string    `json:"status"`         // success | failure | timeout | cancelled
	Verdict     string    `json:"verdict"`
	SeenBytes   int64     `json:"seen_bytes"`
	SeenTokens  int64     `json:"seen_tokens"`
	SeenMargin  float64   `json:"seen_margin,omitempty"`
	ShownTokens int64     `json:"shown_tokens"`
	Observation string    `json:"observation,omitempty"`
	Kept        bool      `json:"kept"`
	Millis      float64   `json:"ms"`
	Error       string    `json:"error,omitempty"` // truncated to 200 bytes
}
