package cli

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/mcp-funnel/mcp-funnel/server"
	"github.com/mcp-funnel/mcp-funnel/tools"
)

// Settings holds every setting of the program, one field each, by area. From the field and its tags come the flag, the
// environment variable, the key of the configuration file, help, default, lower limit (min) and the option it fills
// (to, see [options]).
type Settings struct {
	setupSettings     `group:"setup"`
	shownSettings     `group:"shown"`
	budgetSettings    `group:"budget"`
	limitsSettings    `group:"limits"`
	documentsSettings `group:"documents"`
	endpointSettings  `group:"endpoint"`
	commandsSettings  `group:"commands"`
	httpSettings      `group:"http"`
	logSettings       `group:"log"`
}

// setupSettings are what the program reads, and where it keeps what it stores.
type setupSettings struct {
	Config string `placeholder:"FILE" help:"YAML file with any of these settings, by the flag's name (unknown keys are refused)."`

	Root        []string `placeholder:"DIR" sep:"none" help:"Directory that tools may read; repeatable (in the variable, separated as in PATH). Default: the current directory, unless that is a home, a system directory or the file system's root."`
	ClientRoots bool     `to:"!Server.IgnoreRoots" default:"true" negatable:"" help:"Let the roots that a client sends narrow what it may read; --no-client-roots ignores them. They never widen it."`
	Store       string   `to:"Store.Dir" placeholder:"DIR" help:"Directory of the observations, or s3://BUCKET/PREFIX for those that replicas share. Default: $XDG_STATE_HOME/mcp-funnel, else ~/.local/state/mcp-funnel."`

	Database   string `to:"Database.URL" placeholder:"URL" help:"Postgres that replicas share, with --store s3://…: postgres://USER@HOST:PORT/NAME. The password comes from PGPASSFILE or PGPASSWORD, never from here."`
	S3Endpoint string `to:"Bucket.Endpoint" name:"s3-endpoint" placeholder:"URL" help:"S3 server of --store, as HOST:PORT or URL. Keys come from the environment, a shared file, a web identity or the role of the instance. Default: Amazon's."`
	S3Region   string `to:"Bucket.Region" name:"s3-region" placeholder:"NAME" help:"Region of the bucket. Default: as the server says."`
	S3Insecure bool   `to:"Bucket.Insecure" name:"s3-insecure" help:"Allow plain HTTP to an S3 server that is not on this machine."`
	Cache      string `to:"Cache.Dir" placeholder:"DIR" help:"Directory of copies of what is in the bucket, and of all that can be made again. Default: mcp-funnel in the user's cache directory."`
	CacheSize  size   `to:"Cache.Quota" min:"1" default:"1GiB" placeholder:"SIZE" help:"Maximum size of those copies; the least recently used are removed."`
}

// shownSettings are how answers look.
type shownSettings struct {
	ReceiptTokens int    `min:"1" to:"Limits.ReceiptTokens" default:"600" placeholder:"N" help:"Maximum size of a receipt in tokens, from 160 to 4000."`
	MinSaving     int    `min:"1" to:"Limits.MinSaving" default:"40" placeholder:"N" help:"Percentage of an output's tokens that its receipt must save, from 1 to 90; an output for which it would save less is shown whole."`
	LargeLines    int    `min:"1" to:"Limits.LargeLines" default:"50" placeholder:"N" help:"An output of more lines is large."`
	LargeChars    int    `min:"1" to:"Limits.LargeChars" default:"2000" placeholder:"N" help:"An output of more characters is large."`
	HeadLines     int    `min:"1" to:"Limits.HeadLines" default:"10" placeholder:"N" help:"Maximum number of first lines in a receipt."`
	TailLines     int    `min:"1" to:"Limits.TailLines" default:"5" placeholder:"N" help:"Maximum number of last lines in a receipt."`
	PageTokens    int    `min:"1" to:"Limits.PageTokens" default:"4000" placeholder:"N" help:"Size of a page of grep, jq and slice in tokens."`
	Model         string `to:"Policy.Model" default:"o200k_base" placeholder:"NAME" help:"Model whose tokens are counted: its name, o200k_base or cl100k_base. Models without a public vocabulary (Claude, Gemini) are estimated by a factor on o200k_base and shown as ≈ with the error of that factor."`

	ToolLimit []string `placeholder:"LIMIT" sep:"," help:"Limit of one tool, such as run.receipt-tokens=1200 or grep.page-tokens=8000; repeatable, or separated by commas."`
	Uncut     []string `placeholder:"TOOL" sep:"," help:"Tool whose outputs are never cut: shown whole up to 1 MB, or kept and not shown where the client reported that they do not fit; repeatable."`

	Mask        bool `default:"true" negatable:"" help:"Mask secrets of known formats in answers, trace and logs; --no-mask shows them."`
	RedactStore bool `help:"Mask them in observations too. By default observations are exact."`
	KeepShown   bool `default:"true" negatable:"" help:"Keep for 30 days what each call was asked and what the model was shown, masked like answers and up to 16 KiB, within a sixteenth of --quota; --no-keep-shown keeps only the figures of a call."`
}

// budgetSettings are what is known of the context of a model.
type budgetSettings struct {
	ContextWindow   int    `to:"Policy.Window" default:"0" placeholder:"N" help:"Context window in tokens, for clients that do not report it. 0: unknown."`
	ResponseReserve int    `to:"Policy.Response" default:"4096" placeholder:"N" help:"Part of the window reserved for the model's answer, for clients that do not report it."`
	PromptBudget    int    `to:"Policy.Prompt" default:"0" placeholder:"N" help:"Maximum size of the prompt in tokens, whatever the window. 0: no limit of its own."`
	EmergencyBuffer int    `to:"Policy.Emergency" default:"1024" placeholder:"N" help:"Part of the window for notices that an output is not shown; those of one turn take no more."`
	UsageFrom       string `enum:"none,claude,codex" default:"none" placeholder:"CLIENT" help:"Read how full the context is from the session files of the client: claude or codex, numbers of the last 4 MiB only. Over stdio only."`
	DryRun          bool   `to:"Policy.DryRun" help:"Decide and record, but show outputs as if there were room."`
	Enabled         bool   `to:"!Policy.Disabled" default:"true" negatable:"" help:"Funnel outputs; --no-enabled shows everything whole, up to 1 MB per answer."`
}

// limitsSettings are bounds of the store, of calls and of messages.
type limitsSettings struct {
	MaxObservation   size `to:"Store.MaxObservation" zero:"none" default:"256MiB" placeholder:"SIZE" help:"Maximum size of one observation; excess bytes are dropped and reported. 0: no limit."`
	Quota            size `to:"Store.Quota" zero:"none" default:"1GiB" placeholder:"SIZE" help:"Maximum size of all observations; the least recently used are removed. 0: no limit."`
	QuotaPerIdentity size `to:"Store.OwnerQuota" default:"0" placeholder:"SIZE" help:"Maximum size of the observations of one identity; its own least recently used are removed, never those of others. 0: no limit."`
	MinFree          size `to:"Store.MinFree" zero:"none" default:"1GiB" placeholder:"SIZE" help:"Space that must stay free on the store's disk. 0: none."`
	MaxAge           Age  `to:"Store.MaxAge" zero:"none" default:"7d" placeholder:"AGE" help:"Time since last use after which an observation expires. 0: never."`
	Fsync            bool `to:"Store.Fsync" help:"Make observations survive power loss, not only a crash."`
	JqMemory         size `to:"JQ.Memory" name:"jq-memory" default:"0" placeholder:"SIZE" help:"Memory limit of one jq program. 0: an eighth of the machine's memory, from 512 MiB to 4 GiB."`
	JqIdle           Age  `name:"jq-idle" default:"1m" placeholder:"TIME" help:"How long a worker waits for the next jq program. 0: workers do not wait."`

	CallTimeout      Age         `min:"1" to:"Server.CallTimeout" default:"50s" placeholder:"TIME" help:"Time limit of one call; many clients give up at 60 s."`
	AskTimeout       Age         `hidden:"" min:"1" to:"Server.AskTimeout" default:"10m" placeholder:"TIME" help:"Time limit for the client to answer a question of another server."`
	MaxMessage       size        `min:"1024" to:"Server.MaxMessage" default:"16MiB" placeholder:"SIZE" help:"Maximum size of one protocol message."`
	MaxCalls         int         `min:"1" to:"Server.MaxCalls" default:"64" placeholder:"N" help:"Maximum number of concurrent calls; further ones are asked to try again."`
	RatePerIdentity  server.Rate `to:"Server.Rate" placeholder:"R,BURST" help:"Calls of one identity over HTTP: R a second, BURST at once after a pause, such as 5,10. Calls of tools and reads of resources count; over it the answer is 429 with Retry-After. Default: no limit."`
	CallsPerIdentity int         `min:"0" to:"Server.OwnerCalls" default:"0" placeholder:"N" help:"Maximum number of concurrent calls of one identity over HTTP, counted and refused in the same way. 0: no limit."`
	EofGrace         Age         `to:"Server.EOFGrace" name:"eof-grace" default:"30s" placeholder:"TIME" help:"Time after the end of standard input for calls that are still running."`
}

// documentsSettings are bounds of deliver.
type documentsSettings struct {
	MaxParts      int `min:"1" to:"Deliver.MaxParts" default:"20" placeholder:"N" help:"Parts of one document after which deliver stops."`
	OutlineTokens int `min:"1" to:"Deliver.OutlineTokens" default:"150" placeholder:"N" help:"Tokens of the outline in an answer of deliver."`
}

// endpointSettings are the model that this program asks itself.
type endpointSettings struct {
	EndpointURL         string `name:"endpoint-url" to:"Endpoint.URL" placeholder:"URL" help:"OpenAI-compatible API that generate asks, such as http://127.0.0.1:8080/v1."`
	EndpointName        string `to:"Endpoint.Name" placeholder:"NAME" help:"Model, as the endpoint knows it."`
	EndpointKeyFile     string `to:"Endpoint.KeyFile" placeholder:"FILE" help:"File with the endpoint's key, which only its owner may read."`
	EndpointContext     int    `to:"Endpoint.Context" placeholder:"TOKENS" help:"Context window of the endpoint's model. Default: that of the profile."`
	EndpointProfile     string `to:"Endpoint.Profile" enum:"default,lfm2.5-1.2b" default:"default" help:"Parameters that are sent with a request: ${enum}."`
	EndpointAllowRemote bool   `to:"Endpoint.AllowRemote" help:"Allow an endpoint on another machine: what is sent leaves this one."`
	EndpointTimeout     Age    `min:"1" to:"Endpoint.Timeout" default:"5m" placeholder:"TIME" help:"Time without a byte from the endpoint after which a request is given up, as it is after ten times that in all."`

	EndpointEmbeddings string `placeholder:"NAME" help:"Embedding model of the endpoint, with which ask also finds passages by their meaning: it gets the passages of indexed files. Default: none, the built-in table is used."`

	EndpointPrice string `placeholder:"IN,OUT" help:"Price of a million tokens sent, and of a million received, such as 0.25,2: investigate then prints what it cost."`
	InvestigateBy string `enum:"agent,endpoint" default:"agent" help:"Who answers the orders of the tool investigate: agent, the client's own, or endpoint."`
	AskBy         string `enum:"agent,endpoint" default:"agent" help:"Who answers the questions of the tool ask: agent, the client's own, from the facts, or endpoint."`
	Meaning       string `enum:"on,off" default:"on" help:"Whether ask also finds passages by their meaning, with a built-in table for English, where words find little: on or off. An embedding model of the endpoint goes before it."`
	Extraction    string `enum:"rules,model" default:"rules" help:"Who chooses the facts of a passage for the answer of an endpoint: rules, or model, with at most 5 requests more a search."`
}

// commandsSettings are what commands may do.
type commandsSettings struct {
	Toolsets     []string `placeholder:"NAME" sep:"," help:"Toolsets to offer: core (the default), shell (run), documents (deliver), write (edit, write, move, remove), investigation (investigate), answers (ask), all; separated by commas."`
	Sandbox      string   `to:"Shell.Mode" enum:"required,best-effort,off" default:"required" help:"How commands of run are contained. required: they run only if every layer holds; best-effort: with the layers that this machine has; off: not at all."`
	AllowWrite   []string `placeholder:"DIR" sep:"none" help:"Directory below the roots that commands of run, and the tools of the toolset write, may change; repeatable."`
	Confirm      bool     `to:"Write.Confirm" help:"Ask the client before each change that a tool of the toolset write makes, with the diff."`
	AllowRead    []string `placeholder:"DIR" sep:"none" help:"Further directory that commands may read; repeatable."`
	AllowCache   []string `placeholder:"DIR" sep:"none" help:"Cache outside the roots, such as ~/go/pkg/mod, that commands may read and write; repeatable."`
	AllowNet     bool     `to:"Shell.AllowNet" help:"Let commands use the network."`
	AllowProgram []string `to:"Shell.AllowProgram" placeholder:"NAME" sep:"," help:"Program that commands may name; repeatable. A help against mistakes, no boundary. Default: all."`
	RunTools     []string `to:"Shell.Tools" placeholder:"NAME" sep:"," help:"Tool that commands may call by funnel although it may change something; repeatable. Default: read-only ones alone."`
	KeepEnv      []string `to:"Shell.KeepEnv" placeholder:"NAME" sep:"," help:"Environment variable that commands get; repeatable. Default: PATH, the language and the time zone."`
	Shell        string   `to:"Shell.Shell" placeholder:"FILE" help:"Program that runs commands, with -c. Default: bash where it is installed, else /bin/sh."`
	Slice        Age      `min:"1" to:"Shell.Slice" default:"45s" placeholder:"TIME" help:"Time within which a call of run or ask answers; a command that takes longer continues."`
	RunTimeout   Age      `min:"1" to:"Shell.MaxTimeout" default:"10m" placeholder:"TIME" help:"The longest time of one command."`
	RunMemory    size     `to:"Shell.Memory" min:"16777216" default:"4GiB" placeholder:"SIZE" help:"Memory limit of a command and all that it starts."`
	RunProcesses int      `to:"Shell.Processes" min:"4" default:"1024" placeholder:"N" help:"Maximum number of processes and threads of a command."`
	ScratchSize  size     `to:"Shell.ScratchMax" min:"1" default:"2GiB" placeholder:"SIZE" help:"Maximum size of the temporary files, home and caches of commands."`
	Deltas       bool     `to:"!Shell.NoDeltas" default:"true" negatable:"" help:"Say what changed since the last stored output of the same command, or of the same call of a read-only tool of another server."`
}

// httpSettings are the server over HTTP.
type httpSettings struct {
	HTTP            string   `name:"http" placeholder:"ADDR" help:"Serve MCP over HTTP at /mcp of this address instead of stdio: 8080, 127.0.0.1:8080; 0.0.0.0:8080 needs a token that you chose."`
	SSE             bool     `to:"HTTP.SSE" name:"sse" help:"With --http, also serve old clients: /sse and /message of protocol 2024-11-05."`
	HTTPView        bool     `name:"view" help:"With --http, also serve pages for people at /view: what agents saw and what it cost. Each person signs in with a token and sees what belongs to its identity."`
	TokenFile       string   `placeholder:"FILE" help:"The token of HTTP clients, or lines \"identity: token\"; mode 0600. Default: $MCP_FUNNEL_TOKEN, else a token generated once and kept in the store."`
	OAuthIssuer     string   `to:"OAuth.Issuer" name:"oauth-issuer" placeholder:"URL" help:"Also accept access tokens of this OAuth issuer, written as in its tokens: https, or http on this machine. No other token is generated then."`
	OAuthAudience   []string `to:"OAuth.Audiences" name:"oauth-audience" placeholder:"URI" sep:"," help:"What access tokens are for (aud), one of several: first the URL of /mcp as clients know it, such as https://funnel.example/mcp."`
	OAuthScope      []string `to:"OAuth.Scopes" name:"oauth-scope" placeholder:"SCOPE" sep:"," help:"Scope that access tokens need; of several all."`
	AllowHost       []string `to:"HTTP.Hosts" placeholder:"NAME" sep:"," help:"Host name that HTTP clients may use for this server besides localhost; repeatable."`
	AllowOrigin     []string `to:"HTTP.Origins" placeholder:"ORIGIN" sep:"," help:"Origin of web pages that may call this server, besides its own; repeatable."`
	LinkBase        string   `placeholder:"URL" help:"URL at which others reach this server, such as https://funnel.example: receipts over HTTP then have a link that reads the output without a token for 15 minutes, and mcp-funnel link makes more."`
	HTTPConnections int      `min:"1" to:"HTTP.Connections" name:"http-connections" default:"1024" placeholder:"N" help:"Maximum number of HTTP connections; idle ones are closed first. With several identities each may use three quarters."`
	HTTPSessions    int      `min:"1" to:"HTTP.Sessions" name:"http-sessions" default:"1024" placeholder:"N" help:"Maximum number of HTTP sessions; idle ones end first."`
	HTTPIdle        Age      `min:"1" to:"HTTP.Idle" name:"http-idle" default:"12h" placeholder:"TIME" help:"Time after which an unused HTTP session ends."`

	TokenRoots map[string]map[string][]string `kong:"-" to:"OAuth.Roots"` // the key roots of the configuration file

	SessionKeyFile string `placeholder:"FILE" help:"32 random bytes or more, mode 0600, that all replicas behind one address share: each then continues the HTTP sessions of the others, up to --http-idle after they were opened. Default: sessions end with their server."`
	Replica        string `placeholder:"NAME" help:"Name of this server among its replicas, in log lines, metrics and _meta. Default: the name of the host."`
	Drain          Age    `default:"20s" placeholder:"TIME" help:"Time that running calls get after SIGTERM, which first turns /readyz to 503 for at least 2 s. 0: the server ends at once."`
}

// logSettings are log lines.
type logSettings struct {
	LogFormat string `enum:"text,json" default:"text" help:"Format of log lines on standard error: text or json."`
	LogLevel  string `enum:"debug,info,warn,error" default:"warn" help:"Lowest level that is logged: debug, info, warn or error."`
}

// allToolsets stands for every toolset.
const allToolsets = "all"

// ToolsetNames returns the names of the toolsets to offer.
func (s *Settings) ToolsetNames() []string {
	if slices.Contains(s.Toolsets, allToolsets) {
		return server.Toolsets
	}
	return s.Toolsets
}

// Groups are the groups of settings, in the order of the help.
var Groups = []kong.Group{
	{Key: "setup", Title: "Set-up"},
	{Key: "shown", Title: "Answers"},
	{Key: "budget", Title: "Budget"},
	{Key: "limits", Title: "Limits"},
	{Key: "documents", Title: "Documents"},
	{Key: "endpoint", Title: "Endpoint"},
	{Key: "commands", Title: "Commands"},
	{Key: "http", Title: "HTTP"},
	{Key: "log", Title: "Logs"},
}

// size is a number of bytes, written as 1048576, 1MiB, 1MB or 1.5g.
type size int64

// UnmarshalText implements [encoding.TextUnmarshaler].
func (s *size) UnmarshalText(text []byte) error {
	n, err := tools.ParseSize(string(text))
	*s = size(n)
	return err
}

// Age is a time span, written as 90s, 12h, 7d or 2w.
type Age time.Duration

// UnmarshalText implements [encoding.TextUnmarshaler].
func (a *Age) UnmarshalText(text []byte) error {
	t := strings.TrimSpace(string(text))
	for unit, days := range map[string]float64{"d": 1, "w": 7} {
		number, ok := strings.CutSuffix(t, unit)
		if n, err := strconv.ParseFloat(number, 64); ok && err == nil && n >= 0 && n*days < 36500 {
			*a = Age(n * days * 24 * float64(time.Hour))
			return nil
		}
	}
	d, err := time.ParseDuration(t)
	if err != nil || d < 0 {
		return fmt.Errorf("%.60q is not a time span; write 90s, 12h, 7d or 2w", t)
	}
	*a = Age(d)
	return nil
}
