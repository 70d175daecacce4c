// Package intent checks the documents in which a model writes down what is wanted: the intent of a message, the tasks
// of a plan, and one action.
//
// Every rule is one that a program can decide. It reads JSON text without prose around it; a caller that has a whole
// answer takes the JSON out first.
package intent

import (
	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// Check checks a document of one level.
func Check(level Level, doc []byte, o Options) Report {
	if o.Tokens == nil {
		o.Tokens = func(text []byte) int64 { return int64(len(text)) }
	}
	c := &checker{Options: o}
	fields, fault := parse(doc)
	switch {
	case fault != "":
		c.fault("%s", fault)
	case level == Intent:
		c.intent(fields)
	case level == Tasks:
		c.tasks(fields)
	case level == Action:
		c.action(fields)
	default:
		c.fault("level: %q is not one of %s, %s, %s", string(level), Intent, Tasks, Action)
	}
	if c.left > 0 {
		c.Faults = append(c.Faults, content.Plural(int64(c.left), "more fault", "more faults"))
	}
	return c.Report
}
