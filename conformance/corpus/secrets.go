package corpus

import (
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
)

// Secret is a made-up credential: in the form its issuer publishes, of random letters.
type Secret struct {
	Format string // as internal/secrets names it
	Text   string // as it would stand in a file
	Hidden string // the part of it that nobody is to be shown
	Line   string // where its form is one of a context (a header, an assignment): all of that; else Text
}

// secretForms are forms by name, "[ranges]{n}" and literal characters, written by hand from the issuers' pages and not
// from the masker's table. The sign ~ stands for nothing: it keeps this file from holding what looks like a secret.
var secretForms = [][2]string{
	{"aws-access-key-id", "AK~IA[A-Z2-7]{16}"}, {"aws-access-key-id", "AS~IA[A-Z2-7]{16}"},
	{"aws-bedrock-key", "AB~SK[A-Za-z0-9+/]{128}"},
	{"gcp-api-key", "AI~za[A-Za-z0-9_-]{35}"}, {"gcp-client-secret", "GOC~SPX-[A-Za-z0-9_-]{28}"}, {"gcp-access-token", "ya29~.a0[A-Za-z0-9_-]{120}"},
	{"azure-identifiable-key", "[A-Za-z0-9+/]{76}+A~St[A-Za-z0-9+/]{6}=="}, {"azure-identifiable-key", "[A-Za-z0-9+/]{76}AC~Db[A-Za-z0-9+/]{6}=="},
	{"azure-devops-token", "[A-Za-z0-9]{76}AZ~DO[A-Za-z0-9]{4}"},
	{"digitalocean-token", "do~p_v1_[a-f0-9]{64}"}, {"heroku-key", "HR~KU-[A-Za-z0-9_-]{60}"}, {"alibaba-access-key", "LT~AI5t[A-Za-z0-9]{18}"},
	{"tencent-secret-id", "AK~ID[A-Za-z0-9]{32}"}, {"cloudflare-ca-key", "v1~.0-[a-f0-9]{24}-[a-f0-9]{146}"}, {"fly-token", "fm~2_[A-Za-z0-9+/]{120}"},
	{"netlify-token", "nf~p_[A-Za-z0-9]{36}"}, {"supabase-token", "sb~p_[a-f0-9]{40}"}, {"planetscale-token", "psca~le_tkn_[A-Za-z0-9_]{43}"},
	{"databricks-token", "da~pi[a-f0-9]{32}"}, {"doppler-token", "dp~.pt.[A-Za-z0-9]{43}"}, {"vault-token", "hv~s.[A-Za-z0-9_-]{90}"},
	{"terraform-token", "[A-Za-z0-9]{14}.atl~asv1.[A-Za-z0-9_-]{67}"}, {"pulumi-token", "pu~l-[a-f0-9]{40}"},
	{"onepassword-service-token", "op~s_eyJ[A-Za-z0-9]{300}"}, {"tailscale-key", "tsk~ey-auth-[A-Za-z0-9]{12}-[A-Za-z0-9]{32}"}, {"scaleway-access-key", "SC~W[A-Z0-9]{17}"},
	{"github-token", "gh~p_[A-Za-z0-9]{36}"}, {"github-token", "gh~s_[A-Za-z0-9]{36}"}, {"github-fine-grained-token", "github~_pat_[A-Za-z0-9]{22}_[A-Za-z0-9]{59}"},
	{"gitlab-token", "gl~pat-[A-Za-z0-9_-]{20}"}, {"gitlab-token", "gl~rt-[A-Za-z0-9_-]{20}"}, {"bitbucket-app-password", "AT~BB[A-Za-z0-9]{32}"},
	{"atlassian-token", "ATA~TT3[A-Za-z0-9_=-]{186}"}, {"sourcegraph-token", "sg~p_[a-f0-9]{40}"},
	{"stripe-key", "sk~_live_[A-Za-z0-9]{24}"}, {"stripe-key", "rk~_live_[A-Za-z0-9]{99}"}, {"stripe-webhook-secret", "wh~sec_[A-Za-z0-9]{32}"},
	{"square-token", "sq0~atp-[A-Za-z0-9_-]{22}"}, {"square-token", "sq0~csp-[A-Za-z0-9_-]{43}"}, {"braintree-token", "access~_token$production$[a-z0-9]{16}$[a-f0-9]{32}"},
	{"shopify-token", "shp~at_[a-f0-9]{32}"}, {"razorpay-key", "rzp~_live_[A-Za-z0-9]{14}"}, {"flutterwave-key", "FLW~SECK-[a-f0-9]{32}-X"},
	{"plaid-token", "access~-production-[a-f0-9]{8}-[a-f0-9]{4}-[a-f0-9]{4}-[a-f0-9]{4}-[a-f0-9]{12}"}, {"shippo-token", "shippo~_live_[a-f0-9]{40}"},
	{"easypost-key", "EZ~AK[A-Za-z0-9]{54}"},
	{"slack-token", "xo~xb-[0-9]{12}-[0-9]{13}-[A-Za-z0-9]{24}"}, {"slack-token", "xo~xp-[0-9]{12}-[0-9]{12}-[0-9]{13}-[a-f0-9]{32}"},
	{"slack-app-token", "xa~pp-1-A[A-Z0-9]{10}-[0-9]{13}-[a-f0-9]{64}"}, {"slack-webhook", "hooks.slack~.com/services/T[A-Z0-9]{10}/B[A-Z0-9]{10}/[A-Za-z0-9]{24}"},
	{"discord-webhook", "discord~.com/api/webhooks/[1-9]{18}/[A-Za-z0-9_-]{68}"},
	{"teams-webhook", ".webhook~.office.com/webhookb2/[a-f0-9]{8}-[a-f0-9]{4}-[a-f0-9]{4}-[a-f0-9]{4}-[a-f0-9]{12}@[a-f0-9]{8}-[a-f0-9]{4}-[a-f0-9]{4}-[a-f0-9]{4}-[a-f0-9]{12}/IncomingWebhook/[a-f0-9]{32}/[a-f0-9]{8}-[a-f0-9]{4}-[a-f0-9]{4}-[a-f0-9]{4}-[a-f0-9]{12}"},
	{"telegram-bot-token", "[1-9]{10}:A~A[A-Za-z0-9_-]{33}"},
	{"circleci-token", "CCI~PAT_[A-Za-z0-9]{22}_[a-f0-9]{40}"}, {"buildkite-token", "bk~ua_[a-f0-9]{40}"}, {"sonarqube-token", "sq~u_[a-f0-9]{40}"},
	{"artifactory-key", "AK~Cp[A-Za-z0-9]{69}"}, {"artifactory-reference-token", "cmVm~dGtu[A-Za-z0-9]{56}"}, {"prefect-key", "pn~u_[a-z0-9]{36}"},
	{"infracost-key", "ic~o-[A-Za-z0-9]{32}"}, {"docker-hub-token", "dckr~_pat_[A-Za-z0-9_-]{27}"},
	{"npm-token", "np~m_[A-Za-z0-9]{36}"}, {"pypi-token", "pypi-AgEIcHlwa~S5vcmc[A-Za-z0-9_-]{70}"}, {"rubygems-key", "rubygems~_[a-f0-9]{48}"},
	{"crates-token", "ci~o[A-Za-z0-9]{32}"}, {"nuget-key", "oy~2[a-z0-9]{43}"}, {"clojars-token", "CLOJ~ARS_[a-z0-9]{60}"},
	{"openai-key", "sk~-proj-[A-Za-z0-9_-]{120}"}, {"openai-legacy-key", "sk~-[A-Za-z0-9]{20}T3Blb~kFJ[A-Za-z0-9]{20}"}, {"anthropic-key", "sk~-ant-api03-[A-Za-z0-9_-]{93}AA"},
	{"openrouter-key", "sk~-or-v1-[a-f0-9]{64}"}, {"huggingface-token", "h~f_[A-Za-z]{34}"}, {"huggingface-org-token", "api~_org_[A-Za-z]{34}"},
	{"replicate-token", "r~8_[A-Za-z0-9]{37}"}, {"groq-key", "gs~k_[A-Za-z0-9]{52}"}, {"perplexity-key", "pp~lx-[A-Za-z0-9]{48}"}, {"xai-key", "xa~i-[A-Za-z0-9]{80}"},
	{"langsmith-key", "lsv2~_pt_[a-f0-9]{32}_[a-f0-9]{10}"},
	{"sendgrid-key", "S~G.[A-Za-z0-9_-]{22}.[A-Za-z0-9_-]{43}"}, {"mailgun-key", "ke~y-[a-f0-9]{32}"}, {"postman-key", "PM~AK-[a-f0-9]{24}-[a-f0-9]{34}"},
	{"newrelic-key", "NR~AK-[A-Z0-9]{27}"}, {"grafana-token", "gl~sa_[A-Za-z0-9]{32}_[a-f0-9]{8}"}, {"grafana-cloud-token", "gl~c_eyJ[A-Za-z0-9]{80}"},
	{"sentry-token", "sntr~yu_[a-f0-9]{64}"}, {"dynatrace-token", "dt0~c01.[A-Z0-9]{24}.[A-Z0-9]{64}"}, {"linear-key", "lin~_api_[A-Za-z0-9]{40}"},
	{"notion-token", "nt~n_[A-Za-z0-9]{46}"}, {"figma-token", "fi~gd_[A-Za-z0-9_-]{40}"}, {"contentful-token", "CF~PAT-[A-Za-z0-9_-]{43}"},
	{"typeform-token", "tf~p_[A-Za-z0-9]{44}_[A-Za-z0-9]{14}"}, {"readme-key", "rd~me_[a-z0-9]{70}"}, {"duffel-token", "duffel~_live_[A-Za-z0-9_-]{43}"},
	{"frameio-token", "fi~o-u-[A-Za-z0-9_-]{64}"}, {"posthog-key", "ph~x_[A-Za-z0-9]{43}"}, {"adobe-client-secret", "p8~e-[A-Za-z0-9]{32}"},
	{"mapbox-secret-token", "s~k.eyJ[A-Za-z0-9]{80}.[A-Za-z0-9_-]{22}"}, {"age-secret-key", "AGE~-SECRET-KEY-1[QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L]{58}"},
}

// Secrets makes one credential of each form, the same ones for the same seed.
func Secrets(seed uint64) []Secret {
	r := rand.New(rand.NewPCG(seed, 1))
	var all []Secret
	for _, f := range secretForms {
		text := formed(r, f[1])
		all = append(all, Secret{f[0], text, random(text, f[1]), text})
	}
	word := func(n int) string { return formed(r, fmt.Sprintf("[a-z]{3}[A-Z]{2}[0-9]{2}[A-Za-z0-9]{%d}", n-7)) }
	line := func(format, before, secret, after string) {
		all = append(all, Secret{format, secret, secret, before + secret + after})
	}
	line("jwt", "", jwt(r), "")
	line("password", `password = "`, word(12), `"`)
	line("password", "DB_PASSWORD=", word(14)+"!x", "")
	line("password", `"client_secret": "`, word(32), `"`)
	line("password", "aws_secret_access_key = ", formed(r, "[A-Za-z0-9+]{38}7a"), "")
	line("password", "AccountKey=", formed(r, "[A-Za-z0-9+]{84}7a==")+"", ";EndpointSuffix=core.windows.net")
	line("token", "auth_token: ", word(32), "")
	line("url-password", "postgres://app:", word(16), "@db.internal:5432/app")
	line("url-password", "amqps://svc:", word(20), "@mq/vhost")
	line("authorization", "Authorization: Token ", word(40), "")
	line("bearer-token", "use Bearer ", word(40), " there")
	line("authorization", "Authorization: Basic ", base64.StdEncoding.EncodeToString([]byte("user:"+word(18))), "")
	line("basic-auth", "header 'Basic ", base64.StdEncoding.EncodeToString([]byte("svc:"+word(18))), "'")
	line("user-flag", "curl -u admin:", word(14), " https://x.test/")
	line("authorization", "Cookie: theme=dark; sid=", word(32), "; lang=en")
	return all
}

// formed makes a text of a form.
func formed(r *rand.Rand, form string) string {
	var b strings.Builder
	eachPart(form, func(literal byte, set string, n int) {
		if set == "" {
			b.WriteByte(literal)
			return
		}
		for range n {
			b.WriteByte(set[r.IntN(len(set))])
		}
	})
	return b.String()
}

// random is the longest part of a text that its form leaves open.
func random(text, form string) string {
	at, longest := 0, ""
	eachPart(form, func(_ byte, set string, n int) {
		if set == "" {
			n = 1
		} else if part := text[at : at+n]; n > len(longest) {
			longest = part
		}
		at += n
	})
	return longest
}

func eachPart(form string, part func(literal byte, set string, n int)) {
	for i := 0; i < len(form); i++ {
		switch form[i] {
		case '~':
		case '[':
			end := i + strings.IndexByte(form[i:], ']')
			ranges := form[i+1 : end]
			i = end
			n := 1
			if i+1 < len(form) && form[i+1] == '{' {
				end = i + strings.IndexByte(form[i:], '}')
				n, _ = strconv.Atoi(form[i+2 : end])
				i = end
			}
			part(0, expanded(ranges), n)
		default:
			part(form[i], "", 1)
		}
	}
}

func expanded(ranges string) string {
	var b strings.Builder
	for i := 0; i < len(ranges); i++ {
		if i+2 < len(ranges) && ranges[i+1] == '-' {
			for c := ranges[i]; c <= ranges[i+2]; c++ {
				b.WriteByte(c)
			}
			i += 2
			continue
		}
		b.WriteByte(ranges[i])
	}
	return b.String()
}

func jwt(r *rand.Rand) string {
	part := func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }
	return part(`{"alg":"HS256","typ":"JWT"}`) + "." + part(fmt.Sprintf(`{"sub":"%d","name":"Ada"}`, r.Uint64())) + "." + formed(r, "[A-Za-z0-9_-]{43}")
}

// PrivateKey is a key block of so many lines of random base64 of that width, and those lines.
func PrivateKey(seed uint64, label string, lines, width int) (block string, body []string) {
	r := rand.New(rand.NewPCG(seed, 2))
	for i := range lines {
		n := width
		if i == lines-1 {
			n = 30
		}
		l := formed(r, fmt.Sprintf("[A-Za-z0-9+/]{%d}", n-3)) + "aZ8"
		if i == lines-1 {
			l += "=="
		}
		body = append(body, l)
	}
	const dashes = "-----"
	return dashes + "BEGIN " + label + dashes + "\n" + strings.Join(body, "\n") + "\n" + dashes + "END " + label + dashes + "\n", body
}
