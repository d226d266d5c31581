package jetstream

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"os"
	"regexp"
	"strings"
	"sync"

	"github.com/nats-io/nats.go"
)

// inboxes begins the subjects on which a user receives answers: inboxes.USER.>, so that the
// permissions of a user need not include the answers to others.
const inboxes = "_INBOX."

// ownInbox matches the names of users that are one token of a subject.
var ownInbox = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`) })

// toInbox reports whether the answer to a request goes to an inbox. The server lets a client that
// receives a request publish to the subject that the request names, whatever it is: without this, a
// client without permissions would have a role write into a run for it.
func toInbox(m *nats.Msg) bool {
	return strings.HasPrefix(m.Reply, inboxes) || strings.HasPrefix(m.Reply, "_R_.") // of a request from another account
}

// inboxPrefix returns the prefix of the subjects on which a connection receives answers;
// empty, which is that of every client, without a user, and for a name of a user that is no
// token of a subject. The prefix of a connection does not change with its credentials.
func inboxPrefix(cfg Config) string {
	if user := userOf(cfg); ownInbox().MatchString(user) {
		return inboxes + user
	}
	return ""
}

// userOf returns the name of the NATS user of a connection; empty if it has none.
func userOf(cfg Config) string {
	if cfg.Credentials != "" {
		raw, err := os.ReadFile(cfg.Credentials)
		if err != nil {
			return ""
		}
		if isDecorated(raw) {
			return nameInJWT(string(raw))
		}
		user, _, _ := parsePassword(raw) // without a user, the connection fails and names the reason
		return user
	}
	first, _, _ := strings.Cut(cfg.URL, ",")
	if !strings.Contains(first, "://") {
		first = "nats://" + first
	}
	u, err := url.Parse(strings.TrimSpace(first))
	if err != nil {
		return ""
	}
	if _, password := u.User.Password(); !password {
		return "" // a token
	}
	return u.User.Username()
}

// nameInJWT returns the name of the user in a file with a JWT and its key; empty if it has
// none. The server verifies the JWT.
func nameInJWT(file string) string {
	_, rest, _ := strings.Cut(file, "-----BEGIN NATS USER JWT-----")
	token, _, _ := strings.Cut(strings.TrimSpace(rest), "\n")
	parts := strings.Split(strings.TrimSpace(token), ".")
	if len(parts) != 3 {
		return ""
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	var claims struct {
		Name string `json:"name"`
	}
	if err != nil || json.Unmarshal(payload, &claims) != nil {
		return ""
	}
	return claims.Name
}
