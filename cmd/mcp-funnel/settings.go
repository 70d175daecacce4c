package main

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/mcp-funnel/mcp-funnel/funnel"
	"github.com/mcp-funnel/mcp-funnel/internal/secrets"
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/tokens"
	"github.com/mcp-funnel/mcp-funnel/tools"
)

// Settings is everything that can be set, once: flags, environment and the
// configuration file are derived from it.
type Settings struct {
	Config string `group:"setup" placeholder:"FILE" help:"YAML file with any of these settings, by the flag's name (unknown keys are refused)."`

	Root        []string `group:"setup" placeholder:"DIR" sep:"none" help:"Directory tools may look into; repeatable (in the variable, several are separated as in PATH). Default: the current directory, unless that is a home, a system directory or the file system's root."`
	ClientRoots bool     `group:"setup" default:"true" negatable:"" help:"Have the roots a client names narrow its own; --no-client-roots passes them over. They never widen."`
	Store       string   `group:"setup" placeholder:"DIR" help:"Where observations are kept. Default: $XDG_STATE_HOME/mcp-funnel, else ~/.local/state/mcp-funnel."`

	ReceiptTokens int    `group:"shown" default:"600" placeholder:"N" help:"Ceiling of a receipt in tokens, from 160 to 4000."`
	LargeLines    int    `group:"shown" default:"50" placeholder:"N" help:"An output of more lines is large."`
	LargeChars    int    `group:"shown" default:"2000" placeholder:"N" help:"An output of more characters is large."`
	HeadLines     int    `group:"shown" default:"10" placeholder:"N" help:"First lines shown in a receipt, at most."`
	TailLines     int    `group:"shown" default:"5" placeholder:"N" help:"Last lines shown in a receipt, at most."`
	PageTokens    int    `group:"shown" default:"4000" placeholder:"N" help:"Size of a page of grep, jq and slice in tokens."`
	Model         string `group:"shown" default:"o200k_base" placeholder:"NAME" help:"Whose tokens are counted: a model's name, o200k_base or cl100k_base. Models without a public vocabulary (Claude, Gemini) are estimated by a factor on o200k_base: their tokens are shown as ≈ with its error."`

	Mask        bool `group:"shown" default:"true" negatable:"" help:"Mask secrets of known formats in what is shown, traced and logged; --no-mask shows them."`
	RedactStore bool `group:"shown" help:"Mask them in what is kept too. By default what is kept is exact."`

	ContextWindow   int  `group:"budget" default:"0" placeholder:"N" help:"Context window in tokens. 0: not known, nothing is ever rejected."`
	ResponseReserve int  `group:"budget" default:"4096" placeholder:"N" help:"Of the window, kept for the model's answer."`
	PromptBudget    int  `group:"budget" default:"0" placeholder:"N" help:"Of the window, kept for the prompt."`
	EmergencyBuffer int  `group:"budget" default:"1024" placeholder:"N" help:"Of the window, never used."`
	DryRun          bool `group:"budget" help:"Decide and record, but show as if there were room."`
	Enabled         bool `group:"budget" default:"true" negatable:"" help:"Funnel at all; --no-enabled passes everything through, up to 1 MB an answer."`

	MaxObservation size `group:"limits" default:"256MiB" placeholder:"SIZE" help:"One observation; what is over is told and not kept. 0: no limit."`
	Quota          size `group:"limits" default:"1GiB" placeholder:"SIZE" help:"All observations; the least recently used make room. 0: no limit."`
	MinFree        size `group:"limits" default:"1GiB" placeholder:"SIZE" help:"What stays free on the store's disk. 0: nothing."`
	MaxAge         age  `group:"limits" default:"7d" placeholder:"AGE" help:"From last use, after which an observation expires. 0: never."`
	Fsync          bool `group:"limits" help:"Make kept observations survive power loss, not only a crash."`
	JqMemory       size `group:"limits" name:"jq-memory" default:"512MiB" placeholder:"SIZE" help:"Memory of one jq program."`
	JqIdle         age  `group:"limits" name:"jq-idle" default:"1m" placeholder:"TIME" help:"How long a started worker waits for the next jq program, after one. 0: none waits."`

	CallTimeout age  `group:"limits" default:"50s" placeholder:"TIME" help:"One call; many clients give up at 60 s."`
	AskTimeout  age  `group:"limits" default:"20s" placeholder:"TIME" help:"For the client to answer what a tool asks it."`
	MaxMessage  size `group:"limits" default:"16MiB" placeholder:"SIZE" help:"One message of the protocol."`
	MaxCalls    int  `group:"limits" default:"64" placeholder:"N" help:"Calls at once; more are told to try again."`
	EofGrace    age  `group:"limits" name:"eof-grace" default:"30s" placeholder:"TIME" help:"After standard input ends, for answers under way."`

	HTTP            string   `group:"http" name:"http" placeholder:"ADDR" help:"Serve MCP over HTTP at /mcp of this address, in place of stdio: 8080, 127.0.0.1:8080; 0.0.0.0:8080 needs a token that you chose."`
	SSE             bool     `group:"http" name:"sse" help:"With --http, serve old clients too: /sse and /message of protocol 2024-11-05."`
	TokenFile       string   `group:"http" placeholder:"FILE" help:"The token of HTTP clients, or lines \"identity: token\"; mode 0600. Default: $MCP_FUNNEL_TOKEN, else one is made and kept in the store."`
	AllowHost       []string `group:"http" placeholder:"NAME" sep:"," help:"A name by which HTTP clients may call this server, beside localhost; repeatable."`
	AllowOrigin     []string `group:"http" placeholder:"ORIGIN" sep:"," help:"A web page's origin from which a browser may call this server, beside its own; repeatable."`
	HTTPConnections int      `group:"http" name:"http-connections" default:"1024" placeholder:"N" help:"HTTP connections at once; idle ones give way. Of several identities each may have three quarters."`
	HTTPSessions    int      `group:"http" name:"http-sessions" default:"1024" placeholder:"N" help:"HTTP sessions kept; idle ones give way."`
	HTTPIdle        age      `group:"http" name:"http-idle" default:"12h" placeholder:"TIME" help:"After which an unused HTTP session ends."`

	LogFormat string `group:"log" enum:"text,json" default:"text" help:"Log lines on standard error: text or json."`
	LogLevel  string `group:"log" enum:"debug,info,warn,error" default:"warn" help:"debug, info, warn or error."`
}

var groups = []kong.Group{
	{Key: "setup", Title: "Set-up"},
	{Key: "shown", Title: "What is shown"},
	{Key: "budget", Title: "Budget"},
	{Key: "limits", Title: "Limits"},
	{Key: "http", Title: "HTTP"},
	{Key: "log", Title: "Logs"},
}

// size is a number of bytes: 1048576, 1MiB, 1MB, 1.5g.
type size int64

func (s *size) UnmarshalText(text []byte) error {
	n, err := tools.ParseSize(string(text))
	*s = size(n)
	return err
}

// age is a time span that may be given in days: 90s, 12h, 7d.
type age time.Duration

func (a *age) UnmarshalText(text []byte) error {
	t := strings.TrimSpace(string(text))
	if days, ok := strings.CutSuffix(t, "d"); ok {
		if n, err := strconv.ParseFloat(days, 64); err == nil && n >= 0 && n < 36500 {
			*a = age(n * 24 * float64(time.Hour))
			return nil
		}
	}
	d, err := time.ParseDuration(t)
	if err != nil || d < 0 {
		return fmt.Errorf("%.60q is not a time span; write 90s, 12h or 7d", t)
	}
	*a = age(d)
	return nil
}

// roots are the directories granted. The current directory is granted unasked
// only where that cannot be a whole home or system.
func (s *Settings) roots() []string {
	if len(s.Root) > 0 {
		return s.Root
	}
	wd, err := os.Getwd()
	if err != nil || tooWide(wd) {
		return nil
	}
	return []string{wd}
}

func tooWide(dir string) bool {
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	if home, err := os.UserHomeDir(); err == nil && (dir == home || strings.HasPrefix(home, dir+string(filepath.Separator))) {
		return true
	}
	if filepath.Dir(dir) == dir {
		return true
	}
	system := []string{"/bin", "/boot", "/dev", "/etc", "/lib", "/lib64", "/proc", "/root", "/run", "/sbin", "/sys", "/usr", "/var", "/home", "/opt", "/srv", "/mnt", "/media", "/tmp", "/Users", "/System", "/Library", "/Applications"}
	if runtime.GOOS == "windows" {
		system = []string{os.Getenv("SystemRoot"), os.Getenv("ProgramFiles"), os.Getenv("ProgramData"), os.Getenv("PUBLIC")}
	}
	for _, d := range system {
		if d != "" && strings.EqualFold(dir, d) {
			return true
		}
	}
	return false
}

// storeOptions passes a limit of 0 on as none at all, which to the store is a
// negative one: there 0 means the default.
func (s *Settings) storeOptions() observations.Options {
	none := func(n int64) int64 {
		if n == 0 {
			return -1
		}
		return n
	}
	return observations.Options{
		Dir: s.Store, MaxObservation: none(int64(s.MaxObservation)), Quota: none(int64(s.Quota)), MinFree: none(int64(s.MinFree)),
		MaxAge: time.Duration(none(int64(s.MaxAge))), Fsync: s.Fsync,
	}
}

// AfterApply is called by kong when all settings are known: every command
// refuses what the funnel could not work with.
func (s *Settings) AfterApply() error {
	given := len(s.Root) > 0
	// An empty one is as good as none: kong's own paths would take it for the current directory.
	s.Root = slices.DeleteFunc(s.Root, func(dir string) bool { return dir == "" })
	// --root="$UNSET" must not grant another one; an empty variable is as good as none.
	if text, set := os.LookupEnv(variables + "ROOT"); given && len(s.Root) == 0 && (!set || text != "") {
		return errors.New("--root is empty: name a directory, or leave it out for the current one")
	}
	for i, dir := range s.Root {
		s.Root[i] = kong.ExpandPath(dir)
	}
	for _, path := range []*string{&s.Config, &s.Store, &s.TokenFile} {
		if *path != "" {
			*path = kong.ExpandPath(*path)
		}
	}
	for name, n := range map[string]int{
		"receipt-tokens": s.ReceiptTokens, "large-lines": s.LargeLines, "large-chars": s.LargeChars, "head-lines": s.HeadLines,
		"tail-lines": s.TailLines, "page-tokens": s.PageTokens, "max-calls": s.MaxCalls,
		"http-connections": s.HTTPConnections, "http-sessions": s.HTTPSessions,
	} {
		if n <= 0 { // to the packages 0 means the default, which is not what was said
			return fmt.Errorf("--%s must be 1 or more, not %d", name, n)
		}
	}
	if s.CallTimeout == 0 || s.MaxMessage == 0 || s.HTTPIdle == 0 || s.AskTimeout == 0 {
		return errors.New("--call-timeout, --ask-timeout, --max-message and --http-idle must be more than 0")
	}
	_, err := funnel.New(funnel.Options{
		Counter: tokens.New(tokens.O200k), Policy: s.policy(), Limits: s.limits(), Mask: s.masker(), Redact: s.RedactStore,
	})
	return err
}

// masker is nil where nothing is to be masked.
func (s *Settings) masker() *secrets.Masker {
	if !s.Mask {
		return nil
	}
	return secrets.New()
}

func (s *Settings) limits() funnel.Limits {
	return funnel.Limits{
		LargeLines: s.LargeLines, LargeChars: s.LargeChars, HeadLines: s.HeadLines, TailLines: s.TailLines,
		ReceiptTokens: s.ReceiptTokens, PageTokens: s.PageTokens,
	}
}

func (s *Settings) policy() funnel.Policy {
	return funnel.Policy{
		Window: s.ContextWindow, Response: s.ResponseReserve, Prompt: s.PromptBudget, Emergency: s.EmergencyBuffer,
		DryRun: s.DryRun, Disabled: !s.Enabled,
	}
}

func (s *Settings) counter() (*tokens.Counter, error) {
	m, err := tokens.Parse(s.Model)
	if err != nil {
		return nil, usageError{fmt.Errorf("--model: %w", err)}
	}
	return tokens.For(m), nil
}

func (s *Settings) logger(w *streams) *slog.Logger {
	var level slog.Level
	_ = level.UnmarshalText([]byte(s.LogLevel)) // the values are an enum
	mask := s.masker()
	o := &slog.HandlerOptions{Level: level, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		switch a.Value.Kind() {
		case slog.KindString, slog.KindAny:
			if text, n := mask.String(a.Value.String()); n > 0 {
				a.Value = slog.StringValue(text)
			}
		}
		return a
	}}
	if s.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(w.err, o))
	}
	return slog.New(slog.NewTextHandler(w.err, o))
}
