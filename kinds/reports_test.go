package kinds

import (
	"slices"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// TestReportsInXML: the failed tests of a report are named with their message, in any division into lines and blocks.
func TestReportsInXML(t *testing.T) {
	const rounding = `<testcase name="rounding" classname="shop.Tax">`
	type row struct{ Text, Total, Says string }
	for _, c := range append(expect.Table[row](t, "testdata/reports.tsv"),
		row{"<testsuite>" + strings.Repeat(rounding+"<failure message='m'/></testcase>\n", 10), "10 tests, 10 failed",
			"… and 2 more failed tests"},
		row{"<testsuite><testcase name='a'><failure message='" + strings.Repeat("é\" ", 9000) + "'/></testcase>",
			"1 test, 1 failed", "failed test, line 1: a: é"},
		row{"<testsuite><testcase name='a'><system-out><![CDATA[" + strings.Repeat("a > b ]] ", 3000) + "]]></system-out>" +
			"</testcase><!-- " + strings.Repeat("> -", 5000) + " -->" + rounding + "<failure message='m'/>", "2 tests, 1 failed",
			"failed test, line 1: shop.Tax: rounding: m"},
	) {
		for _, size := range []int{len(c.Text), 1, 7} {
			for _, name := range []string{"", "report.xml"} {
				d := New(name)
				for part := range slices.Chunk([]byte(c.Text), size) {
					_, _ = d.Write(part)
				}
				sum := d.Close()
				if total, says := strings.Join(sum.Total, "; "), strings.Join(sum.Says, "\n"); total != c.Total && sum.Kind == content.JUnit ||
					!strings.Contains(says, c.Says) {
					t.Errorf("%.200s: %q; want %q:\n%s\nwant\n%s", c.Text, total, c.Total, says, c.Says)
				}
			}
		}
	}
}
