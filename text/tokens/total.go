package tokens

import (
	"math"
	"strconv"
)

// Total is a number of tokens with its margin of error.
type Total struct {
	N         int64
	Margin    float64 // 0: exact; 0.01: within 1 %
	Estimated bool    // estimated by the factor of a [Model]
}

// String formats an exact count as a plain number, an estimate from samples as "~24600 ±1 %", and an estimate by a
// model's factor as "≈8400 ±35 %". The margin is rounded up to 0.1 %. An estimate has three significant digits, or
// more if the margin is narrower than the digits left out.
func (t Total) String() string {
	if t.Margin <= 0 {
		return strconv.FormatInt(t.N, 10)
	}
	percent := max(math.Ceil(t.Margin*1000)/10, 0.1)
	unit := int64(1)
	for t.N/unit >= 1000 {
		unit *= 10
	}
	for unit > 1 && float64(unit) > float64(t.N)*percent/100 {
		unit /= 10
	}
	sign := "~"
	if t.Estimated {
		sign = "≈"
	}
	return sign + strconv.FormatInt((t.N+unit/2)/unit*unit, 10) +
		" ±" + strconv.FormatFloat(percent, 'g', -1, 64) + " %"
}

// forModel converts a total of the model's encoding to a total of the model. The margins are combined.
func (t Total) forModel(m Model) Total {
	if m.Estimated() {
		t = Total{
			N: int64(math.Ceil(m.Factor * float64(t.N))), Margin: min(1, m.Error+t.Margin*(1+m.Error)), Estimated: true,
		}
	}
	return t
}

// Recount converts a total counted for one model to another model without the text. ok is false if the vocabularies
// of the models differ.
func Recount(t Total, from, to Model) (_ Total, ok bool) {
	switch {
	case from == to:
		return t, true
	case from.Encoding != to.Encoding:
		return Total{}, false
	case from.Estimated():
		t = Total{N: int64(float64(t.N) / from.Factor), Margin: max(0, t.Margin-from.Error) / (1 + from.Error)}
	}
	return t.forModel(to), true
}

// plus returns the total of two texts.
func (t Total) plus(o Total) Total {
	sum := Total{N: t.N + o.N}
	if sum.N > 0 {
		sum.Margin = min(1, (float64(t.N)*t.Margin+float64(o.N)*o.Margin)/float64(sum.N))
	}
	return sum
}
