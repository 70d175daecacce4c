package conformance

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

const workflowsDir = "../.github/workflows"

// workflow is what the rules read of a workflow.
type workflow struct {
	On          map[string]any
	Permissions any
	Concurrency any
	Jobs        map[string]*workflowJob
	text        string
}

type workflowJob struct {
	RunsOn      string `yaml:"runs-on"`
	Timeout     any    `yaml:"timeout-minutes"`
	Permissions any
	Environment any
	Secrets     any
	Strategy    struct{ Matrix map[string][]string }
	Steps       []struct {
		Uses, Run string
		With      map[string]any
	}
}

func parseWorkflow(text string) (workflow, error) {
	w := workflow{text: text}
	return w, yaml.Unmarshal([]byte(text), &w)
}

var (
	pinned     = regexp.MustCompile(`^[\w-]+/[\w./-]+@[0-9a-f]{40}$`)
	usesLine   = regexp.MustCompile(`(?m)^\s*(?:- )?uses:(.*)$`)
	versioned  = regexp.MustCompile(`^ \S+@[0-9a-f]{40} # v\d+\.\d+\.\d+$`)
	fixed      = regexp.MustCompile(`^(ubuntu|macos|windows)-\d+(\.\d+)?$`)
	makeCall   = regexp.MustCompile(`\bmake ([a-z][\w-]*)`)
	scriptName = regexp.MustCompile(`(?:^|[\s("])((?:\.ci|scripts)/[\w./-]+)`)
	makefile   = regexp.MustCompile(`(?m)^([a-z][\w-]*):`)
)

// workflowRules find in a workflow what lets a stranger, or a stolen tag of an action, act with its rights.
var workflowRules = map[string]func(w workflow, found func(format string, a ...any)){
	"pinned": func(w workflow, found func(string, ...any)) {
		for name, job := range w.Jobs {
			for _, step := range job.Steps {
				if step.Uses != "" && !pinned.MatchString(step.Uses) {
					found("%s: %s is not pinned by a commit", name, step.Uses)
				}
			}
		}
		for _, line := range usesLine.FindAllStringSubmatch(w.text, -1) {
			if !versioned.MatchString(line[1]) {
				found("%s has no version as comment", line[1])
			}
		}
	},
	"permissions": func(w workflow, found func(string, ...any)) {
		if p, ok := w.Permissions.(map[string]any); !ok || len(p) > 0 {
			found("the workflow itself has permissions")
		}
		_, fromForks := w.On["pull_request"]
		for name, job := range w.Jobs {
			p, ok := job.Permissions.(map[string]any)
			if !ok {
				found("%s: permissions are not named one by one", name)
			}
			for what, access := range p {
				if access == "read" {
					continue
				}
				if fromForks {
					found("%s: %s: %v in a workflow of pull requests", name, what, access)
				}
				if job.Environment != "release" {
					found("%s: %s: %v without an approval", name, what, access)
				}
			}
		}
	},
	"credentials": func(w workflow, found func(string, ...any)) {
		for name, job := range w.Jobs {
			for _, step := range job.Steps {
				if strings.HasPrefix(step.Uses, "actions/checkout@") && step.With["persist-credentials"] != false {
					found("%s: checkout leaves its token in the work tree", name)
				}
			}
		}
	},
	"triggers": func(w workflow, found func(string, ...any)) {
		for on := range w.On {
			if !slices.Contains([]string{"push", "pull_request", "schedule"}, on) {
				found("on %s", on)
			}
		}
	},
	"injection": func(w workflow, found func(string, ...any)) {
		for name, job := range w.Jobs {
			for _, step := range job.Steps {
				if strings.Contains(step.Run, "${{") {
					found("%s: an expression becomes part of a script: %s", name, step.Run)
				}
			}
		}
	},
	"secrets": func(w workflow, found func(string, ...any)) {
		if strings.Contains(w.text, "secrets") {
			found("it reads secrets: tokens are to be short-lived, of the job")
		}
	},
	"caches": func(w workflow, found func(string, ...any)) {
		if _, fromForks := w.On["pull_request"]; fromForks {
			return
		}
		off := map[string]string{"actions/setup-go": "cache", "actions/setup-node": "package-manager-cache"}
		for name, job := range w.Jobs {
			for _, step := range job.Steps {
				action, _, _ := strings.Cut(step.Uses, "@")
				setting, has := off[action]
				caches := step.With["cache"] != nil && step.With["cache"] != false
				if has && (caches || step.With[setting] != false) || strings.HasPrefix(action, "actions/cache") {
					found("%s: %s takes what others may have written into a cache", name, action)
				}
			}
		}
	},
	"bounds": func(w workflow, found func(string, ...any)) {
		if w.Concurrency == nil {
			found("no concurrency group")
		}
		for name, job := range w.Jobs {
			if job.Timeout == nil {
				found("%s: no timeout", name)
			}
			systems := []string{job.RunsOn}
			if key, ok := strings.CutPrefix(job.RunsOn, "${{ matrix."); ok {
				systems = job.Strategy.Matrix[strings.TrimSuffix(key, " }}")]
			}
			if len(systems) == 0 || slices.ContainsFunc(systems, func(s string) bool { return !fixed.MatchString(s) }) {
				found("%s: runs on %q", name, systems)
			}
		}
	},
	"commands": func(w workflow, found func(string, ...any)) {
		text, err := os.ReadFile("../Makefile")
		if err != nil {
			found("%v", err)
		}
		var targets []string
		for _, m := range makefile.FindAllStringSubmatch(string(text), -1) {
			targets = append(targets, m[1])
		}
		for name, job := range w.Jobs {
			for _, step := range job.Steps {
				for _, m := range makeCall.FindAllStringSubmatch(step.Run, -1) {
					if !slices.Contains(targets, m[1]) {
						found("%s: there is no make %s", name, m[1])
					}
				}
				for _, m := range scriptName.FindAllStringSubmatch(step.Run, -1) {
					if _, err := os.Stat(filepath.Join("..", m[1])); err != nil {
						found("%s: %v", name, err)
					}
				}
				if out, err := checkScript(step.Run, "bash", "-n"); err != nil {
					found("%s: %s", name, out)
				}
				if _, err := exec.LookPath("shellcheck"); err == nil {
					if out, err := checkScript(step.Run, "shellcheck", "-s", "bash", "-e", "SC2148", "-"); err != nil {
						found("%s: %s", name, out)
					}
				}
			}
		}
	},
}

func checkScript(script string, name string, args ...string) ([]byte, error) {
	cmd := exec.Command(name, args...)
	cmd.Stdin = strings.NewReader(script)
	return cmd.CombinedOutput()
}

// findings are those of all rules, each after the name of its rule.
func findings(t *testing.T, text string) (all []string) {
	t.Helper()
	w, err := parseWorkflow(text)
	expect.Must(t, err)
	for _, rule := range slices.Sorted(maps.Keys(workflowRules)) {
		workflowRules[rule](w, func(format string, a ...any) { all = append(all, rule+": "+fmt.Sprintf(format, a...)) })
	}
	return all
}

func readWorkflow(t *testing.T, name string) string {
	t.Helper()
	return string(expect.Value(os.ReadFile(filepath.Join(workflowsDir, name)))(t))
}

// TestWorkflows holds all workflows to the rules, and lets actionlint read them.
func TestWorkflows(t *testing.T) {
	files := expect.Value(filepath.Glob(workflowsDir + "/*"))(t)
	expect.Equal(t, len(files), 2, files)
	for _, file := range files {
		expect.EqualList(t, findings(t, readWorkflow(t, filepath.Base(file))), nil, file)
	}
	expect.Equal(t, actionlint(t, files...), "")
}

// actionlint returns what that program finds in workflows.
func actionlint(t *testing.T, files ...string) string {
	t.Helper()
	path := expect.Value(exec.Command("go", "-C", "../scripts/release", "tool", "-n", "actionlint").Output())(t)
	out, _ := exec.Command(strings.TrimSpace(string(path)), append([]string{"-no-color"}, files...)...).CombinedOutput()
	return string(out)
}

// TestWorkflowRulesFind breaks each rule in a copy of a workflow: a rule that finds nothing would guard nothing.
func TestWorkflowRulesFind(t *testing.T) {
	const checkout = "actions/checkout@3d3c42e5aac5ba805825da76410c181273ba90b1 # v7.0.1"
	for _, tt := range []struct{ file, old, new, want string }{
		{"ci.yml", checkout, "actions/checkout@v7 # v7.0.1", "pinned: lint: actions/checkout@v7 is not pinned"},
		{"ci.yml", checkout, "actions/checkout@3d3c42e # v7.0.1", "pinned: lint: actions/checkout@3d3c42e is not"},
		{"ci.yml", checkout, strings.TrimSuffix(checkout, " # v7.0.1"), "has no version as comment"},
		{"ci.yml", checkout, "docker://alpine:3", "pinned: lint: docker://alpine:3"},
		{"ci.yml", "permissions: {}\n", "", "permissions: the workflow itself"},
		{"ci.yml", "permissions: {}\n", "permissions: read-all\n", "permissions: the workflow itself"},
		{"ci.yml", "permissions: {contents: read}", "permissions: write-all", "permissions: lint: permissions are not named"},
		{"ci.yml", "    permissions: {contents: read}\n", "", "permissions: lint: permissions are not named"},
		{"ci.yml", "{contents: read}", "{contents: write}", "permissions: lint: contents: write in a workflow of pull"},
		{"release.yml", "environment: release", "environment: other", "permissions: github: contents: write without"},
		{"release.yml", "{contents: read}", "{id-token: write}", "permissions: build: id-token: write without"},
		{"release.yml", "persist-credentials: false", "fetch-tags: true", "credentials: build:"},
		{"ci.yml", "with: {persist-credentials: false}", "with: {persist-credentials: true}", "credentials: lint:"},
		{"ci.yml", "pull_request:", "pull_request_target:", "triggers: on pull_request_target"},
		{"ci.yml", "pull_request:", "workflow_run:", "triggers: on workflow_run"},
		{"ci.yml", "run: make lint", "run: echo ${{ github.event.pull_request.title }}", "injection: lint:"},
		{"release.yml", `check "$GITHUB_REF_NAME"`, `check "${{ github.ref_name }}"`, "injection: build:"},
		{"release.yml", "github.token", "secrets.TOKEN", "secrets: "},
		{"release.yml", "cache: false}", "cache: true}", "caches: build: actions/setup-go"},
		{"release.yml", "go.mod, cache: false", "go.mod", "caches: build: actions/setup-go"},
		{"release.yml", "package-manager-cache: false", "cache: npm", "caches: build: actions/setup-node"},
		{"release.yml", "actions/attest@", "actions/cache@", "caches: github: actions/cache"},
		{"ci.yml", "    timeout-minutes: 40\n", "", "bounds: lint: no timeout"},
		{"ci.yml", "runs-on: ubuntu-24.04", "runs-on: ubuntu-latest", "bounds: lint: runs on"},
		{"ci.yml", "macos-15", "self-hosted", "bounds: unit: runs on"},
		{"release.yml", "concurrency:", "env:", "bounds: no concurrency group"},
		{"ci.yml", "make lint", "make lints", "commands: lint: there is no make lints"},
		{"ci.yml", "scripts/test-unit", "scripts/test-units", "commands: unit: stat ../scripts/test-units"},
		{"ci.yml", "          done\n", "", "commands: lint: bash: line"},
	} {
		text := readWorkflow(t, tt.file)
		broken := strings.Replace(text, tt.old, tt.new, 1)
		expect.Equal(t, broken != text, true, tt.old, "is replaced")
		expect.Has(t, strings.Join(findings(t, broken), "\n"), tt.want)
	}
	file := filepath.Join(t.TempDir(), "w.yml")
	write(t, file, strings.Replace(readWorkflow(t, "ci.yml"), "runs-on:", "run-on:", 1))
	expect.Has(t, actionlint(t, file), `"runs-on" section is missing`)
}

// TestUnitList checks that what scripts/test-unit leaves out exists, and says why.
func TestUnitList(t *testing.T) {
	text := string(expect.Value(os.ReadFile("../scripts/test-unit"))(t))
	lines := regexp.MustCompile(`(?m)^(?:any|windows|darwin): (.+): (.+)$`).FindAllStringSubmatch(text, -1)
	expect.Equal(t, len(lines) > 1, true, lines)
	for _, line := range lines {
		for name := range strings.FieldsSeq(line[2]) {
			sources := expect.Value(filepath.Glob(filepath.Join("..", strings.TrimSuffix(name, "$"), "*_test.go")))(t)
			expect.Equal(t, len(sources) > 0 && len(line[1]) > 5, true, name, line[1])
		}
	}
}
