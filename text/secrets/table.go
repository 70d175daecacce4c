package secrets

import "sync"

// Formats returns all known kinds of secrets, in the order of docs/SECRETS.md. Formats defined by a shape alone are
// in the table below; formats with a hand-written matcher are in other files.
var Formats = sync.OnceValue(func() []*Format {
	list := make([]*Format, 0, len(table)+16)
	for i := range table {
		f := &table[i]
		f.match, f.shape = matchToken, lazyShape(f.Shape, f.Before)
		if f.bits == 0 {
			f.bits = 2.2
		}
		list = append(list, f)
	}
	for _, h := range []struct {
		f     *Format
		match matcher
	}{
		{&privateKey, matchKeyBlock}, {&keyLine, nil}, {&jwt, matchJWT}, {&urlPassword, matchURL}, {&authorization, matchAuthorization},
		{&bearer, matchBearer}, {&basic, matchBasic}, {&userFlag, matchUser}, {&assigned, matchAssigned}, {&assignedToken, matchAssigned},
	} {
		h.f.match = h.match
		list = append(list, h.f)
	}
	return list
})

// The table of formats. The source of a format is a page on which the issuer, or a secret scanner that works with the
// issuer, publishes it.
var table = []Format{
	// Clouds.
	{Name: "aws-access-key-id", Of: "AWS access key ID", Source: "docs.aws.amazon.com/IAM/latest/UserGuide/reference_identifiers.html", Keywords: "AKIA|ASIA|ABIA|ACCA", Shape: "[A-Z0-9]{16}"},
	{Name: "aws-bedrock-key", Of: "Amazon Bedrock API key", Source: "docs.aws.amazon.com/bedrock/latest/userguide/api-keys.html", Keywords: "ABSK", Shape: "[A-Za-z0-9+/=]{100,}"},
	{Name: "gcp-api-key", Of: "Google API key", Source: "cloud.google.com/docs/authentication/api-keys", Keywords: "AIza", Shape: "[A-Za-z0-9_-]{35}"},
	{Name: "gcp-client-secret", Of: "Google OAuth client secret", Source: "developers.google.com/identity/protocols/oauth2", Keywords: "GOCSPX-", Shape: "[A-Za-z0-9_-]{28}", inWord: true},
	{Name: "gcp-access-token", Of: "Google OAuth access token", Source: "developers.google.com/identity/protocols/oauth2", Keywords: "ya29.", Shape: "[A-Za-z0-9._-]{20,}"},
	{Name: "azure-identifiable-key", Of: "Azure key with a signature (storage, Cosmos DB, Service Bus, Functions, search, registry, IoT)", Source: "learn.microsoft.com/purview/sit-defn-azure-storage-account-key", Keywords: "+ASt|ACDb|+ASb|+AEh|AIoT|AzFu|AzSe|+ACR", Before: "[A-Za-z0-9+/]{40,80}", Shape: "[A-Za-z0-9+/]{4,8}[=]{0,2}", bits: 4},
	{Name: "azure-devops-token", Of: "Azure DevOps personal access token", Source: "learn.microsoft.com/azure/devops/organizations/accounts/use-personal-access-tokens-to-authenticate", Keywords: "AZDO", Before: "[A-Za-z0-9]{76}", Shape: "[A-Za-z0-9]{4}", bits: 4},
	{Name: "digitalocean-token", Of: "DigitalOcean token", Source: "docs.digitalocean.com/reference/api/create-personal-access-token", Keywords: "dop_v1_|doo_v1_|dor_v1_", Shape: "[a-f0-9]{64}", inWord: true},
	{Name: "heroku-key", Of: "Heroku API key", Source: "devcenter.heroku.com/articles/authentication", Keywords: "HRKU-", Shape: "[A-Za-z0-9_-]{36,64}", inWord: true},
	{Name: "alibaba-access-key", Of: "Alibaba Cloud access key ID", Source: "www.alibabacloud.com/help/en/ram/user-guide/create-an-accesskey-pair", Keywords: "LTAI", Shape: "[A-Za-z0-9]{12,26}", bits: 3},
	{Name: "tencent-secret-id", Of: "Tencent Cloud secret ID", Source: "cloud.tencent.com/document/product/598/40488", Keywords: "AKID", Shape: "[A-Za-z0-9]{32}"},
	{Name: "cloudflare-ca-key", Of: "Cloudflare origin CA key", Source: "developers.cloudflare.com/fundamentals/api/get-started/ca-keys", Keywords: "v1.0-", Shape: "[a-f0-9]{24}-[a-f0-9]{146}"},
	{Name: "fly-token", Of: "Fly.io access token", Source: "fly.io/docs/security/tokens", Keywords: "fm2_|fm1r_|fm1a_", Shape: "[A-Za-z0-9+/=_-]{60,}", inWord: true},
	{Name: "netlify-token", Of: "Netlify token", Source: "docs.netlify.com/api/get-started", Keywords: "nfp_", Shape: "[A-Za-z0-9]{36}", inWord: true},
	{Name: "supabase-token", Of: "Supabase token", Source: "supabase.com/docs/guides/api/api-keys", Keywords: "sbp_|sb_secret_", Shape: "[A-Za-z0-9_-]{31,44}"},
	{Name: "planetscale-token", Of: "PlanetScale token or password", Source: "planetscale.com/docs/concepts/service-tokens", Keywords: "pscale_tkn_|pscale_pw_|pscale_oauth_", Shape: "[A-Za-z0-9._=-]{32,64}", inWord: true},
	{Name: "databricks-token", Of: "Databricks token", Source: "docs.databricks.com/aws/en/dev-tools/auth/pat", Keywords: "dapi", Shape: "[a-f0-9]{32}", bits: 2.8},
	{Name: "doppler-token", Of: "Doppler token", Source: "docs.doppler.com/reference/auth-token-formats", Keywords: "dp.pt.|dp.st.|dp.ct.|dp.sa.|dp.scim.|dp.audit.", Shape: "[A-Za-z0-9._-]{40,}"},
	{Name: "vault-token", Of: "HashiCorp Vault token", Source: "developer.hashicorp.com/vault/docs/concepts/tokens", Keywords: "hvs.|hvb.|hvr.", Shape: "[A-Za-z0-9_-]{24,}"},
	{Name: "terraform-token", Of: "HCP Terraform token", Source: "developer.hashicorp.com/terraform/cloud-docs/users-teams-organizations/api-tokens", Keywords: ".atlasv1.", Before: "[A-Za-z0-9]{14}", Shape: "[A-Za-z0-9_-]{60,}"},
	{Name: "pulumi-token", Of: "Pulumi access token", Source: "www.pulumi.com/docs/pulumi-cloud/access-management/access-tokens", Keywords: "pul-", Shape: "[a-f0-9]{40}"},
	{Name: "onepassword-service-token", Of: "1Password service account token", Source: "developer.1password.com/docs/service-accounts/security", Keywords: "ops_eyJ", Shape: "[A-Za-z0-9+/=_-]{100,}"},
	{Name: "tailscale-key", Of: "Tailscale key", Source: "tailscale.com/kb/1085/auth-keys", Keywords: "tskey-", Shape: "[a-z]{2,12}-[A-Za-z0-9-]{16,}", inWord: true},
	{Name: "scaleway-access-key", Of: "Scaleway access key", Source: "www.scaleway.com/en/docs/iam/concepts", Keywords: "SCW", Shape: "[A-Z0-9]{17}", bits: 2.8},

	// Version control.
	{Name: "github-token", Of: "GitHub token (personal, OAuth, app, refresh)", Source: "github.blog/2021-04-05-behind-githubs-new-authentication-token-formats", Keywords: "ghp_|gho_|ghu_|ghs_|ghr_", Shape: "[A-Za-z0-9]{36,}", inWord: true},
	{Name: "github-fine-grained-token", Of: "GitHub fine-grained personal token", Source: "docs.github.com/en/authentication/keeping-your-account-and-data-secure/about-authentication-to-github", Keywords: "github_pat_", Shape: "[A-Za-z0-9]{22}_[A-Za-z0-9]{59}", inWord: true},
	{Name: "gitlab-token", Of: "GitLab token", Source: "docs.gitlab.com/security/tokens", Keywords: "glpat-|gldt-|glrt-|glrtr-|glcbt-|glptt-|glft-|glsoat-|glagent-|glimt-|gloas-|glffct-", Shape: "[A-Za-z0-9_.-]{20,}", inWord: true, bits: 3},
	{Name: "bitbucket-app-password", Of: "Bitbucket app password", Source: "support.atlassian.com/bitbucket-cloud/docs/app-passwords", Keywords: "ATBB", Shape: "[A-Za-z0-9]{28,32}", bits: 3},
	{Name: "atlassian-token", Of: "Atlassian API token", Source: "support.atlassian.com/atlassian-account/docs/manage-api-tokens-for-your-atlassian-account", Keywords: "ATATT3|ATCTT3", Shape: "[A-Za-z0-9_=-]{60,}"},
	{Name: "sourcegraph-token", Of: "Sourcegraph access token", Source: "sourcegraph.com/docs/cli/how-tos/creating_an_access_token", Keywords: "sgp_", Shape: "[a-zA-Z0-9_]{40,80}", bits: 3},

	// Payment and commerce.
	{Name: "stripe-key", Of: "Stripe secret or restricted key", Source: "docs.stripe.com/keys", Keywords: "sk_live_|sk_test_|rk_live_|rk_test_|sk_prod_|rk_prod_", Shape: "[A-Za-z0-9]{16,}", bits: 2.8},
	{Name: "stripe-webhook-secret", Of: "Stripe webhook signing secret", Source: "docs.stripe.com/webhooks", Keywords: "whsec_", Shape: "[A-Za-z0-9+/=]{24,}", bits: 3},
	{Name: "square-token", Of: "Square access token or secret", Source: "developer.squareup.com/docs/build-basics/access-tokens", Keywords: "sq0atp-|sq0csp-", Shape: "[A-Za-z0-9_-]{22,43}", inWord: true},
	{Name: "braintree-token", Of: "PayPal Braintree access token", Source: "developer.paypal.com/braintree/docs", Keywords: "access_token$production$|access_token$sandbox$", Shape: "[0-9a-z]{16}$[0-9a-f]{32}", inWord: true},
	{Name: "shopify-token", Of: "Shopify token", Source: "shopify.dev/docs/apps/build/authentication-authorization", Keywords: "shpat_|shpca_|shppa_|shpss_", Shape: "[a-fA-F0-9]{32}", inWord: true},
	{Name: "razorpay-key", Of: "Razorpay live key", Source: "razorpay.com/docs/api/authentication", Keywords: "rzp_live_", Shape: "[A-Za-z0-9]{14}"},
	{Name: "flutterwave-key", Of: "Flutterwave secret key", Source: "developer.flutterwave.com/docs/authentication", Keywords: "FLWSECK-|FLWSECK_TEST-", Shape: "[A-Za-z0-9]{12,40}-X"},
	{Name: "plaid-token", Of: "Plaid access token", Source: "plaid.com/docs/quickstart/glossary", Keywords: "access-production-|access-sandbox-|access-development-", Shape: "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"},
	{Name: "shippo-token", Of: "Shippo token", Source: "docs.goshippo.com/docs/guides_general/authentication", Keywords: "shippo_live_|shippo_test_", Shape: "[a-f0-9]{40}"},
	{Name: "easypost-key", Of: "EasyPost key", Source: "docs.easypost.com/docs/authentication", Keywords: "EZAK|EZTK", Shape: "[A-Za-z0-9]{54}"},

	// Chat.
	{Name: "slack-token", Of: "Slack token", Source: "api.slack.com/concepts/token-types", Keywords: "xoxb-|xoxp-|xoxa-|xoxr-|xoxs-|xoxo-|xoxc-|xoxd-|xoxe-|xoxe.", Shape: "[A-Za-z0-9%.-]{20,}", inWord: true, bits: 2},
	{Name: "slack-app-token", Of: "Slack app-level token", Source: "api.slack.com/concepts/token-types", Keywords: "xapp-", Shape: "[0-9]-[A-Z0-9]{5,}-[0-9]{5,}-[a-f0-9]{32,}", inWord: true},
	{Name: "slack-webhook", Of: "Slack incoming webhook", Source: "api.slack.com/messaging/webhooks", Keywords: "hooks.slack.com/services/|hooks.slack.com/workflows/", Shape: "[A-Z0-9]{8,14}/[A-Z0-9]{8,14}/[A-Za-z0-9/]{18,}"},
	{Name: "discord-webhook", Of: "Discord webhook", Source: "discord.com/developers/docs/resources/webhook", Keywords: "discord.com/api/webhooks/|discordapp.com/api/webhooks/", Shape: "[0-9]{15,22}/[A-Za-z0-9_-]{50,80}"},
	{Name: "teams-webhook", Of: "Microsoft Teams webhook", Source: "learn.microsoft.com/microsoftteams/platform/webhooks-and-connectors/how-to/add-incoming-webhook", Keywords: ".webhook.office.com/webhookb2/", Shape: "[0-9a-f-]{36}@[0-9a-f-]{36}/IncomingWebhook/[0-9a-f]{32}/[0-9a-f-]{36}", inWord: true},
	{Name: "telegram-bot-token", Of: "Telegram bot token", Source: "core.telegram.org/bots/features#botfather", Keywords: ":AA", Before: "[0-9]{8,10}", Shape: "[A-Za-z0-9_-]{33}", bits: 3},

	// Building and delivering.
	{Name: "circleci-token", Of: "CircleCI token", Source: "circleci.com/docs/managing-api-tokens", Keywords: "CCIPAT_|CCIPRJ_", Shape: "[A-Za-z0-9]{22}_[a-f0-9]{40}", inWord: true},
	{Name: "buildkite-token", Of: "Buildkite token", Source: "buildkite.com/docs/apis/managing-api-tokens", Keywords: "bkua_", Shape: "[a-f0-9]{40}", inWord: true},
	{Name: "sonarqube-token", Of: "SonarQube token", Source: "docs.sonarsource.com/sonarqube-server/user-guide/managing-tokens", Keywords: "squ_|sqp_|sqa_", Shape: "[a-f0-9]{40}"},
	{Name: "artifactory-key", Of: "JFrog Artifactory key", Source: "jfrog.com/help/r/jfrog-platform-administration-documentation", Keywords: "AKCp", Shape: "[A-Za-z0-9]{69}"},
	{Name: "artifactory-reference-token", Of: "JFrog reference token", Source: "jfrog.com/help/r/jfrog-platform-administration-documentation", Keywords: "cmVmdGtu", Shape: "[A-Za-z0-9]{56}"},
	{Name: "prefect-key", Of: "Prefect API key", Source: "docs.prefect.io/v3/manage/cloud/manage-users/api-keys", Keywords: "pnu_", Shape: "[a-z0-9]{36}", bits: 3},
	{Name: "infracost-key", Of: "Infracost key", Source: "www.infracost.io/docs", Keywords: "ico-", Shape: "[A-Za-z0-9]{32}", bits: 3},
	{Name: "docker-hub-token", Of: "Docker Hub token", Source: "docs.docker.com/security/access-tokens", Keywords: "dckr_pat_|dckr_oat_", Shape: "[A-Za-z0-9_-]{27,32}", inWord: true},

	// Package registries.
	{Name: "npm-token", Of: "npm token", Source: "docs.npmjs.com/about-access-tokens", Keywords: "npm_", Shape: "[A-Za-z0-9]{36}", bits: 3},
	{Name: "pypi-token", Of: "PyPI token", Source: "pypi.org/help/#apitoken", Keywords: "pypi-AgEIcHlwaS5vcmc|pypi-AgENdGVzdC5weXBpLm9yZw", Shape: "[A-Za-z0-9_-]{50,}", inWord: true},
	{Name: "rubygems-key", Of: "RubyGems API key", Source: "guides.rubygems.org/api-key-scopes", Keywords: "rubygems_", Shape: "[a-f0-9]{48}"},
	{Name: "crates-token", Of: "crates.io token", Source: "doc.rust-lang.org/cargo/reference/registries.html", Keywords: "cio", Shape: "[A-Za-z0-9]{32}", bits: 3.5},
	{Name: "nuget-key", Of: "NuGet API key", Source: "learn.microsoft.com/nuget/nuget-org/scoped-api-keys", Keywords: "oy2", Shape: "[a-z0-9]{43}", bits: 3},
	{Name: "clojars-token", Of: "Clojars deploy token", Source: "github.com/clojars/clojars-web/wiki/Deploy-Tokens", Keywords: "CLOJARS_", Shape: "[a-z0-9]{60}"},

	// Models.
	{Name: "openai-key", Of: "OpenAI key", Source: "platform.openai.com/docs/api-reference/authentication", Keywords: "sk-proj-|sk-svcacct-|sk-admin-", Shape: "[A-Za-z0-9_-]{40,}", bits: 3},
	{Name: "openai-legacy-key", Of: "OpenAI key of the old form", Source: "platform.openai.com/docs/api-reference/authentication", Keywords: "T3BlbkFJ", Before: "sk-[A-Za-z0-9]{20}", Shape: "[A-Za-z0-9]{20}", inWord: true},
	{Name: "anthropic-key", Of: "Anthropic key", Source: "docs.anthropic.com/en/api/overview", Keywords: "sk-ant-", Shape: "[a-z0-9]{3,10}-[A-Za-z0-9_-]{40,}", inWord: true},
	{Name: "openrouter-key", Of: "OpenRouter key", Source: "openrouter.ai/docs/api-reference/authentication", Keywords: "sk-or-v1-", Shape: "[a-f0-9]{64}", inWord: true},
	{Name: "huggingface-token", Of: "Hugging Face token", Source: "huggingface.co/docs/hub/security-tokens", Keywords: "hf_", Shape: "[A-Za-z]{34}", bits: 3.5},
	{Name: "huggingface-org-token", Of: "Hugging Face organization token", Source: "huggingface.co/docs/hub/security-tokens", Keywords: "api_org_", Shape: "[A-Za-z]{34}", bits: 3.5},
	{Name: "replicate-token", Of: "Replicate token", Source: "replicate.com/docs/topics/security/api-tokens", Keywords: "r8_", Shape: "[A-Za-z0-9]{37}", bits: 3.5},
	{Name: "groq-key", Of: "Groq key", Source: "console.groq.com/docs/quickstart", Keywords: "gsk_", Shape: "[A-Za-z0-9]{52}", bits: 3.5},
	{Name: "perplexity-key", Of: "Perplexity key", Source: "docs.perplexity.ai/getting-started/quickstart", Keywords: "pplx-", Shape: "[A-Za-z0-9]{48}", bits: 3},
	{Name: "xai-key", Of: "xAI key", Source: "docs.x.ai/docs/overview", Keywords: "xai-", Shape: "[A-Za-z0-9]{80}", bits: 3.5},
	{Name: "langsmith-key", Of: "LangSmith key", Source: "docs.smith.langchain.com/administration/how_to_guides/organization_management/create_account_api_key", Keywords: "lsv2_pt_|lsv2_sk_", Shape: "[a-f0-9]{32}_[a-f0-9]{10}", inWord: true},

	// Mail, monitoring and other services.
	{Name: "sendgrid-key", Of: "SendGrid key", Source: "docs.sendgrid.com/ui/account-and-settings/api-keys", Keywords: "SG.", Shape: "[A-Za-z0-9_-]{20,24}.[A-Za-z0-9_-]{39,50}", bits: 3},
	{Name: "mailgun-key", Of: "Mailgun key", Source: "documentation.mailgun.com/docs/mailgun/api-reference/authentication", Keywords: "key-", Shape: "[a-f0-9]{32}", bits: 2.8},
	{Name: "postman-key", Of: "Postman key", Source: "learning.postman.com/docs/developer/postman-api/authentication", Keywords: "PMAK-", Shape: "[a-f0-9]{24}-[a-f0-9]{34}", inWord: true},
	{Name: "newrelic-key", Of: "New Relic key", Source: "docs.newrelic.com/docs/apis/intro-apis/new-relic-api-keys", Keywords: "NRAK-|NRII-|NRRA-", Shape: "[A-Za-z0-9_-]{27,42}"},
	{Name: "grafana-token", Of: "Grafana service account token", Source: "grafana.com/docs/grafana/latest/administration/service-accounts", Keywords: "glsa_", Shape: "[A-Za-z0-9]{32}_[a-fA-F0-9]{8}", inWord: true},
	{Name: "grafana-cloud-token", Of: "Grafana Cloud access policy token", Source: "grafana.com/docs/grafana-cloud/account-management/authentication-and-permissions/access-policies", Keywords: "glc_eyJ", Shape: "[A-Za-z0-9+/=]{32,}", inWord: true},
	{Name: "sentry-token", Of: "Sentry auth token", Source: "docs.sentry.io/account/auth-tokens", Keywords: "sntrys_|sntryu_", Shape: "[A-Za-z0-9+/=_-]{60,}", inWord: true},
	{Name: "dynatrace-token", Of: "Dynatrace token", Source: "docs.dynatrace.com/docs/dynatrace-api/basics/dynatrace-api-authentication", Keywords: "dt0c01.|dt0s01.|dt0s02.", Shape: "[A-Z0-9]{24}.[A-Z0-9]{64}", inWord: true},
	{Name: "linear-key", Of: "Linear key", Source: "linear.app/developers/graphql", Keywords: "lin_api_|lin_oauth_", Shape: "[A-Za-z0-9]{40,64}", inWord: true},
	{Name: "notion-token", Of: "Notion token", Source: "developers.notion.com/reference/authentication", Keywords: "ntn_", Shape: "[A-Za-z0-9]{40,50}", bits: 3},
	{Name: "figma-token", Of: "Figma token", Source: "www.figma.com/developers/api#access-tokens", Keywords: "figd_", Shape: "[A-Za-z0-9_-]{38,44}", bits: 3},
	{Name: "contentful-token", Of: "Contentful management token", Source: "www.contentful.com/developers/docs/references/authentication", Keywords: "CFPAT-", Shape: "[A-Za-z0-9_-]{43}"},
	{Name: "typeform-token", Of: "Typeform token", Source: "www.typeform.com/developers/get-started/personal-access-token", Keywords: "tfp_", Shape: "[A-Za-z0-9._=-]{44,64}", bits: 3},
	{Name: "readme-key", Of: "ReadMe key", Source: "docs.readme.com/main/reference/intro/authentication", Keywords: "rdme_", Shape: "[a-z0-9]{70,74}"},
	{Name: "duffel-token", Of: "Duffel token", Source: "duffel.com/docs/api/overview/making-requests", Keywords: "duffel_live_|duffel_test_", Shape: "[A-Za-z0-9_-]{40,50}"},
	{Name: "frameio-token", Of: "Frame.io token", Source: "developer.frame.io/docs/getting-started/authentication", Keywords: "fio-u-", Shape: "[A-Za-z0-9_=-]{60,70}"},
	{Name: "posthog-key", Of: "PostHog personal key", Source: "posthog.com/docs/api", Keywords: "phx_", Shape: "[A-Za-z0-9]{40,50}", bits: 3},
	{Name: "adobe-client-secret", Of: "Adobe client secret", Source: "developer.adobe.com/developer-console/docs/guides/authentication", Keywords: "p8e-", Shape: "[A-Za-z0-9]{32}"},
	{Name: "mapbox-secret-token", Of: "Mapbox secret token", Source: "docs.mapbox.com/help/glossary/access-token", Keywords: "sk.eyJ", Shape: "[A-Za-z0-9_-]{30,}.[A-Za-z0-9_-]{16,}"},
	{Name: "age-secret-key", Of: "age secret key", Source: "age-encryption.org/v1", Keywords: "AGE-SECRET-KEY-1", Shape: "[A-Z0-9]{58}", inWord: true},
}

var defaultFilter = sync.OnceValue(func() *filter { return newFilter(Formats()) })
