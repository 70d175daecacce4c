package cases

import "testing"

func TestSheets(t *testing.T) {
	try(t, []one{
		{dir: "spreadsheets", args: call("read", "path=signs.xlsx"), has: []string{
			"f0 | -5000\n", "f1 | -500\n", "f2 | (7)\n", "f3 | -1,234.50\n", "f5 | 10:06:40.320\n", "f6 | 15:07.2\n",
			"f7 | 18:01:48.00\n", "f8 | -12.5%\n", "f9 | -5.00\n", "f10 | -20.00\n", "f11 | -99.50\n",
		}},
		{dir: "spreadsheets", args: call("read", "path=nocache.xlsx"), has: []string{
			"Total | =SUM(B2:B3)\n | =B4*12\n", "2 formulas without a saved value",
		}},
		{dir: "spreadsheets", args: call("read", "path=extras.xlsx"), has: []string{
			"comment on B2: Rises to 950 from May\n", "text box: All figures in thousand CHF\n",
			"link of A2: https://lease.example/contract-88\n", "Strictly for the board\n",
		}},
		{dir: "spreadsheets", args: call("read", "path=lead.xlsx"), has: []string{"\n |  | 9\n | 3 | 4\n", "line 4 is T!A4"}},
		{dir: "spreadsheets", args: call("read", "path=rich.xlsx"), has: []string{"| line one line two A\n"}},
		{
			dir: "tables", args: call("jq", "source=nohead.csv", "slurp=true", "filter=length"),
			has: []string{"the first row, taken as the header, looks like data"},
		},
		{
			dir: "tables", args: call("slice", "source=nohead.csv", "records=0-1"),
			has: []string{"the first row, taken as the header, looks like data"},
		},
	})
}
