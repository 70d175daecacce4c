package intent

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/mcp-funnel/mcp-funnel/text/content"
)

var planFields = []field{
	{"overview", someText, (*checker).text}, userMessage,
	{"tasks", "a list of tasks that is not empty", (*checker).taskList},
}

var (
	taskID        = field{"id", `a text such as "task_1"`, (*checker).text}
	taskObjective = field{"objective", someText, (*checker).text}
	taskQuality   = field{quality.name, quality.allowed, (*checker).partialQuality}
	taskOptional  = []field{dataType, expectedFormats, taskQuality, successCriteria}
	taskFields    = append([]field{taskID, taskObjective}, taskOptional...)
)

// tasks checks a plan. A task inherits from the intent what it leaves out.
func (c *checker) tasks(o object) {
	workflow, ok := c.workflow()
	c.fields("", o, planFields)
	all, _ := listOf(o["tasks"])
	if !ok && len(all) > 0 {
		c.note("tasks not compared with the intent: it is unknown")
	}
	for i, raw := range all {
		if task, isObject := objectOf(raw); isObject && ok {
			c.differences(i, task, workflow)
		}
	}
}

// workflow returns the fields of the intent that the document belongs to. If the caller has named another
// document in its place, that is a fault.
func (c *checker) workflow() (object, bool) {
	if c.Intent == nil {
		return nil, false
	}
	o, fault := parse(c.Intent)
	if fault == "" {
		for _, f := range intentFields {
			if _, ok := o[f.name]; !ok {
				fault = f.name + " is missing"
				break
			}
		}
	}
	if fault != "" {
		c.fault("intent: the document that was named is not an intent (%s); name the one that was checked as intent", fault)
		return nil, false
	}
	return o, true
}

func (c *checker) taskList(f field, at string, raw jsontext.Value) {
	all, ok := listOf(raw)
	switch {
	case !ok:
		c.wrong(f, at, raw)
	case len(all) == 0:
		c.fault("%s: the list is empty; give %s", at, f.allowed)
	}
	seen := map[string]int{}
	for i, raw := range all {
		at := item(at, i)
		task, ok := objectOf(raw)
		if !ok {
			c.fault("%s: %s is not an object {id, objective, …}", at, shown(raw))
			continue
		}
		c.required(at+".", task, []field{taskID, taskObjective})
		c.optional(at+".", task, taskOptional)
		c.unknown(at+".", task, taskFields, false)
		if id, ok := textOf(task[taskID.name]); ok {
			if first, double := seen[id]; double {
				c.fault("%s.id: %s is the id of %s too; give each task its own", at, shown(task[taskID.name]), item("tasks", first))
			} else {
				seen[id] = i
			}
		}
	}
}

// partialQuality checks thresholds of which a task may leave out either.
func (c *checker) partialQuality(f field, at string, raw jsontext.Value) {
	o, ok := objectOf(raw)
	if !ok {
		c.wrong(f, at, raw)
		return
	}
	c.optional(at+".", o, thresholds)
	c.unknown(at+".", o, thresholds, true)
}

// values are those that a task takes from the intent where it has none.
type values struct {
	dataType string
	formats  []string           // sorted
	quality  map[string]float64 // by name of the threshold
}

// valuesOf returns the values that a document states: "unknown", [] and null state none.
func valuesOf(o object) (v values) {
	if v.dataType, _ = textOf(o[dataType.name]); v.dataType == unclear {
		v.dataType = ""
	}
	formats, _ := listOf(o[expectedFormats.name])
	for _, raw := range formats {
		if s, ok := textOf(raw); ok {
			v.formats = append(v.formats, s)
		}
	}
	slices.Sort(v.formats)
	v.formats = slices.Compact(v.formats)
	v.quality = map[string]float64{}
	q, _ := objectOf(o[quality.name])
	for _, f := range thresholds {
		if n, ok := numberOf(q[f.name]); ok {
			v.quality[f.name] = n
		}
	}
	return v
}

// overlaid returns the effective values of a task: its own, and those of the workflow where it has none.
func (workflow values) overlaid(task values) values {
	task.dataType = cmp.Or(task.dataType, workflow.dataType)
	if len(task.formats) == 0 {
		task.formats = workflow.formats
	}
	for name, n := range workflow.quality {
		if _, ok := task.quality[name]; !ok {
			task.quality[name] = n
		}
	}
	return task
}

// differences notes the effective values of a task that are not those of the workflow.
func (c *checker) differences(i int, task, intent object) {
	name, _ := textOf(task[taskID.name])
	if name = strings.TrimSpace(name); name == "" {
		name = item("tasks", i)
	}
	name = shownName(name)
	workflow := valuesOf(intent)
	v := workflow.overlaid(valuesOf(task))
	if v.dataType != workflow.dataType {
		c.differs(name, v.dataType, workflow.dataType, dataType.name)
	}
	missing := func(f string) bool { return !slices.Contains(workflow.formats, f) }
	switch is, not := strings.Join(v.formats, ", "), strings.Join(workflow.formats, ", "); {
	case slices.Equal(v.formats, workflow.formats):
	case !slices.ContainsFunc(v.formats, missing): // "pdf, not pdf, xlsx" would contradict itself
		c.note("%s: only %s of %s", name, shownName(is), shownName(not))
	default:
		c.differs(name, is, not, "format")
	}
	for _, f := range thresholds {
		n, states := v.quality[f.name]
		w, wanted := workflow.quality[f.name]
		not := ""
		if wanted {
			not = strconv.FormatFloat(w, 'g', -1, 64)
		}
		if states != wanted || n != w { // it inherits what it does not state
			c.differs(name, f.name+" "+strconv.FormatFloat(n, 'g', -1, 64), not, f.name)
		}
	}
}

func (c *checker) differs(task, is, not, what string) {
	if not == "" {
		c.note("%s: %s; the intent names no %s", task, shownName(is), what)
		return
	}
	c.note("%s: %s, not %s", task, shownName(is), shownName(not))
}

var actionFields = []field{
	{"action", someText, (*checker).text},
	{"actionObjective", someText, (*checker).text},
	dataType, expectedFormats, quality, successCriteria, userMessage,
	{"learnings", "a list of texts, [] for none", (*checker).textList},
	{"requiredInputDocuments", "a list of names (obs:ID or a path), [] for none", (*checker).inputs},
	{"requiredConnection", `a text, "" for none`, (*checker).anyText},
	{"parametersContext", `a text, "" for none`, (*checker).inputsInText},
}

// action checks one action. It inherits nothing: every value comes from its own objective.
func (c *checker) action(o object) {
	c.fields("", o, actionFields)
	workflow, ok := c.workflow()
	if !ok {
		return
	}
	objective, _ := textOf(o["actionObjective"])
	formats, wanted := valuesOf(o).formats, valuesOf(workflow).formats
	named := formatsIn(objective)
	if len(formats) == 0 || len(named) == 0 || !slices.Equal(formats, wanted) {
		return
	}
	if !slices.ContainsFunc(formats, func(f string) bool { return slices.Contains(named, f) }) {
		c.fault("expectedFormats: %s is the workflow's, and actionObjective names %s; take the values from actionObjective",
			strings.Join(formats, ", "), strings.Join(named, ", "))
	}
}

func (c *checker) textList(f field, at string, raw jsontext.Value) { c.texts(f, at, raw) }

func (c *checker) inputs(f field, at string, raw jsontext.Value) {
	names, _ := c.texts(f, at, raw)
	for i, name := range names {
		if strings.TrimSpace(name) != "" {
			c.existsIn(at, item(at, i), name)
		}
	}
}

var handle = content.Pattern(`\bobs:[0-9a-z]{12}\b`)

// inputsInText checks a text that may name observations.
func (c *checker) inputsInText(f field, at string, raw jsontext.Value) {
	c.anyText(f, at, raw)
	s, _ := textOf(raw)
	for _, name := range slices.Compact(slices.Sorted(slices.Values(handle().FindAllString(s, -1)))) {
		c.existsIn(at, at, name)
	}
}

// existsIn is exists for one of several names, which share one note.
func (c *checker) existsIn(field, at, name string) {
	if c.Known == nil {
		at = field
	}
	c.exists(at, name)
}
