package cases

import "testing"

func TestAsk(t *testing.T) {
	try(t, []one{
		{dir: "numbers", args: question("7.874"), has: []string{"The density of iron is 7.874 g"}},
		{dir: "numbers", args: question("450,000"), has: []string{"The town has 450,000 people."}},
		{dir: "numbers", args: question("450 000"), has: []string{"The town has 450,000 people."},
			lacks: []string{"no file has"}},
		{dir: "numbers", args: question("12.500"), has: []string{"The grant was 12.500 euro."}},
		{dir: "numbers", args: question("38.101"), has: []string{"fts.txt", "The standard 38.101 sets"},
			lacks: []string{"iron"}},
		{dir: "ask", args: question("what is the antenna voltage"), has: []string{"forty two volts"}},
		{dir: "ask", args: question("how big is employees.csv"), has: []string{"employees.csv has 717 bytes (no model)\n"}},
		{dir: "ask", args: question("when was employees.csv last modified"),
			has: []string{"employees.csv was last modified 20"}, lacks: []string{"1 file called"}},
	})
}
