package write_test

import (
	"os"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/built"
)

func TestMain(m *testing.M) { os.Exit(built.Main(m)) }
