package facts

import "testing"

// TestCovered adds weights whose sum depends on their order: it is the same each time, and for each order of the words.
func TestCovered(t *testing.T) {
	q := Query{Terms: map[string]float64{"alpha": 1.1, "beta": 2.3, "gamma": 0.7, "delta": 3.3, "epsilon": 1.7}}
	for name, texts := range map[string][]string{
		"none": {"", "zeta"},
		"some": {"alpha beta gamma delta", "delta gamma beta alpha", "beta alpha beta delta gamma"},
		"all":  {"alpha beta gamma delta epsilon", "epsilon delta gamma beta alpha"},
	} {
		first := q.Covered(texts[0])
		for range 100 {
			for _, text := range texts {
				if got := q.Covered(text); got != first {
					t.Fatalf("%s: %q covers %v, and %q %v", name, texts[0], first, text, got)
				}
			}
		}
	}
}
