package mcpclient

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestReadable has messages as servers write them. An empty want is a message that is read unchanged.
func TestReadable(t *testing.T) {
	t.Parallel()
	const none = "none"
	for message, want := range map[string]string{
		`{"jsonrpc":"2.0","id":3,"result":{}}`: "", `{"jsonrpc":"2.0","method":"notifications/x"}`: "", `[{"jsonrpc":"2.0","id":1,"result":{}}]`: "", "": "",
		"MCP Server running on stdio...":              none,
		`{"level":"info","msg":"client initialized"}`: none,
		`"text"`:                                 none,
		`[1,`:                                    none,
		`7`:                                      none,
		`{"jsonrpc":"2.0","id":[1],"result":{}}`: none,
		`{"jsonrpc":"2.0","id":null,"result":{}}`:                                  none,
		`{"jsonrpc":"2.0","id":1,"method":7}`:                                      none,
		`null`:                                                                     none,
		`{"jsonrpc":"2.0","id":"3","result":{}}`:                                   `{"jsonrpc":"2.0","id":3,"result":{}}`,
		`{"jsonrpc":"2.0","id":"x-3","result":{}}`:                                 "",
		`{"jsonrpc":"2.0","id":"03","result":{}}`:                                  "",
		`{"jsonrpc":"2.0","id":"3","method":"ping"}`:                               "",
		`{"id":3,"result":{}}`:                                                     `{"jsonrpc":"2.0","id":3,"result":{}}`,
		`{"jsonrpc":2.0,"id":3,"result":{}}`:                                       `{"jsonrpc":"2.0","id":3,"result":{}}`,
		`{"jsonrpc":"2.0","id":3,"result":{"content":[}`:                           `{"jsonrpc":"2.0","id":3,"error":{"code":-32700,"message":"its answer is not valid JSON"}}`,
		`{"jsonrpc":"2.0","id":"3","result":{"a":NaN}}`:                            `{"jsonrpc":"2.0","id":3,"error":{"code":-32700,"message":"its answer is not valid JSON"}}`,
		`{"jsonrpc":"2.0","id":3,"error":"no disk"}`:                               `{"jsonrpc":"2.0","id":3,"error":{"code":-32603,"message":"no disk"}}`,
		`{"jsonrpc":"2.0","id":3,"error":{"code":"E1"}}`:                           `{"jsonrpc":"2.0","id":3,"error":{"code":-32603,"message":"{\"code\":\"E1\"}"}}`,
		`{"jsonrpc":"2.0","id":3,"error":{"code":"-7","message":"no"}}`:            `{"jsonrpc":"2.0","id":3,"error":{"code":-7,"message":"no"}}`,
		`{"jsonrpc":"2.0","id":3,"result":{"content":"plain 4711"}}`:               `{"jsonrpc":"2.0","id":3,"result":{"content":[{"text":"plain 4711","type":"text"}]}}`,
		`{"jsonrpc":"2.0","id":3,"result":{"content":{"type":"text","text":"a"}}}`: `{"jsonrpc":"2.0","id":3,"result":{"content":[{"type":"text","text":"a"}]}}`,
		`{"jsonrpc":"2.0","id":3,"result":{"content":[null,"b",{"type":"json","json":{"n":1}},{"type":"text","text":"c"}],"isError":"no"}}`:                                                    `{"jsonrpc":"2.0","id":3,"result":{"content":[{"text":"b","type":"text"},{"text":"{\"type\":\"json\",\"json\":{\"n\":1}}","type":"text"},{"type":"text","text":"c"}]}}`,
		`{"jsonrpc":"2.0","id":3,"result":{"content":[{"type":"text","text":7}],"_meta":[]}}`:                                                                                                  `{"jsonrpc":"2.0","id":3,"result":{"content":[{"text":"{\"type\":\"text\",\"text\":7}","type":"text"}]}}`,
		`{"jsonrpc":"2.0","id":3,"result":{"tools":[{"name":"go","inputSchema":{"type":"object"}},{"name":"odd","title":7,"description":"d","inputSchema":{"type":"object"}},{"title":7},8]}}`: `{"jsonrpc":"2.0","id":3,"result":{"tools":[{"name":"go","inputSchema":{"type":"object"}},{"description":"d","inputSchema":{"type":"object"},"name":"odd"}]}}`,
		`{"jsonrpc":"2.0","id":3,"result":{"tools":{}}}`: `{"jsonrpc":"2.0","id":3,"result":{"tools":[]}}`,
	} {
		read, err := readable([]byte(message))
		got := strings.TrimSpace(string(read))
		if err != nil {
			got = none
		}
		if got != want {
			t.Errorf("%s\n is read as %s\n      want %s", message, got, want)
		}
	}
}

// FuzzReadable: whatever a server writes, the SDK reads each message that is passed on.
func FuzzReadable(f *testing.F) {
	for _, seed := range []string{`{"jsonrpc":"2.0","id":"3","result":{"content":["a",{"type":7}]}}`, `{"id":1,"error":[]}`, `{"id":1,"result":{"tools":[{"name":"x","icons":1}]}}`, `{"result":{`, "x"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, message string) {
		read, err := readable([]byte(message))
		if err != nil || read == nil {
			return
		}
		m, err := jsonrpc.DecodeMessage(read)
		if err != nil {
			return // an id of another form, which no request had
		}
		r, ok := m.(*jsonrpc.Response)
		if !ok || r.Error != nil {
			return
		}
		var members map[string]json.RawMessage
		if json.Unmarshal(r.Result, &members) != nil {
			return
		}
		if _, called := members["content"]; called && members["tools"] == nil && json.Unmarshal(r.Result, &mcp.CallToolResult{}) != nil && members["structuredContent"] == nil {
			t.Errorf("%s is read as %s, which is no result", message, read)
		}
	})
}
