package usage

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/system/osfile"
)

// maxTail is how much of the end of a session file is read, in bytes. firstTail is tried before: the last record is
// nearly always there, and the server reads the file once in each call.
const (
	maxTail   = 4 << 20
	firstTail = 256 << 10
)

// ErrUnknown is the error for a session file that has no usage record at its end. ErrCompacted is an ErrUnknown for a
// context that was compacted, and the model was not asked since.
var (
	ErrUnknown   = fmt.Errorf("no usage is recorded in the last %d MiB", maxTail>>20)
	ErrCompacted = fmt.Errorf("%w: the context was compacted, and the model was not asked since", ErrUnknown)
)

// errSkip makes a search continue with the line before.
var errSkip = errors.New("skip")

// FromClaudeFile returns the last usage record of a session file of Claude Code. It reads numbers, ids and a time from
// the last 4 MiB of the file, which must be a regular file of this user, and no link.
func FromClaudeFile(path string) (Usage, error) { return lastRecord(path, claudeRecord) }

// FromCodexFile returns the last usage record of a session file of Codex, with the same limits as FromClaudeFile.
func FromCodexFile(path string) (Usage, error) {
	u, err := lastRecord(path, codexRecord)
	u.Session = codexSession(path)
	return u, err
}

// lastRecord reads the lines at the end of a file backwards, until record finds a usage or an error other than errSkip.
func lastRecord(path string, record func(line []byte) (Usage, error)) (Usage, error) {
	f, _, err := osfile.OpenOwn(path)
	if err != nil {
		return Usage{}, fmt.Errorf("usage: %w", err)
	}
	defer func() { _ = f.Close() }()
	for _, most := range []int64{firstTail, maxTail} {
		var tail []byte
		if tail, err = readTail(f, most); err != nil {
			break
		}
		var u Usage
		if u, err = lastIn(tail, record); err == nil {
			return u, nil
		}
		if err != ErrUnknown { //nolint:errorlint // ErrCompacted is an ErrUnknown too, but it is an answer
			break
		}
	}
	return Usage{}, fmt.Errorf("usage: %s: %w", path, err)
}

// lastIn is lastRecord for lines in memory.
func lastIn(tail []byte, record func(line []byte) (Usage, error)) (Usage, error) {
	for len(tail) > 0 {
		start := bytes.LastIndexByte(tail, '\n') + 1
		line := tail[start:]
		tail = tail[:max(start-1, 0)]
		if u, err := record(line); !errors.Is(err, errSkip) {
			return u, err
		}
	}
	return Usage{}, ErrUnknown
}

// readTail returns the whole lines among the last most bytes of a file. A last line without its end, which the client
// may be writing, is among them.
func readTail(f *os.File, most int64) ([]byte, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	size := info.Size()
	b := make([]byte, min(size, most+1)) // the byte before the tail tells whether its first line is whole
	n, err := f.ReadAt(b, size-int64(len(b)))
	if err != nil && !errors.Is(err, io.EOF) { // the file may have been truncated meanwhile
		return nil, err
	}
	if size <= most {
		return b[:n], nil
	}
	_, whole, _ := bytes.Cut(b[:n], []byte{'\n'})
	return whole, nil
}

// claudeRecord returns the usage of a line of Claude Code. It skips the lines of subagents, which have contexts of
// their own, and those that the client wrote itself in the model's name.
func claudeRecord(line []byte) (Usage, error) {
	boundary := bytes.Contains(line, []byte(`compact_boundary`))
	if !boundary && !bytes.Contains(line, []byte(`"usage"`)) {
		return Usage{}, errSkip
	}
	var l struct {
		Type      text `json:"type"`
		Subtype   text `json:"subtype"`
		Sidechain bool `json:"isSidechain"`
		Session   text `json:"sessionId"`
		Time      text `json:"timestamp"`
		Message   struct {
			ID    text         `json:"id"`
			Model text         `json:"model"`
			Usage *claudeUsage `json:"usage"`
		} `json:"message"`
	}
	if json.Unmarshal(line, &l) != nil || l.Sidechain {
		return Usage{}, errSkip // a torn line, or one of another form
	}
	if l.Type == "system" && l.Subtype == "compact_boundary" {
		return Usage{}, ErrCompacted
	}
	if l.Type != "assistant" || l.Message.Model == "<synthetic>" {
		return Usage{}, errSkip
	}
	prompt, err := l.Message.Usage.prompt()
	if err != nil {
		return Usage{}, fmt.Errorf("message.usage %w", errTokens) // err would quote the file
	}
	if prompt == 0 {
		return Usage{}, errSkip
	}
	u := Usage{
		Turn: id(l.Message.ID), Session: id(l.Session), PromptTokens: prompt, Model: id(l.Message.Model), Source: FromClaude,
	}
	u.At, _ = parseTime(string(l.Time)) // without a time, the record counts as made now
	return u, nil
}

// codexRecord returns the usage of a line of Codex. cached_input_tokens is a part of input_tokens. The sum over all
// requests, total_token_usage, only tells one request from the next: Codex repeats a record when its limits change.
func codexRecord(line []byte) (Usage, error) {
	if !bytes.Contains(line, []byte(`"token_count"`)) && !bytes.Contains(line, []byte(`"compacted"`)) {
		return Usage{}, errSkip
	}
	var l struct {
		Type    text `json:"type"`
		Time    text `json:"timestamp"`
		Payload struct {
			Type text `json:"type"`
			Info *struct {
				Last   codexUsage `json:"last_token_usage"`
				Total  codexUsage `json:"total_token_usage"`
				Window *number    `json:"model_context_window"`
			} `json:"info"`
		} `json:"payload"`
	}
	if json.Unmarshal(line, &l) != nil {
		return Usage{}, errSkip
	}
	if l.Type == "compacted" {
		return Usage{}, ErrCompacted
	}
	info := l.Payload.Info
	if l.Type != "event_msg" || l.Payload.Type != "token_count" || info == nil {
		return Usage{}, errSkip
	}
	u := Usage{Source: FromCodex}
	var err error
	if u.PromptTokens, err = info.Last.prompt(); err != nil {
		return Usage{}, fmt.Errorf("last_token_usage %w", errTokens)
	}
	if u.PromptTokens == 0 {
		return Usage{}, errSkip
	}
	if info.Window != nil {
		if u.Window, err = info.Window.tokens(); err != nil {
			return Usage{}, fmt.Errorf("model_context_window %w", errTokens)
		}
	}
	if info.Total.Total != nil {
		u.Turn = id(text(*info.Total.Total))
	}
	u.At, _ = parseTime(string(l.Time))
	return u, nil
}

type codexUsage struct {
	Input *number `json:"input_tokens"`
	Total *number `json:"total_tokens"`
}

// prompt returns the tokens of the prompt; 0 if they are unknown. After a compaction Codex writes its estimate of the
// new context as total_tokens, and 0 as input_tokens.
func (u codexUsage) prompt() (int, error) {
	for _, n := range []*number{u.Input, u.Total} {
		if n == nil {
			continue
		}
		if v, err := n.tokens(); v > 0 || err != nil {
			return v, err
		}
	}
	return 0, nil
}

// codexSession returns the id in a file name, rollout-TIME-ID.jsonl; "" if there is none.
func codexSession(path string) string {
	const uuid = 36
	stem, _ := strings.CutSuffix(filepath.Base(path), jsonl)
	if stem, ok := strings.CutPrefix(stem, rollout); ok && len(stem) > uuid && isFileID(stem[len(stem)-uuid:]) {
		return stem[len(stem)-uuid:]
	}
	return ""
}

// id returns a client's id if it can name a session or turn, else "".
func id(t text) string {
	if !validID(string(t)) {
		return ""
	}
	return string(t)
}

// isFileID reports whether a session's id may be a part of a file name.
func isFileID(s string) bool {
	other := func(r rune) bool { return !isAlphanumeric(r) && r != '-' && r != '_' }
	return s != "" && len(s) <= 100 && !strings.ContainsFunc(s, other)
}

func isAlphanumeric(r rune) bool {
	return r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z'
}
