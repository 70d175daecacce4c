package channels

const (
	serverName = "io.github.mcp-funnel/mcp-funnel"
	project    = "https://github.com/mcp-funnel/mcp-funnel"
)
