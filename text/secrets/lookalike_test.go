package secrets

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

// lookalikes are lines of programs, settings, documents and logs that name a secret and show none.
var lookalikes = []string{
	// Source code.
	"password: string", "  password: string;", "password?: string | null", "token := lexer.Next()", "tok := p.token",
	"token = next_token",
	"token = self.lexer.next_token", "password = input()", "password = getpass.getpass(\"Password: \")",
	"password := os.Getenv(\"DB_PASSWORD\")",
	"password = os.environ[\"DB_PASSWORD\"]", "password=os.environ.get('DB_PASSWORD')",
	"const token = process.env.GITHUB_TOKEN;",
	"this.password = password;", "self.password = password", "    password=password,",
	"    password=settings.DB_PASSWORD,",
	"user.password = hashPassword(plain)", "const { password } = req.body", "if (password === confirmPassword) {",
	"password == other",
	"Password string `json:\"password\"`", "type Token struct {", "func (p *Parser) token() Token {",
	"for token := range tokens {",
	"case token.IDENT:", "return Token{Kind: token.EOF}", "tokens = tokenizer.encode(text)",
	"    token: AccessToken", "secret: SecretStr",
	"private String password;", "@Value(\"${db.password}\")", "credentials: Credentials = None",
	"\tCredentials: options.Credentials,",
	"\tPassword: cfg.Database.Password,", "apiKey: config.apiKey,", "let secret = SharedSecret::new(bytes);",
	"\tSecretKey: secretKey,",
	"def check_password(self, password: str) -> bool:", "\"password\": \"string\"", "'password': 'required'",
	"\"token\": null,",
	"const PASSWORD_FIELD = \"password\"", "<input type=\"password\" name=\"password\">",
	"label for=\"password\">Password</label>",
	"password: z.string().min(8)", "password: { type: String, required: true }", "PasswordHasher passwordHasher,",
	"secret_len = 32",
	"e := os.Setenv(\"API_KEY\", key)", "define('DB_PASSWORD', getenv('DB_PASSWORD'));",
	"define('TOKEN_NAME', 'csrf');",
	// Settings.
	"secretName: my-tls", "secretName: my-secret-12", "secretRef: database", "existingSecret: postgres-credentials",
	"PASSWORD=$PW_1", "PASSWORD=${PASSWORD}",
	"DB_PASSWORD=${DB_PASSWORD:-}", "PASSWORD=\"$(cat /run/secrets/db)\"", "DB_PASSWORD_FILE=/run/secrets/db",
	"DB_PASSWORD=/run/secrets/db", "token: ${{ secrets.GITHUB_TOKEN }}",
	"password: \"{{ .Values.password }}\"", "password: {{ db_password }}", "password: <your-password>",
	"api_key: YOUR_API_KEY", "API_KEY=your-api-key-here",
	"password: changeme", "PASSWORD=changeme", "password: null", "password: true", "password: none", "PASSWORD=",
	"password: ''", "token: xxxxxxxxxxxxxxxx", "SECRET_KEY=<secret>",
	"password: vault:secret/data/db#password", "password: !vault |",
	"- name: DB_PASSWORD\n  valueFrom:\n    secretKeyRef:\n      name: db\n      key: password\n",
	"- name: DB_PASSWORD\n- name: OTHER\n  value: a1B2c3D4e5F6\n", "- name: DB_PASSWORD\n  value: $(PASSWORD)\n",
	"name: token\nvalue: string\n",
	"<add key=\"ApiKey\" value=\"#{ApiKey}#\"/>", "<property name=\"password\" value=\"${db.password}\"/>",
	"secrets: |\n  GITHUB_TOKEN=x\n", "password: |\n  the password of the user\n",
	"max_tokens: 4096", "token_count=12345678901234567", "tokenizer: gpt2", "private_key_path: ~/.ssh/id_rsa",
	"ssh_private_key: /etc/ssl/private/server.key", "password_policy: strict",
	"https://user:password@example.com/", "redis://:$PW@host", "redis://:${REDIS_PASSWORD}@host:6379",
	"http://:8080/@scope/name", "user:%s@tcp(%s:3306)/%s", "user:password@tcp(localhost:3306)/db",
	"GOOGLE_APPLICATION_CREDENTIALS=service-account.json", "TLS_PRIVATE_KEY=certs/server.key", "PASS=passed",
	"SSH_PRIVATE_KEY=id_rsa.pem", "DB_PASSWORD=settings.DB_PASSWORD", "ADMIN_PASSWORD=postgres", "API_KEY=MY_API_KEY",
	"PASSWORD=get_password()", "TOKEN=`cat token.txt`", "SECRET=os.environ[\"SECRET\"]",
	"PASSWORD=$(openssl rand -base64 16)",
	// Prose and logs.
	"the password is a word", "Password: required", "the secret: patience", "Token: invalid",
	"error: password authentication failed for user", "password: incorrect", "Secret: not found",
	"unexpected token: identifier", "SyntaxError: unexpected token '<'", "level=info token=refreshed",
	"password required", "token abcdefgh", "secret patience", "password base64", "password settings",
	"  password: Uint8Array",
	"API key: missing or malformed", "passphrase: optional", "password=REDACTED", "password=********",
	"--password-stdin", "use --password to pass it", "mysql --password < dump.sql", "Enter password: ",
	"key-value pairs and secret-key pairs", "a token bucket: tokens=burst",
}

// TestLookalikesStay checks that none of the look-alikes is masked, whole or in blocks.
func TestLookalikesStay(t *testing.T) {
	m := New()
	r := rand.New(rand.NewPCG(4, 4))
	for _, text := range lookalikes {
		for _, text := range []string{text, "a: 1\n" + text + "\nb: 2\n", "\t" + text + "\n"} {
			if got, n := m.String(text); n != 0 || got != text {
				t.Errorf("%q became %q", text, got)
			}
			expect.Equal(t, inBlocks(r, m, text), text, "blocks, became")
		}
	}
	all := strings.Join(lookalikes, "\n")
	if got, n := m.String(all); n != 0 {
		t.Errorf("all together: %d masked in %q", n, got)
	}
}
