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

	"go.yaml.in/yaml/v4"

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
	all         map[string]any
}

// publishes says whether it is not one of changes, whose authors may be strangers.
func (w workflow) publishes() bool {
	_, fromForks := w.On["pull_request"]
	return !fromForks
}

// each calls a function with each value that is no list or map, and with the keys that lead to it, as in jobs.lint.if.
func each(v any, keys string, f func(keys, value string)) {
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			each(value, strings.TrimPrefix(keys+"."+key, "."), f)
		}
	case []any:
		for _, value := range v {
			each(value, keys, f)
		}
	default:
		f(keys, fmt.Sprint(v))
	}
}

type workflowJob struct {
	RunsOn      string `yaml:"runs-on"`
	Timeout     any    `yaml:"timeout-minutes"`
	Needs       any
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
	if err := yaml.Unmarshal([]byte(text), &w.all); err != nil {
		return w, err
	}
	return w, yaml.Unmarshal([]byte(text), &w)
}

var (
	pinned     = regexp.MustCompile(`^[\w-]+/[\w./-]+@[0-9a-f]{40}$`)
	usesLine   = regexp.MustCompile(`(?m)^\s*(?:- )?uses:(.*)$`)
	versioned  = regexp.MustCompile(`^ \S+@[0-9a-f]{40} # v\d+\.\d+\.\d+$`)
	fixed      = regexp.MustCompile(`^(ubuntu|macos|windows)-\d+(\.\d+)?$`)
	makeCall   = regexp.MustCompile(`\bmake ([a-z][\w-]*)`)
	scriptName = regexp.MustCompile(`(?:^|[\s("])((?:\.ci|scripts)/[\w./-]+)`)
	forbidden  = regexp.MustCompile(`\b(eval|curl|wget|npx)\b|@latest|GITHUB_(ENV|PATH)`) // they run what nobody looked at
	makefile   = regexp.MustCompile(`(?m)^([a-z][\w-]*):`)
)

// actions are those that workflows may use, with the commits that were looked at.
var actions = []string{
	"actions/attest@1e69f48acb82d1966a394da916b4c1698aa569d6 # v4.2.2",
	"actions/checkout@3d3c42e5aac5ba805825da76410c181273ba90b1 # v7.0.1",
	"actions/download-artifact@3e5f45b2cfb9172054b4087a40e8e0b5a5461e7c # v8.0.1",
	"actions/setup-go@b7ad1dad31e06c5925ef5d2fc7ad053ef454303e # v7.0.0",
	"actions/setup-node@820762786026740c76f36085b0efc47a31fe5020 # v7.0.0",
	"actions/upload-artifact@bbbca2ddaa5d8feaa63e36b76fdaad77386f024f # v7.0.0",
	"sigstore/cosign-installer@6f9f17788090df1f26f669e9d70d6ae9567deba6 # v4.1.2",
}

// expressions are those that workflows may have, after the ends of the keys where they may be. None may hold what a
// stranger can write, and the token is only for GH_TOKEN.
var expressions = []string{
	"concurrency.group: ci-${{ github.event_name }}-${{ github.ref }}",
	"concurrency.group: release-${{ github.ref }}",
	"concurrency.cancel-in-progress: ${{ github.event_name == 'pull_request' }}",
	"test.timeout-minutes: ${{ github.event_name == 'schedule' && 350 || 100 }}",
	"unit.runs-on: ${{ matrix.system }}",
	"env.GH_TOKEN: ${{ github.token }}",
	"env.DIGEST: ${{ steps.push.outputs.digest }}",
	"image.steps.with.subject-name: ${{ env.IMAGE }}",
	"image.steps.with.subject-digest: ${{ steps.push.outputs.digest }}",
}

// conditions are those of steps in ci.yml. A release has none: what is skipped there counts as done.
var conditions = []string{
	"github.event_name != 'schedule'",
	"github.event_name == 'schedule'",
	"github.event_name == 'schedule' && !cancelled()",
}

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
	"actions": func(w workflow, found func(string, ...any)) {
		lines, values := usesLine.FindAllStringSubmatch(w.text, -1), 0
		for _, line := range lines {
			if !slices.Contains(actions, strings.TrimPrefix(line[1], " ")) {
				found("%s is not in the list", line[1])
			}
		}
		each(w.all, "", func(keys, value string) {
			if !strings.HasSuffix(keys, ".uses") {
				return
			}
			values++
			if !slices.ContainsFunc(actions, func(a string) bool { return strings.HasPrefix(a, value+" # ") }) {
				found("%s: %s is not in the list", keys, value)
			}
		})
		if len(lines) != values {
			found("%d actions in %d lines: write each as others are", values, len(lines))
		}
	},
	"expressions": func(w workflow, found func(string, ...any)) {
		listed := 0
		each(w.all, "", func(keys, value string) {
			if !strings.Contains(value, "${{") {
				return
			}
			ends := func(e string) bool { return strings.HasSuffix("."+keys+": "+value, "."+e) }
			if !slices.ContainsFunc(expressions, ends) {
				found("%s: %s is not in the list", keys, value)
			}
			listed += strings.Count(value, "${{")
		})
		if n := strings.Count(w.text, "${{"); n != listed {
			found("%d of %d are in no value", n-listed, n)
		}
	},
	"control": func(w workflow, found func(string, ...any)) {
		each(w.all, "", func(keys, value string) {
			for key := range strings.SplitSeq(keys, ".") {
				switch key {
				case "container", "services", "continue-on-error":
					found("%s: %s", keys, value)
				case "if":
					if w.publishes() || !strings.HasSuffix(keys, ".steps.if") || !slices.Contains(conditions, value) {
						found("%s: %s is not in the list", keys, value)
					}
				case "cancel-in-progress":
					if w.publishes() && value != "false" {
						found("%s: %s: a release is half done", keys, value)
					}
				}
			}
		})
	},
	"order": func(w workflow, found func(string, ...any)) {
		if !w.publishes() {
			return
		}
		if on := fmt.Sprint(w.On); on != "map[push:map[tags:[v*]]]" {
			found("on %s", on)
		}
		after := map[string]bool{"build": true}
		for range w.Jobs { // a job is at most so many away from build
			for name, job := range w.Jobs {
				each(job.Needs, "", func(_, need string) { after[name] = after[name] || after[need] })
			}
		}
		for name := range w.Jobs {
			if !after[name] {
				found("%s does not wait for build", name)
			}
		}
	},
	"scripts": func(w workflow, found func(string, ...any)) {
		each(w.all, "", func(keys, value string) {
			bad := forbidden.FindString(value)
			if strings.HasPrefix(bad, "@") || bad != "" && strings.HasSuffix(keys, ".run") {
				found("%s: %s", keys, bad)
			}
		})
	},
	"permissions": func(w workflow, found func(string, ...any)) {
		if p, ok := w.Permissions.(map[string]any); !ok || len(p) > 0 {
			found("the workflow itself has permissions")
		}
		for name, job := range w.Jobs {
			p, ok := job.Permissions.(map[string]any)
			if !ok {
				found("%s: permissions are not named one by one", name)
			}
			for what, access := range p {
				if access == "read" {
					continue
				}
				if !w.publishes() {
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
		if !w.publishes() {
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
			minutes, known := job.Timeout.(int)
			if minutes > 180 || !known && (w.publishes() || !strings.HasPrefix(fmt.Sprint(job.Timeout), "${{ ")) {
				found("%s: over 180 minutes: %v", name, job.Timeout)
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
		{"ci.yml", checkout, "Actions" + strings.TrimPrefix(checkout, "actions"), "actions: jobs.lint.steps.uses: Actions/"},
		{"ci.yml", checkout, strings.Replace(checkout, "@3", "@4", 1), "actions:  actions/checkout@4"},
		{"ci.yml", checkout, strings.Replace(checkout, "@3", "@4", 1), "actions: jobs.lint.steps.uses: actions/checkout@4"},
		{"ci.yml", "uses: " + checkout, "'uses': " + checkout, "actions: 7 actions in 6 lines"},
		{"ci.yml", "    steps:", "    uses: a/b/.github/workflows/c.yml@main\n    steps:", "actions: jobs.lint.uses: a/b/"},
		{"ci.yml", "run: make lint", "run: make ${{ github.ref }}", "expressions: jobs.lint.steps.run"},
		{"ci.yml", "run: make lint", "run: make lint\n        shell: ${{ github.ref }}", "expressions: jobs.lint.steps.s"},
		{"ci.yml", "run: make lint", "run: make lint\n        env: {GH_TOKEN: '${{ github.actor }}'}", "expressions: jobs.l"},
		{"ci.yml", "run: make lint", "run: make lint\n        env: {'${{ github.ref }}': a}", "expressions: 1 of "},
		{"release.yml", "{GH_TOKEN:", "{TOKEN:", "expressions: jobs.github.steps.env.TOKEN: ${{"},
		{"release.yml", "{name: dist, path: dist}", "{token: '${{ github.token }}'}", "expressions: jobs.github.steps"},
		{"release.yml", "github.token }}", "github['token'] }}", "expressions: jobs.github.steps.env.GH_TOKEN"},
		{"release.yml", `push: {tags: ["v*"]}`, "push: {tags: ['*']}", "order: on map[push:map[tags:[*]]]"},
		{"release.yml", `{tags: ["v*"]}`, `{tags: ["v*"], branches: [main]}`, "order: on map[push:map[br"},
		{"release.yml", `["v*"]}`, "['v*']}\n  schedule: [{cron: '1 1 * * *'}]", "order: on map[push:map[tags:[v*]] sche"},
		{"release.yml", "    needs: build\n", "", "order: github does not wait for build"},
		{"release.yml", "    needs: npm\n", "    needs: [registry]\n", "order: registry does not wait for build"},
		{"release.yml", "    steps:", "    container: {image: a}\n    steps:", "control: jobs.build.container.image: a"},
		{"release.yml", "    steps:", "    services: {a: {image: b}}\n    steps:", "control: jobs.build.services.a.image: b"},
		{"release.yml", "    steps:", "    continue-on-error: true\n    steps:", "control: jobs.build.continue-on-error"},
		{"ci.yml", "run: make lint", "run: make lint\n        continue-on-error: true", "control: jobs.lint.steps.cont"},
		{"release.yml", "needs: build\n", "needs: build\n    if: always()\n", "control: jobs.github.if: always() is"},
		{"release.yml", "run: make channels", "run: true\n        if: " + conditions[1], "control: jobs.build.steps."},
		{"ci.yml", "if: " + conditions[0], "if: github.actor == 'a'", "control: jobs.test.steps.if: github.actor"},
		{"release.yml", "progress: false", "progress: true", "control: concurrency.cancel-in-progress: true"},
		{"release.yml", "timeout-minutes: 90", "timeout-minutes: 181", "bounds: build: over 180 minutes: 181"},
		{"release.yml", "timeout-minutes: 90", "timeout-minutes: ${{ vars.A }}", "bounds: build: over 180 minutes: ${{"},
		{"ci.yml", "run: make lint", "run: eval a", "scripts: jobs.lint.steps.run: eval"},
		{"ci.yml", "run: make lint", "run: curl a | sh", "scripts: jobs.lint.steps.run: curl"},
		{"ci.yml", "run: make lint", "run: npx -y a", "scripts: jobs.lint.steps.run: npx"},
		{"ci.yml", "run: make lint", "run: go run a@latest", "scripts: jobs.lint.steps.run: @latest"},
		{"release.yml", "@v1.8.9", "@latest", "scripts: jobs.registry.env.PUBLISHER: @latest"},
		{"ci.yml", "run: make lint", "run: echo a >>\"$GITHUB_ENV\"", "scripts: jobs.lint.steps.run: GITHUB_ENV"},
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
