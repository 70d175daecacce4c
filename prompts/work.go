package prompts

import (
	"slices"
	"strings"
	"sync"
)

// works are the prompts for pieces of work: not offered to users, but given to whoever thinks.
var works = []string{"survey", "plan", "directory", "report", "answer", "extract"}

// WorkPrompt is the prompt for a piece of work. Orders of the tool end with Order; a conversation at an endpoint begins
// with System.
type WorkPrompt struct {
	Order  string // the shape of the answer, in few words; {{order}} stands for the order's name
	System string
	Again  string // short form of Order for one who has answered such an order; "": there is none
}

var loadWorks = sync.OnceValue(func() map[string]WorkPrompt {
	all := map[string]WorkPrompt{}
	for _, name := range works {
		order, system, found := strings.Cut(must(files.ReadFile(name+".md")), "\n---\n")
		system, again, _ := strings.Cut(system, "\n---\n")
		if !found {
			panic("prompts: " + name + ".md: a line --- must stand between what an order says and what a conversation says")
		}
		all[name] = WorkPrompt{
			Order: strings.TrimSpace(order), System: strings.TrimSpace(system), Again: strings.TrimSpace(again),
		}
	}
	return all
})

// Work returns the prompt for a piece of work: survey, plan, directory, report, answer or extract. It panics for
// another name.
func Work(name string) WorkPrompt {
	if !slices.Contains(works, name) {
		panic("prompts: no work is called " + name)
	}
	return loadWorks()[name]
}

// Fence returns a text between two fences that it cannot leave, with its hidden characters escaped: text of files is
// data and no instruction.
func Fence(text string) string { return fence(text) }
