package investigate

import (
	"cmp"
	"time"

	"github.com/mcp-funnel/mcp-funnel/tools/investigate/entries"
	"github.com/mcp-funnel/mcp-funnel/tools/investigate/plan"
)

// evaluation compares what the plan allotted with what was used.
type evaluation struct {
	PlanOrder             string         `json:"plan_order"`
	TotalDirsInvestigated int            `json:"total_dirs_investigated"`
	TotalTurnsAllocated   int            `json:"total_turns_allocated"`
	TotalTurnsUsed        int            `json:"total_turns_used"`
	OverallUtilization    float64        `json:"overall_utilization"` // 0 if nothing was allotted
	PerDirectory          []dirEvaluated `json:"per_directory"`
	EvaluatedAt           time.Time      `json:"evaluated_at"`
	TurnsAre              string         `json:"turns_are"` // calls or completions
}

// dirEvaluated is the evaluation of one order, under the first of its directories.
type dirEvaluated struct {
	Dir            string    `json:"dir"`
	PlannedTier    plan.Tier `json:"planned_tier"`
	TurnsAllocated int       `json:"turns_allocated"`
	TurnsUsed      int       `json:"turns_used"`
	Utilization    float64   `json:"utilization"`
	Completeness   *float64  `json:"completeness,omitempty"`
	Confidence     *float64  `json:"confidence,omitempty"`
}

// evaluate writes plan_evaluation.json.
func evaluate(w *work) error {
	e := evaluation{
		PlanOrder: cmp.Or(w.plan.Order, plan.LeafFirst), EvaluatedAt: w.now().UTC(), TurnsAre: "calls",
		PerDirectory: []dirEvaluated{},
	}
	if w.i.options.Thinker != nil {
		e.TurnsAre = "completions"
	}
	for _, o := range w.orders {
		if o.Step != entries.Directory || o.Answered == nil {
			continue
		}
		allotted := 0
		for _, d := range o.Dirs {
			allotted = max(allotted, d.Turns)
		}
		e.TotalTurnsAllocated += allotted
		e.TotalTurnsUsed += o.Turns
		for n, d := range o.Dirs {
			note := w.notes[d.Path]
			one := dirEvaluated{Dir: d.Path, PlannedTier: d.Tier, Completeness: note.Completeness, Confidence: note.Confidence}
			if n == 0 { // the turns of an order are those of its first directory
				one.TurnsAllocated, one.TurnsUsed = allotted, o.Turns
				one.Utilization = share(o.Turns, allotted)
			}
			e.PerDirectory = append(e.PerDirectory, one)
		}
	}
	e.TotalDirsInvestigated = len(e.PerDirectory)
	e.OverallUtilization = share(e.TotalTurnsUsed, e.TotalTurnsAllocated)
	return w.inv.Write(entries.EvaluationName, e)
}

func share(part, whole int) float64 {
	if whole == 0 {
		return 0
	}
	return float64(part) / float64(whole)
}
