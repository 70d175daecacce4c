package conformance

import (
	"errors"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/observations/remote/remotetest"
)

// service is a container of compose.yaml.
type service struct {
	Image       string
	Command     []string
	Environment map[string]string
	Secrets     []string
	Ports       []string
	Healthcheck struct{ Test []string }
	Grace       string `yaml:"stop_grace_period"`
}

func parseDeploy(t *testing.T, name string) (text string, documents []map[string]any) {
	t.Helper()
	text = string(expect.Value(os.ReadFile(filepath.Join("../deploy", name)))(t))
	d := yaml.NewDecoder(strings.NewReader(text))
	for {
		var one map[string]any
		err := d.Decode(&one)
		if errors.Is(err, io.EOF) {
			return text, documents
		}
		expect.Must(t, err, name)
		documents = append(documents, one)
	}
}

// TestDeploy checks that the files of deploy/ agree with the program and with one another, and starts a replica by the
// words of each.
func TestDeploy(t *testing.T) {
	text, _ := parseDeploy(t, "compose.yaml")
	var compose struct {
		Services map[string]service
		Secrets  map[string]struct{ File string }
	}
	expect.Must(t, yaml.Unmarshal([]byte(text), &compose))
	balancer := string(expect.Value(os.ReadFile("../deploy/nginx.conf"))(t))
	replicas := regexp.MustCompile(`server (replica-\w):8080`).FindAllStringSubmatch(balancer, -1)
	expect.Equal(t, len(replicas), 3, "replicas of the balancer")
	for _, r := range replicas {
		s, exists := compose.Services[r[1]]
		expect.Equal(t, exists, true, r[1])
		expect.EqualList(t, s.Command, compose.Services["replica-a"].Command, r[1])
		expect.Equal(t, "replica-"+s.Environment["MCP_FUNNEL_REPLICA"], r[1], "its name")
		expect.EqualList(t, s.Healthcheck.Test, []string{"CMD", "/mcp-funnel", "doctor", "--ready", "--http=8080"})
		expect.Has(t, strings.Join(s.Command, " "), "--http=0.0.0.0:8080")
		for _, at := range slices.AppendSeq(slices.Clone(s.Command), maps.Values(s.Environment)) {
			if _, secret, is := strings.Cut(at, "/run/secrets/"); is {
				expect.Equal(t, slices.Contains(s.Secrets, secret) && compose.Secrets[secret].File != "", true, "secret %s", secret)
			}
		}
	}
	for name, s := range compose.Services {
		if !regexp.MustCompile(`^[\w./-]+:[\w.-]+$`).MatchString(s.Image) {
			t.Errorf("%s: image %q has no tag", name, s.Image)
		}
	}
	a := compose.Services["replica-a"]
	expect.Has(t, a.Command[7], "http://s3:7070")
	expect.EqualList(t, compose.Services["s3"].Command[:2], []string{"--port", ":7070"})
	startAs(t, a.Command)

	manifest, documents := parseDeploy(t, "kubernetes.yaml")
	kinds := []string{}
	for _, d := range documents {
		kinds = append(kinds, d["kind"].(string)) //nolint:forcetypeassert // else it fails here
	}
	expect.EqualList(t, kinds, []string{"Secret", "Deployment", "Service", "PodDisruptionBudget"})
	expect.Contains(t, manifest, "terminationGracePeriodSeconds: 40", "path: /readyz", "path: /healthz",
		"containerPort: 8080")
	var deployment struct {
		Spec struct {
			Replicas int
			Template struct {
				Spec struct {
					Containers []struct{ Args []string }
				}
			}
		}
	}
	expect.Must(t, yaml.Unmarshal([]byte(strings.Split(manifest, "\n---\n")[1]), &deployment))
	expect.Equal(t, deployment.Spec.Replicas, 3, "replicas")
	startAs(t, deployment.Spec.Template.Spec.Containers[0].Args)
}

// startAs starts a replica by the words of a deployment, with other places and no others.
func startAs(t *testing.T, words []string) {
	t.Helper()
	p := remotetest.New(t)
	tokens := filepath.Join(t.TempDir(), "tokens")
	write(t, tokens, "ann: "+strings.Repeat("t", 40)+"\n")
	expect.Must(t, os.Chmod(tokens, 0o600))
	here := map[string]string{
		"--http": "127.0.0.1:0", "--root": t.TempDir(), "--cache": t.TempDir(), "--token-file": tokens, "--s3-endpoint": p.S3,
		"--store": remotetest.Bucket, "--database": p.Database, "--min-free": "0", "--s3-region": "us-east-1",
	}
	flags := slices.Clone(words[1:])
	for i, word := range flags {
		name, _, _ := strings.Cut(word, "=")
		if value, differs := here[name]; differs {
			flags[i] = name + "=" + value
			delete(here, name)
		}
	}
	delete(here, "--token-file")
	if endpoint, amazon := here["--s3-endpoint"]; amazon {
		flags = append(flags, "--s3-endpoint="+endpoint)
		delete(here, "--s3-endpoint")
	}
	expect.Equal(t, len(here), 0, "settings that are not in it: %v", here)
	env := append(environment(t), "AWS_ACCESS_KEY_ID=test", "AWS_SECRET_ACCESS_KEY=test-secret",
		"MCP_FUNNEL_REPLICA=a", "MCP_FUNNEL_TOKEN="+strings.Repeat("u", 40))
	if strings.Contains(strings.Join(words, " "), "--token-file") {
		env = env[:len(env)-1]
	}
	s := launch{env: env, flags: flags}.http(t)
	for _, path := range []string{"/readyz", "/healthz"} {
		expect.Equal(t, s.do(http.MethodGet, path, "").status, http.StatusOK, path)
	}
}

// TestAlerts checks that rules name metrics that exist.
func TestAlerts(t *testing.T) {
	text, _ := parseDeploy(t, "alerts.yaml")
	var rules struct {
		Groups []struct {
			Rules []struct {
				Alert, Expr string
				Annotations map[string]string
			}
		}
	}
	expect.Must(t, yaml.Unmarshal([]byte(text), &rules))
	exist := string(expect.Value(os.ReadFile("../server/httpserver/metrics.go"))(t))
	for _, r := range rules.Groups[0].Rules {
		names := regexp.MustCompile(`mcp_funnel_[a-z_]+`).FindAllString(r.Expr, -1)
		if len(names) == 0 || r.Alert == "" || r.Annotations["summary"] == "" {
			t.Errorf("%+v is no rule", r)
		}
		for _, name := range names {
			expect.Has(t, exist, `"`+strings.TrimSuffix(name, "_bucket")+`":`, r.Alert)
		}
	}
}
